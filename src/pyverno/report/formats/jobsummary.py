"""Findings as Markdown for the summary of a job or a comment: counts, and a table of what needs attention."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pyverno.report.collected import STATUSES
from pyverno.report.finding import Finding
from pyverno.report.markdown import markdown_table
from pyverno.report.problem import Problem

__all__ = ["job_summary"]

_HEADERS: Final = ("Status", "Severity", "Rule", "Resource", "Place", "Message")
_MOST_ROWS: Final = 1000
_MOST_TEXT: Final = 500
_MOST_BYTES: Final = 900_000
"""The limit of a page in bytes: GitHub refuses a summary of more than 1 MiB."""


def job_summary(findings: Iterable[Finding], problems: Sequence[Problem] = ()) -> str:
    """Return a page; rows that would make it too long for a job summary are counted instead.

    >>> print(job_summary([]).splitlines()[2])
    No problems: 0 passed, 0 skipped.
    """
    items = [*findings]
    counts = dict.fromkeys(STATUSES, 0)
    for each in items:
        counts[each.status] += 1
    found = [each for each in items if each.is_problem]
    parts = ["## Policies\n"]
    if found or problems:
        heads = (*(status.title() for status in STATUSES), "Unreadable")
        parts.append(markdown_table(heads, [[*(str(counts[each]) for each in STATUSES), str(len(problems))]]))
    else:
        parts.append(f"No problems: {counts['pass']} passed, {counts['skip']} skipped.\n")
    if problems:
        rows = [(str(each.location), each.message[:_MOST_TEXT]) for each in problems[:_MOST_ROWS]]
        parts += ["### Errors\n", markdown_table(("Place", "Message"), rows)]
    if found:
        parts += ["### Problems\n", *_problems(found)]
    return "\n".join(parts)


def _problems(found: Sequence[Finding]) -> list[str]:
    rows: list[tuple[str, ...]] = []
    size = 0
    for each in found[:_MOST_ROWS]:
        row = _row(each)
        size += sum(len(cell.encode("utf-8", "replace")) for cell in row)
        if size > _MOST_BYTES:
            break
        rows.append(row)
    parts = [markdown_table(_HEADERS, rows)]
    if len(found) > len(rows):
        parts.append(f"… and {len(found) - len(rows)} more.\n")
    return parts


def _row(each: Finding) -> tuple[str, ...]:
    message = each.message if len(each.message) <= _MOST_TEXT else f"{each.message[: _MOST_TEXT - 1]}…"
    return each.status, each.severity, each.rule_id, str(each.resource), str(each.location), message
