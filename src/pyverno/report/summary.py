"""Counts of results by status, as reports and the command line show them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyverno.engine.result import FailureAction, RuleResult, Status
from pyverno.value import dataclass

__all__ = ["Summary", "reported_status"]


def reported_status(result: RuleResult, *, audit_warn: bool = False) -> Status:
    """Return the status that a report shows: a fail of a policy that is not scored is a warning.

    With `audit_warn`, a fail of a rule with the action Audit is a warning, too.
    """
    if result.status is Status.FAIL:
        if not result.rule.policy.is_scored:
            return Status.WARN
        if audit_warn and result.action is FailureAction.AUDIT:
            return Status.WARN
    return result.status


_PASS = Status.PASS


@dataclass(slots=True)
class Summary:
    """The number of results by status.

    >>> str(Summary(passed=2, failed=1))
    'pass: 2, fail: 1, warn: 0, error: 0, skip: 0'
    """

    passed: int = 0
    failed: int = 0
    warned: int = 0
    erred: int = 0
    skipped: int = 0

    def add(self, status: Status) -> None:
        """Count one result."""
        match status:
            case Status.PASS:
                self.passed += 1
            case Status.FAIL:
                self.failed += 1
            case Status.WARN:
                self.warned += 1
            case Status.ERROR:
                self.erred += 1
            case Status.SKIP:
                self.skipped += 1

    def count_all(self, results: Sequence[RuleResult], *, audit_warn: bool = False) -> None:
        """Count the results of one object as reports show them; most of them pass."""
        others = [result for result in results if result.status is not _PASS]
        self.passed += len(results) - len(others)
        for result in others:
            self.add(reported_status(result, audit_warn=audit_warn))

    def count(self, result: RuleResult, *, audit_warn: bool = False) -> None:
        """Count one result as reports show it."""
        if result.status is _PASS:  # the common case of a large run
            self.passed += 1
        else:
            self.add(reported_status(result, audit_warn=audit_warn))

    @classmethod
    def of(cls, results: Iterable[RuleResult], *, audit_warn: bool = False) -> Summary:
        """Count results."""
        summary = cls()
        for result in results:
            summary.count(result, audit_warn=audit_warn)
        return summary

    def to_json(self) -> dict[str, int]:
        """Return the `summary` object of a report."""
        return {
            "error": self.erred,
            "fail": self.failed,
            "pass": self.passed,
            "skip": self.skipped,
            "warn": self.warned,
        }

    def __str__(self) -> str:
        return (
            f"pass: {self.passed}, fail: {self.failed}, warn: {self.warned}, error: {self.erred}, skip: {self.skipped}"
        )
