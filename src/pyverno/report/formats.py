"""The formats of findings by name.

To add one: write its function in a module of its own and put it into the table here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from pyverno.kube.json import JSONObject, encode_indent
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.report.finding import Finding
from pyverno.report.github import github
from pyverno.report.junit import Case, junit
from pyverno.report.sarif import sarif

__all__ = ["FORMATTERS"]


def _listing(findings: Iterable[Finding]) -> JSONObject:
    items = [*findings]
    counts = dict.fromkeys(("pass", "fail", "warn", "error", "skip"), 0)
    for each in items:
        counts[each.status] += 1
    return {"results": [each.to_json() for each in items], "summary": counts}


def _json(findings: Iterable[Finding]) -> str:
    return encode_indent(_listing(findings), escape_html=False) + "\n"


def _yaml(findings: Iterable[Finding]) -> str:
    return dump_yaml(_listing(findings))


def _junit(findings: Iterable[Finding]) -> str:
    return junit(
        Case(
            policy=each.policy,
            rule=each.rule,
            resource=str(each.resource),
            outcome=each.status.title(),
            reason=each.status,
            message=f"{each.message} ({each.location})" if each.is_problem else each.message,
            is_failure=each.status in ("fail", "error"),
        )
        for each in findings
    )


FORMATTERS: Mapping[str, Callable[[Iterable[Finding]], str]] = {
    "json": _json,
    "yaml": _yaml,
    "sarif": sarif,
    "junit": _junit,
    "github": github,
}
"""Findings to text, by the name that the command line uses."""
