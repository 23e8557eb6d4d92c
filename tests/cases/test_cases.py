"""Every golden case gives the results in its `expected.yaml`."""

from __future__ import annotations

import pytest

from tests.cases.case import EXPECTED, Case, all_cases
from tests.cases.snapshot import snapshot


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in all_cases()])
def test_the_engine_gives_the_results_that_the_case_expects(case: Case) -> None:
    """Results, decision, patch and effects of the case are those that were reviewed."""
    expected = (case.folder / EXPECTED).read_text(encoding="utf-8")
    assert expected == snapshot(case)


def test_every_folder_is_a_complete_case() -> None:
    """No case lacks its objects or its expectation."""
    incomplete = [case.name for case in all_cases() if not (case.has("resource.yaml") and case.has(EXPECTED))]
    assert [] == incomplete
