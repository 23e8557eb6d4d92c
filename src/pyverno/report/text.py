"""Findings as text for people: one line with the place, the rule and the message, one with the object and the rule.

    pod.yaml:9:12 no-latest/tag validation error: use a tag
        shop/Pod/bad, rule at policy.yaml:11:5

Findings are grouped by file. Names are one line, and messages are indented: no text of a resource or a policy begins a
line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from pyverno.report.finding import Finding
from pyverno.report.packed import Packed
from pyverno.report.rendered import Lost, no_bug, rendered
from pyverno.sinks.characters import block, one_line

__all__ = ["Paint", "plain", "text_lines"]

Paint = Callable[[str, str], str]
"""Colours a text for a role: `file`, `rule`, `note`, or a status."""

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
    first, *others = block(message, _INDENT).splitlines() or [""]
    head = f"{paint(one_line(str(each.location)), 'file')} {paint(one_line(name), each.status)}{status}"
    yield f"{head} {first}".rstrip()
    yield from (line.rstrip() for line in others)
    where = f", rule at {each.rule_location}" if each.rule_location.file else ""
    yield paint(one_line(f"{_INDENT}{each.resource}{where}"), "note")
