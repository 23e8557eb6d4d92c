"""Findings as workflow commands of GitHub Actions: annotations at file, line and column.

This module must never let a text of a resource start a command.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pyverno.errors import Location
from pyverno.report.finding import Finding
from pyverno.report.packed import packed
from pyverno.report.problem import Problem
from pyverno.report.rendered import Lost, no_bug, rendered
from pyverno.sinks.runners import github_data, github_property

__all__ = ["github"]

_COMMANDS = {"fail": "error", "error": "error", "warn": "warning"}


def github(findings: Iterable[Finding], problems: Sequence[Problem] = (), lost: Lost = no_bug) -> Iterator[str]:
    """Yield one annotation per finding that needs attention, and per problem of the run.

    >>> from pyverno.engine.result import ResourceRef
    >>> from pyverno.errors import Location
    >>> pod = ResourceRef("v1", "Pod", "default", "a")
    >>> print(*github([Finding("p", "r", pod, "fail", "no\\ntags", location=Location("pod.yaml", 7, 3))]), end="")
    ::error file=pod.yaml,line=7,col=3,title=p/r::default/Pod/a: no%0Atags
    """
    lines = packed(rendered(findings, _finding, lost))
    for each in problems:
        yield _annotation("error", each.location, f"pyverno {each.code}", each.message)
    yield from lines


def _finding(each: Finding) -> str:
    if not each.is_problem:
        return ""
    text = f"{each.resource}: {each.message or 'validation failed'}"
    return _annotation(_COMMANDS[each.status], each.location, each.rule_id, text)


def _annotation(command: str, where: Location, title: str, text: str) -> str:
    properties = {"title": title}
    if where.line:
        properties = {"file": where.file, "line": str(where.line), "col": str(where.column), **properties}
    elif where.file:
        properties = {"file": where.file, **properties}
    listed = ",".join(f"{name}={github_property(value)}" for name, value in properties.items())
    return f"::{command} {listed}::{github_data(text)}\n"
