"""The report: figures, failures, gaps."""

from __future__ import annotations

from tests.conformance.outcome import Outcome, State
from tests.conformance.summary import make_report

OUTCOMES = [
    Outcome("b", "one", "b/1", State.PASSED),
    Outcome("b", "one", "b/2", State.FAILED, expected=1, got=2),
    Outcome("b", "two", "b/3", State.SKIPPED, "later"),
    Outcome("c", "only", "c/1", State.PASSED, vacuous=("nothing said",)),
]


def test_the_table_has_a_line_per_bucket_and_part() -> None:
    """Parts of a bucket with one part are left out."""
    lines = make_report(OUTCOMES, {}, {"d": "no cluster"}).table().splitlines()
    names = ["passed", "b", "one", "two", "c", "d:"]
    assert names == [line.split()[0] for line in lines]
    assert ["b", "1", "1", "1", "3"] == lines[1].split()


def test_a_failure_is_bad_unless_it_is_known() -> None:
    """A known gap is counted and named, and the run stays good."""
    assert not make_report(OUTCOMES, {}, {}).is_good
    report = make_report(OUTCOMES, {"b/2": "why"}, {})
    assert report.is_good
    assert "known gap  b/2: why" in report.details()
    assert {"id": "b/2", "expected": 1, "got": 2, "known_gap": "why"} == report.to_json()["buckets"]["b"]["failures"][0]


def test_a_gap_that_closed_is_bad() -> None:
    """Skipped cases and cases that were not run do not close a gap."""
    assert make_report(OUTCOMES[:1], {"b/9": "not run"}, {}).is_good
    assert make_report(OUTCOMES[2:], {"b/3": "skipped"}, {}).is_good
    report = make_report(OUTCOMES[:1], {"b/1": "why"}, {})
    assert ["b/1"] == report.closed_gaps
    assert "CLOSED GAP b/1" in report.details()


def test_the_json_counts_by_bucket_and_part() -> None:
    """Machines get the same figures, and why cases were skipped."""
    bucket = make_report(OUTCOMES, {}, {}).to_json()["buckets"]["b"]
    assert (1, 1, 1, 3) == tuple(bucket[key] for key in ("passed", "failed", "skipped", "total"))
    assert {"passed": 0, "failed": 0, "skipped": 1, "total": 1} == bucket["parts"]["two"]
    assert [{"id": "b/3", "reason": "later"}] == bucket["skips"]


def test_vacuous_passes_are_said_apart() -> None:
    """They are listed although they pass."""
    report = make_report(OUTCOMES, {}, {})
    assert "vacuous passes: 1 rows in 1 suites (failures in strict mode)" in report.details()
    assert [{"id": "c/1", "rows": ["nothing said"]}] == report.to_json()["buckets"]["c"]["vacuous"]
