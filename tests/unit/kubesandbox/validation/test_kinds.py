"""Tests of `validation.kinds`."""

from __future__ import annotations

from kubesandbox.validation.kinds import UPDATE_CHECKS, kind_checks
from tests.unit.kubesandbox.validation.cases import TABLE


def test_checks_belong_to_resources_that_are_served() -> None:
    """A misspelled key would judge nothing."""
    known = {type_.key for type_ in TABLE}
    assert set() == {*kind_checks((1, 35)), *UPDATE_CHECKS} - known
