"""Findings as text for people: one line with the place, the rule and the message, one with the object and the rule.

    pod.yaml:9:12 no-latest/tag validation error: use a tag
        shop/Pod/bad, rule at policy.yaml:11:5

Findings are grouped by file. Texts of resources and policies never reach a terminal as control characters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from pyverno.lazyregex import regex
from pyverno.report.finding import Finding
from pyverno.report.packed import Packed
from pyverno.report.rendered import Lost, no_bug, rendered

__all__ = ["Paint", "plain", "text_lines", "without_controls"]

Paint = Callable[[str, str], str]
"""Colours a text for a role: `file`, `rule`, `note`, or a status."""

_CONTROL = regex("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_INDENT = "    "


def plain(text: str, _role: str) -> str:
    """Return a text unchanged."""
    return text


def text_lines(
    findings: Iterable[Finding],
    *,
    paint: Paint = plain,
    most: int = 0,
    only_problems: bool = False,
    lost: Lost = no_bug,
) -> Iterator[str]:
    """Yield the lines of findings, grouped by file in the order of their first finding; `most` 0 shows all.

    All findings are read before the first line.

    >>> from pyverno.engine.result import ResourceRef
    >>> from pyverno.errors import Location
    >>> pod = ResourceRef("v1", "Pod", "", "a")
    >>> print(*text_lines([Finding("p", "r", pod, "fail", "no", location=Location("a.yaml", 7, 3))]), sep="\\n")
    a.yaml:7:3 p/r no
        Pod/a
    """
    groups: dict[str, Packed] = {}
    total = 0

    def render(each: Finding) -> tuple[str, str] | None:
        is_shown = not only_problems or each.is_problem
        return (each.location.file, "\n".join(_finding(each, paint))) if is_shown else None

    for file, text in filter(None, rendered(findings, render, lost)):
        total += 1
        own = groups.setdefault(file, Packed())
        if not most or len(own) < most:
            own.add(text)
    shown = 0
    for own in groups.values():
        fitting = [*islice(own, most - shown)] if most else own
        if fitting and shown:
            yield ""
        shown += len(fitting)
        yield from fitting
    if total > shown:
        yield ""
        yield paint(f"... and {total - shown} more (--max-results {most})", "note")


def _finding(each: Finding, paint: Paint) -> Iterator[str]:
    name = f"{each.policy}/{each.rule}" if each.rule else each.policy
    status = "" if each.status == "fail" else f" {paint(each.status, each.status)}"
    message = each.message or ("validation failed" if each.is_problem else "")
    first, *others = without_controls(message).splitlines() or [""]
    head = f"{paint(without_controls(str(each.location)), 'file')} {paint(without_controls(name), each.status)}{status}"
    yield f"{head} {first}".rstrip()
    for line in others:
        yield f"{_INDENT}{line}".rstrip()
    where = f", rule at {each.rule_location}" if each.rule_location.file else ""
    yield paint(without_controls(f"{_INDENT}{each.resource}{where}"), "note")


def without_controls(text: str) -> str:
    """Return a text with a mark in the place of each control character that is neither a line break nor a tab.

    >>> without_controls("a\\x1b[31m")
    'a�[31m'
    """
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)
