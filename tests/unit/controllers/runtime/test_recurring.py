"""A fault that lasts does not fill the log."""

from __future__ import annotations

import logging

import pytest

from pyverno.controllers.runtime.recurring import RecurringFault

LOG = logging.getLogger("pyverno.test")


def test_a_fault_is_logged_when_it_begins_changes_lasts_and_ends(caplog: pytest.LogCaptureFixture) -> None:
    """An outage of an hour with a try every two seconds was 1,800 equal lines, and nothing said that it was over."""
    now = [0.0]
    fault = RecurringFault(LOG, "it fails", "it works again", clock=lambda: now[0])
    with caplog.at_level(logging.INFO, "pyverno.test"):
        fault.succeeded()
        for _ in range(1800):
            fault.failed("refused")
            now[0] += 2.0
        fault.failed("no answer")
        fault.succeeded()
        fault.succeeded()
        fault.failed("refused")
    found = [(each.levelname, each.getMessage(), getattr(each, "fields", {})) for each in caplog.records]
    lasting = [("WARNING", "it fails", {"error": "refused", "seconds": at}) for at in range(0, 3600, 60)]
    assert [
        *lasting,
        ("WARNING", "it fails", {"error": "no answer", "seconds": 3600}),
        ("INFO", "it works again", {"seconds": 3600}),
        ("WARNING", "it fails", {"error": "refused", "seconds": 0}),
    ] == found
