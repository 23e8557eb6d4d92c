"""Findings as an HTML page: counts and groups of all of them, and the worst that need attention."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import nsmallest
from operator import itemgetter
from typing import Final

from pyverno.report.collected import SEVERITIES, Collected, rank
from pyverno.report.finding import Finding
from pyverno.report.html import MAX_ROWS, html_page, html_row
from pyverno.report.overview import Overview, Tallies
from pyverno.report.problem import Problem
from pyverno.report.rendered import Lost, no_bug, rendered
from pyverno.value import replace

__all__ = ["page"]

_GROUPING: Final = "policy"


def page(findings: Iterable[Finding], problems: Sequence[Problem] = (), lost: Lost = no_bug) -> Iterator[str]:
    """Yield the page."""
    tallies = Tallies(_GROUPING)

    def take(each: Finding) -> tuple[tuple[int | str, ...], Collected] | None:
        severity = each.severity if each.severity in SEVERITIES else ""
        found = Collected(each if severity == each.severity else replace(each, severity=severity))
        key = rank(found)
        if each.is_problem:
            html_row(found)  # a row that cannot be written is one lost finding, not a lost page
        tallies.add(found)
        return (key, found) if each.is_problem else None

    worst = nsmallest(MAX_ROWS, filter(None, rendered(findings, take, lost)), key=itemgetter(0))
    results = [found for _, found in worst]
    texts = [f"{each.location}: {each.message}".removeprefix(": ") for each in problems]
    yield html_page(Overview(results, tallies.counts, _GROUPING, tallies.groups(), problems=texts))
