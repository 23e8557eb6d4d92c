"""The outcome of a run while it goes on: counts of its results, problems, and results that a bug has cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from pyverno.cli.apply.judge import JudgedResource
from pyverno.cli.errors import bug_text, report_error
from pyverno.cli.faults import report_faults
from pyverno.errors import Location, PyvernoError, UsageError
from pyverno.report.summary import Summary

if TYPE_CHECKING:
    from pyverno.report.finding import Finding

__all__ = ["Outcome"]

Made = TypeVar("Made")

_MOST_LOST: Final = 100
"""The number of lost results with an error of their own: a bug may be in each of a million."""


class Outcome:
    """Counts and problems of one run; a bug in a part of the output is an error, and the others are written."""

    def __init__(self, summary: Summary, problems: list[PyvernoError], audit_warn: bool = False) -> None:
        self.resources = self.results = 0
        self.summary = summary
        self._audit_warn = audit_warn
        self.problems = problems
        self._lost = 0

    def lost_finding(self, each: Finding, error: Exception) -> None:
        """Report a result that a format could not write."""
        self.lose(f"the result of `{each.rule_id}` for {each.resource}", each.location, error)

    def lost_item(self, item: JudgedResource, error: Exception) -> None:
        """Report a resource of which a part was not written."""
        self.lose(f"a part of the output for `{item.name}`", item.document.location(), error)

    def step(self, item: JudgedResource, make: Callable[[JudgedResource], Made], otherwise: Made) -> Made:
        """Return what a step makes of a resource; a bug in it is reported, any other error ends the run."""
        try:
            return make(item)
        except (PyvernoError, OSError):  # such as a file that cannot be written
            raise
        except Exception as error:  # a bug costs this step of this resource
            self.lost_item(item, error)
            return otherwise

    def count(self, item: JudgedResource) -> None:
        """Count the results of a resource, and report what kept it from being judged."""
        self.resources += 1
        self.results += len(item.results)
        report_faults(item.results)
        self.summary.count_all(item.results, audit_warn=self._audit_warn)
        if item.problem:
            self.summary.erred += 1
            text = f"failed to apply policies on resource {item.name} ({item.problem})"
            report_error(text)
            self.problems.append(UsageError(text, location=item.document.location()))

    def lose(self, what: str, where: Location, error: Exception) -> None:
        """Report that a part of the output is missing because of an error."""
        self._lost += 1
        self.summary.erred += 1
        if self._lost <= _MOST_LOST:
            reason = str(error) if isinstance(error, PyvernoError) else bug_text(error)
            problem = UsageError(f"{what} cannot be written: {reason}", location=where)
            report_error(problem)
            self.problems.append(problem)

    def finish(self) -> None:
        """Report the number of losses without an error of their own."""
        if self._lost > _MOST_LOST:
            report_error(f"{self._lost - _MOST_LOST} more parts of the output cannot be written")
