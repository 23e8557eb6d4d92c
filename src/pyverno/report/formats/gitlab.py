"""Findings as a Code Quality report of GitLab, which a merge request shows at the changed lines.

A fingerprint contains no line number, so that it identifies the same finding in every run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from pyverno.errors import Location
from pyverno.report.finding import Finding
from pyverno.report.formats.listing import indented, json_list
from pyverno.report.identity import identity
from pyverno.report.packed import packed
from pyverno.report.problem import Problem
from pyverno.report.rendered import Lost, no_bug, rendered

__all__ = ["gitlab"]

_SEVERITIES: Final = {"critical": "blocker", "high": "critical", "medium": "major", "low": "minor", "info": "info"}


def gitlab(findings: Iterable[Finding], problems: Sequence[Problem] = (), lost: Lost = no_bug) -> Iterator[str]:
    """Yield one list of issues: findings that need attention, and problems of the run.

    >>> "".join(gitlab([]))
    '[]\\n'
    """
    seen: Counter[str] = Counter()
    issues = packed(rendered(findings, lambda each: _finding(each, seen), lost))
    own = (
        _issue(each.message, f"pyverno/{each.code}", "blocker", each.location, (each.code, each.message), seen=seen)
        for each in problems
    )
    yield from json_list(chain(own, issues))
    yield "\n"


def _finding(each: Finding, seen: Counter[str]) -> str:
    if not each.is_problem:
        return ""
    text = f"{each.resource}: {each.message or 'validation failed'}"
    return _issue(text, each.rule_id, _severity(each), each.location, identity(each), seen=seen)


def _severity(each: Finding) -> str:
    return "minor" if each.status == "warn" else _SEVERITIES.get(each.severity, "major")


def _issue(text: str, name: str, severity: str, where: Location, parts: Sequence[str], *, seen: Counter[str]) -> str:
    from hashlib import sha256  # few runs write this format

    file = where.file.removeprefix("./").replace("\\", "/") or "stdin"
    key = "\0".join((file, *parts))
    seen[key] += 1
    digest = sha256(f"{key}\0{seen[key]}".encode("utf-8", "replace")).hexdigest()
    return indented(
        {
            "description": text,
            "check_name": name,
            "fingerprint": digest,
            "severity": severity,
            "location": {"path": "stdin" if file == "-" else file, "lines": {"begin": max(where.line, 1)}},
        }
    )
