"""Findings as workflow commands of GitHub Actions: annotations at file, line and column.

This module must never let a text of a resource start a command of its own.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyverno.report.finding import Finding

__all__ = ["github"]

_COMMANDS = {"fail": "error", "error": "error", "warn": "warning"}


def github(findings: Iterable[Finding]) -> str:
    """Return one annotation per problem.

    >>> from pyverno.engine.result import ResourceRef
    >>> from pyverno.errors import Location
    >>> pod = ResourceRef("v1", "Pod", "default", "a")
    >>> print(github([Finding("p", "r", pod, "fail", "no\\ntags", location=Location("pod.yaml", 7, 3))]), end="")
    ::error file=pod.yaml,line=7,col=3,title=p/r::default/Pod/a: no%0Atags
    """
    lines = []
    for each in findings:
        if each.is_problem:
            where = each.location
            properties = {"file": where.file, "line": str(where.line), "col": str(where.column), "title": each.rule_id}
            listed = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
            text = _data(f"{each.resource}: {each.message or 'validation failed'}")
            lines.append(f"::{_COMMANDS[each.status]} {listed}::{text}\n")
    return "".join(lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
