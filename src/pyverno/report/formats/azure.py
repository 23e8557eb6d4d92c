"""Findings as logging commands of Azure Pipelines: issues of a run with file, line and column.

This module must never let a text of a resource start a command.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pyverno.errors import Location
from pyverno.report.finding import Finding
from pyverno.report.packed import packed
from pyverno.report.problem import Problem
from pyverno.report.rendered import Lost, no_bug, rendered
from pyverno.sinks.runners import azure_data, azure_property

__all__ = ["azure"]

_TYPES: Final = {"fail": "error", "error": "error", "warn": "warning"}


def azure(findings: Iterable[Finding], problems: Sequence[Problem] = (), lost: Lost = no_bug) -> Iterator[str]:
    """Yield one issue for each finding that needs attention, and for each problem of the run.

    >>> from pyverno.engine.result import ResourceRef
    >>> from pyverno.errors import Location
    >>> pod = ResourceRef("v1", "Pod", "", "a")
    >>> print(*azure([Finding("p", "r", pod, "fail", "50%; no", location=Location("a.yaml", 7, 3))]), end="")
    ##vso[task.logissue type=error;sourcepath=a.yaml;linenumber=7;columnnumber=3;code=p/r]Pod/a: 50%AZP25; no
    """
    lines = packed(rendered(findings, _finding, lost))
    for each in problems:
        yield _issue("error", each.location, f"pyverno/{each.code}", each.message)
    yield from lines


def _finding(each: Finding) -> str:
    if not each.is_problem:
        return ""
    text = f"{each.resource}: {each.message or 'validation failed'}"
    return _issue(_TYPES[each.status], each.location, each.rule_id, text)


def _issue(kind: str, where: Location, code: str, text: str) -> str:
    properties = {"type": kind}
    if where.file:
        properties["sourcepath"] = where.file
    if where.line:
        properties |= {"linenumber": str(where.line), "columnnumber": str(where.column)}
    properties["code"] = code
    listed = ";".join(f"{name}={azure_property(value)}" for name, value in properties.items())
    return f"##vso[task.logissue {listed}]{azure_data(text)}\n"
