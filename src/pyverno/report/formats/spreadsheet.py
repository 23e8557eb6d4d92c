"""Findings as comma-separated values with their places (RFC 4180)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pyverno.report.csvtext import csv_row
from pyverno.report.finding import Finding
from pyverno.report.packed import packed
from pyverno.report.problem import Problem
from pyverno.report.rendered import Lost, no_bug, rendered

__all__ = ["spreadsheet"]

_HEADERS: Final = (
    *("status", "severity", "category", "policy", "rule", "namespace", "kind", "name"),
    *("message", "file", "line", "column"),
)


def spreadsheet(findings: Iterable[Finding], problems: Sequence[Problem] = (), lost: Lost = no_bug) -> Iterator[str]:
    """Yield a row of headers and one row for each result, after one for each problem of the run.

    >>> print([*spreadsheet([], [Problem("`a` does not exist", "usage")])][1].strip())
    error,,,,usage,,,,`a` does not exist,,,
    """
    rows = packed(rendered(findings, _row, lost))
    yield csv_row(_HEADERS)
    for problem in problems:
        where = problem.location
        place = (where.file, str(where.line or ""), str(where.column or ""))
        yield csv_row(("error", "", "", "", problem.code, "", "", "", problem.message, *place))
    yield from rows


def _row(each: Finding) -> str:
    ref, where = each.resource, each.location
    return csv_row(
        (
            *(each.status, each.severity, each.category, each.policy, each.rule),
            *(ref.namespace, ref.kind, ref.name, each.message),
            *(where.file, str(where.line or ""), str(where.column or "")),
        )
    )
