"""Findings as comma-separated values with their places (RFC 4180)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pyverno.report.csvtext import csv_rows
from pyverno.report.finding import Finding
from pyverno.report.problem import Problem

__all__ = ["spreadsheet"]

_HEADERS: Final = (
    *("status", "severity", "category", "policy", "rule", "namespace", "kind", "name"),
    *("message", "file", "line", "column"),
)


def spreadsheet(findings: Iterable[Finding], problems: Sequence[Problem] = ()) -> str:
    """Return one row for each result, after one for each problem of the run.

    >>> print(spreadsheet([], [Problem("`a` does not exist", "usage")]).splitlines()[1])
    error,,,,usage,,,,`a` does not exist,,,
    """
    return csv_rows(_HEADERS, _rows(findings, problems))


def _rows(findings: Iterable[Finding], problems: Sequence[Problem]) -> Iterator[Sequence[str]]:
    for problem in problems:
        where = problem.location
        place = (where.file, str(where.line or ""), str(where.column or ""))
        yield ("error", "", "", "", problem.code, "", "", "", problem.message, *place)
    for each in findings:
        ref, where = each.resource, each.location
        yield (
            *(each.status, each.severity, each.category, each.policy, each.rule),
            *(ref.namespace, ref.kind, ref.name, each.message),
            *(where.file, str(where.line or ""), str(where.column or "")),
        )
