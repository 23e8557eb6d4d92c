"""Findings as service messages of TeamCity: code inspections, and build problems for unreadable input.

This module must never let a text of a resource start a message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pyverno.report.finding import Finding
from pyverno.report.packed import packed
from pyverno.report.problem import Problem
from pyverno.report.rendered import Lost, no_bug, rendered
from pyverno.sinks.runners import teamcity_value

__all__ = ["teamcity"]

_LEVELS: Final = {"fail": "ERROR", "error": "ERROR", "warn": "WARNING"}
_MOST_NAME: Final = 255
_MOST_TEXT: Final = 4000
_MOST_IDENTITY: Final = 60


def teamcity(findings: Iterable[Finding], problems: Sequence[Problem] = (), lost: Lost = no_bug) -> Iterator[str]:
    """Yield one inspection for each finding that needs attention, with the inspection type of a rule when it is new.

    >>> from pyverno.engine.result import ResourceRef
    >>> pod = ResourceRef("v1", "Pod", "", "a")
    >>> print("".join(teamcity([Finding("p", "r", pod, "warn", "it's [no]")])).splitlines()[1])
    ##teamcity[inspection typeId='p/r' message='Pod/a: it|'s |[no|]' file='' SEVERITY='WARNING']
    """
    types: set[str] = set()
    lines = packed(rendered(findings, lambda each: _inspection(each, types), lost))
    for problem in problems:
        text = f"{problem.location}: {problem.message}".removeprefix(": ")[:_MOST_TEXT]
        yield _message("buildProblem", description=text, identity=f"pyverno {problem.code}"[:_MOST_IDENTITY])
    yield from lines


def _inspection(each: Finding, types: set[str]) -> str:
    if not each.is_problem:
        return ""
    name = each.rule_id[:_MOST_NAME]
    where = {"file": each.location.file}
    if each.location.line:
        where["line"] = str(each.location.line)
    text = f"{each.resource}: {each.message or 'validation failed'}"[:_MOST_TEXT]
    line = _message("inspection", typeId=name, message=text, **where, SEVERITY=_LEVELS[each.status])
    if name not in types:
        line = _inspection_type(each, name) + line
        types.add(name)
    return line


def _inspection_type(each: Finding, name: str) -> str:
    title = (each.title or name)[:_MOST_NAME]
    description = (each.description or title)[:_MOST_TEXT]
    category = (each.category or "Policies")[:_MOST_NAME]
    return _message("inspectionType", id=name, name=title, description=description, category=category)


def _message(kind: str, **attributes: str) -> str:
    listed = " ".join(f"{name}='{teamcity_value(text)}'" for name, text in attributes.items())
    return f"##teamcity[{kind} {listed}]\n"
