"""Numbered completions of Jobs."""

from __future__ import annotations

from kubesandbox.controllers.workloads.jobindexes import failures_of, indexes_of, missing_indexes, written_indexes
from tests.unit.kubesandbox.controllers.workloads.test_jobstatus import job


def test_numbers_of_completions_are_written_as_ranges() -> None:
    """And read back."""
    for numbers, text in (
        (set[int](), ""),
        ({0}, "0"),
        ({0, 1}, "0,1"),
        ({0, 1, 2}, "0-2"),
        ({1, 3, 4, 5, 9}, "1,3-5,9"),
    ):
        assert (text, numbers) == (written_indexes(numbers), indexes_of(text))
    body = job({"completedIndexes": "0-2"}, completions=6)
    active = [{"metadata": {"annotations": {"batch.kubernetes.io/job-completion-index": "4"}}}]
    assert [3, 5] == missing_indexes(body, active, 9)
    assert [3] == missing_indexes(body, active, 1)


def test_completions_that_have_failed_for_good_are_not_missing() -> None:
    """Nor are those that are done."""
    body = job({"completedIndexes": "0", "failedIndexes": "1,3"}, completions=5)
    assert [2, 4] == missing_indexes(body, [], 9)


def test_counts_of_failures_that_nobody_can_read_are_none() -> None:
    """Anybody may write annotations."""
    notes = {
        "batch.kubernetes.io/job-index-failure-count": "-1",
        "batch.kubernetes.io/job-index-ignored-failure-count": "2",
    }
    assert (0, 2) == failures_of({"metadata": {"annotations": notes}})
