"""The numbered completions of an Indexed Job: which are done, which have failed for good, which come next.

Functions of what is seen; upstream: `pkg/controller/job`. This module must never write.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubesandbox.controllers.objects import annotations_of, at, number_at
from pyverno.kube.json import JSONObject

__all__ = [
    "FAILURES",
    "IGNORED_FAILURES",
    "INDEX",
    "failed_indexes",
    "failures_of",
    "index_of",
    "indexes_of",
    "is_indexed",
    "missing_indexes",
    "succeeded_indexes",
    "written_indexes",
]

INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"


def is_indexed(job: JSONObject) -> bool:
    """Tell whether every completion has a number."""
    return bool(at(job, "spec", "completionMode") == "Indexed")


def index_of(pod: JSONObject) -> int:
    """Return which completion a pod works on, -1 when it has no number."""
    text = annotations_of(pod).get(INDEX, "")
    return int(text) if text.isdigit() else -1


def failures_of(pod: JSONObject) -> tuple[int, int]:
    """Return how many pods of the same completion have failed before this one, counted and ignored ones."""
    notes = annotations_of(pod)
    counted, ignored = (notes.get(name, "") for name in (FAILURES, IGNORED_FAILURES))
    return (int(counted) if counted.isdigit() else 0, int(ignored) if ignored.isdigit() else 0)


def succeeded_indexes(job: JSONObject) -> set[int]:
    """Return the completions that are done, as the status has them."""
    return indexes_of(str(at(job, "status", "completedIndexes", default="")))


def failed_indexes(job: JSONObject) -> set[int]:
    """Return the completions that have failed for good, as the status has them."""
    return indexes_of(str(at(job, "status", "failedIndexes", default="")))


def indexes_of(text: str) -> set[int]:
    """Read the numbers of completions as a status writes them.

    >>> sorted(indexes_of("0-2,5"))
    [0, 1, 2, 5]
    """
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        low, _, high = part.partition("-")
        found.update(range(int(low), int(high or low) + 1))
    return found


def written_indexes(indexes: Iterable[int]) -> str:
    """Write numbers of completions as a status does.

    >>> written_indexes({5, 0, 1, 2, 7, 8})
    '0-2,5,7,8'
    """
    runs: list[list[int]] = []
    for number in sorted(indexes):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    parts = []
    for low, high in runs:
        # upstream writes two neighbours one by one, and only longer runs as a range
        parts.extend([str(low)] if low == high else [str(low), str(high)] if high == low + 1 else [f"{low}-{high}"])
    return ",".join(parts)


def missing_indexes(job: JSONObject, busy: Iterable[JSONObject], count: int) -> list[int]:
    """Return the next completions to work on: neither done, nor failed for good, nor being worked on by `busy` pods."""
    taken = succeeded_indexes(job) | failed_indexes(job) | {index_of(pod) for pod in busy}
    free = (number for number in range(number_at(job, "spec", "completions")) if number not in taken)
    return [number for number, _ in zip(free, range(count), strict=False)]
