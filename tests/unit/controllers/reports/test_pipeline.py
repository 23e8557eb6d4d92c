"""Results while no controller aggregates them: objects are bounded, drops are counted, later reports are exact."""

from __future__ import annotations

import asyncio

from tests.support.reportpipeline import BURST, send_through
from tests.unit.controllers.reports.policies import policy


def test_reports_are_bounded_while_nothing_aggregates_and_exact_afterwards() -> None:
    """Each request has a report or is counted as dropped; the watch that counts reports may lag by one burst."""
    flow = asyncio.run(send_through([policy("latest"), policy("other")], requests=240, cap=20, pods=6))
    assert (240, 480) == (flow.requests, flow.results)
    assert 20 < flow.most_stored <= 20 + BURST
    assert (flow.is_metered, flow.left, flow.differences) == (True, 0, 0)
