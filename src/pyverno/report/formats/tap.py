"""Findings in the Test Anything Protocol, version 14: one test point for each result.

A warning carries TAP's directive for failures that are shown and do not fail the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.report.finding import Finding
from pyverno.report.packed import packed
from pyverno.report.problem import Problem
from pyverno.report.rendered import Lost, no_bug, rendered
from pyverno.sinks.runners import tap_text

__all__ = ["tap"]

_SKIPPED, _EXPECTED = " # SKIP", " # TODO"
"""Directives of the protocol: a test point that was not run, and one whose failure does not count."""

_NUMBER = "\0"


def tap(findings: Iterable[Finding], problems: Sequence[Problem] = (), lost: Lost = no_bug) -> Iterator[str]:
    """Yield one TAP document; problems of the run are test points that failed.

    >>> from pyverno.engine.result import ResourceRef
    >>> print("".join(tap([Finding("p", "r", ResourceRef("v1", "Pod", "", "a"), "skip", "excused")])), end="")
    TAP version 14
    1..1
    ok 1 - p/r Pod/a # SKIP excused
    """
    found = packed(rendered(findings, lambda each: _point(*_finding_point(each)), lost))
    yield f"TAP version 14\n1..{len(problems) + len(found)}\n"
    points = chain((_point(*_problem_point(each)) for each in problems), found)
    for number, point in enumerate(points, 1):
        word, _, rest = point.partition(_NUMBER)
        yield f"{word}{number}{rest}"


def _point(is_ok: bool, name: str, directive: str, detail: JSONObject) -> str:
    """Return one test point with a mark in the place of its number."""
    head = f"{'ok' if is_ok else 'not ok'} {_NUMBER} - {tap_text(name)}{directive}"
    return "\n".join((head, *_block(detail))) + "\n"


_Point = tuple[bool, str, str, JSONObject]


def _problem_point(each: Problem) -> _Point:
    return False, f"pyverno {each.code}", "", {"message": each.message, "at": str(each.location)}


def _finding_point(each: Finding) -> _Point:
    name = f"{each.policy}/{each.rule}" if each.rule else each.policy
    title = f"{name} {each.resource}".rstrip(" /")
    match each.status:
        case "pass":
            return True, title, "", {}
        case "skip":
            return True, title, f"{_SKIPPED} {tap_text(each.message)}".rstrip(), {}
    directive = f"{_EXPECTED} warning" if each.status == "warn" else ""
    detail = {"message": each.message, "severity": each.severity, "status": each.status, "at": str(each.location)}
    return False, title, directive, detail


def _block(detail: JSONObject) -> Iterator[str]:
    """Yield the YAML block of a test point, two blanks in."""
    filled = {key: value for key, value in detail.items() if value}
    if filled:
        yield "  ---"
        yield from (f"  {line}".rstrip() for line in dump_yaml(filled).splitlines())
        yield "  ..."
