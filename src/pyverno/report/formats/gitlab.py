"""Findings as a Code Quality report of GitLab, which a merge request shows at the changed lines.

A fingerprint contains no line number, so that it identifies the same finding in every run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from pyverno.errors import Location
from pyverno.kube.json import JSONObject, encode_indent
from pyverno.report.finding import Finding
from pyverno.report.identity import identity
from pyverno.report.problem import Problem

__all__ = ["gitlab"]

_SEVERITIES: Final = {"critical": "blocker", "high": "critical", "medium": "major", "low": "minor", "info": "info"}


def gitlab(findings: Iterable[Finding], problems: Sequence[Problem] = ()) -> str:
    """Return one list of issues: findings that need attention, and problems of the run.

    >>> gitlab([])
    '[]\\n'
    """
    seen: Counter[str] = Counter()
    issues = [
        _issue(each.message, f"pyverno/{each.code}", "blocker", each.location, (each.code, each.message), seen=seen)
        for each in problems
    ]
    for each in findings:
        if each.is_problem:
            text = f"{each.resource}: {each.message or 'validation failed'}"
            issues.append(_issue(text, each.rule_id, _severity(each), each.location, identity(each), seen=seen))
    return encode_indent(issues, escape_html=False) + "\n"


def _severity(each: Finding) -> str:
    return "minor" if each.status == "warn" else _SEVERITIES.get(each.severity, "major")


def _issue(
    text: str, name: str, severity: str, where: Location, parts: Sequence[str], *, seen: Counter[str]
) -> JSONObject:
    from hashlib import sha256  # few runs write this format

    file = where.file.removeprefix("./").replace("\\", "/") or "stdin"
    key = "\0".join((file, *parts))
    seen[key] += 1
    digest = sha256(f"{key}\0{seen[key]}".encode("utf-8", "replace")).hexdigest()
    return {
        "description": text,
        "check_name": name,
        "fingerprint": digest,
        "severity": severity,
        "location": {"path": "stdin" if file == "-" else file, "lines": {"begin": max(where.line, 1)}},
    }
