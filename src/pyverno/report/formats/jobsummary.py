"""Findings as Markdown for the summary of a job or a comment: counts, and a table of what needs attention."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pyverno.report.collected import STATUSES
from pyverno.report.finding import Finding
from pyverno.report.markdown import markdown_row, markdown_table
from pyverno.report.problem import Problem
from pyverno.report.rendered import Lost, no_bug, rendered

__all__ = ["job_summary"]

_HEADERS: Final = ("Status", "Severity", "Rule", "Resource", "Place", "Message")
_MOST_ROWS: Final = 1000
_MOST_TEXT: Final = 500
_MOST_BYTES: Final = 900_000
"""The limit of a page in bytes: GitHub refuses a summary of more than 1 MiB."""


def job_summary(findings: Iterable[Finding], problems: Sequence[Problem] = (), lost: Lost = no_bug) -> Iterator[str]:
    """Yield a page; rows that would make it too long for a job summary are counted instead.

    >>> print("".join(job_summary([])).splitlines()[2])
    No problems: 0 passed, 0 skipped.
    """
    counts = dict.fromkeys(STATUSES, 0)
    found = size = 0
    rows: list[str] = []
    for status, row, length in rendered(findings, _row, lost):
        counts[status] += 1
        found += bool(row)
        size += length
        if row and len(rows) < _MOST_ROWS and size <= _MOST_BYTES:
            rows.append(row)
    parts = ["## Policies\n"]
    if found or problems:
        heads = (*(status.title() for status in STATUSES), "Unreadable")
        parts.append(markdown_table(heads, [[*(str(counts[each]) for each in STATUSES), str(len(problems))]]))
    else:
        parts.append(f"No problems: {counts['pass']} passed, {counts['skip']} skipped.\n")
    if problems:
        errors = [(str(each.location), each.message[:_MOST_TEXT]) for each in problems[:_MOST_ROWS]]
        parts += ["### Errors\n", markdown_table(("Place", "Message"), errors)]
    if found:
        parts += ["### Problems\n", markdown_table(_HEADERS, ()) + "".join(rows)]
        if found > len(rows):
            parts.append(f"… and {found - len(rows)} more.\n")
    yield "\n".join(parts)


def _row(each: Finding) -> tuple[str, str, int]:
    """Return the status of a finding, and its row and the length of that if it needs attention."""
    if not each.is_problem:
        return each.status, "", 0
    message = each.message if len(each.message) <= _MOST_TEXT else f"{each.message[: _MOST_TEXT - 1]}…"
    cells = each.status, each.severity, each.rule_id, str(each.resource), str(each.location), message
    row = markdown_row(cells)
    return each.status, row, len(row.encode("utf-8", "replace"))
