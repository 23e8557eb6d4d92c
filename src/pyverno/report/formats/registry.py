"""The formats of findings by name.

To add one: write its function in a new module and add it to the table here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from pyverno.kube.json import JSONObject, encode_indent
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.report.collected import Collected
from pyverno.report.finding import Finding
from pyverno.report.formats.github import github
from pyverno.report.formats.junit import Case, junit
from pyverno.report.formats.sarif import sarif
from pyverno.report.problem import Problem

__all__ = ["FORMATTERS", "Formatter"]


STATUSES = ("pass", "fail", "warn", "error", "skip")


class Formatter(Protocol):
    """Writes findings, and the problems of the run that they come from, as text."""

    def __call__(self, findings: Iterable[Finding], problems: Sequence[Problem] = (), /) -> str:
        """Return one document."""
        ...


def _listing(findings: Iterable[Finding], problems: Sequence[Problem]) -> JSONObject:
    items = [*findings]
    counts = dict.fromkeys(STATUSES, 0)
    for each in items:
        counts[each.status] += 1
    # a run with unreadable input fails, whatever its results are
    counts["error"] += len(problems)
    return {
        "results": [each.to_json() for each in items],
        "errors": [each.to_json() for each in problems],
        "summary": counts,
    }


def _json(findings: Iterable[Finding], problems: Sequence[Problem] = (), /) -> str:
    return encode_indent(_listing(findings, problems), escape_html=False) + "\n"


def _yaml(findings: Iterable[Finding], problems: Sequence[Problem] = (), /) -> str:
    return dump_yaml(_listing(findings, problems))


def _junit(findings: Iterable[Finding], problems: Sequence[Problem] = (), /) -> str:
    cases = (
        Case(
            policy=each.policy,
            rule=each.rule,
            resource=str(each.resource),
            outcome=each.status.title(),
            reason=each.status,
            message=f"{each.message} ({each.location})" if each.is_problem else each.message,
            is_failure=each.status == "fail",
            is_error=each.status == "error",
        )
        for each in findings
    )
    return junit(cases, problems)


def _gitlab(findings: Iterable[Finding], problems: Sequence[Problem] = (), /) -> str:
    from pyverno.report.formats.gitlab import gitlab  # a run writes one format

    return gitlab(findings, problems)


def _azure(findings: Iterable[Finding], problems: Sequence[Problem] = (), /) -> str:
    from pyverno.report.formats.azure import azure

    return azure(findings, problems)


def _teamcity(findings: Iterable[Finding], problems: Sequence[Problem] = (), /) -> str:
    from pyverno.report.formats.teamcity import teamcity

    return teamcity(findings, problems)


def _tap(findings: Iterable[Finding], problems: Sequence[Problem] = (), /) -> str:
    from pyverno.report.formats.tap import tap

    return tap(findings, problems)


def _markdown(findings: Iterable[Finding], problems: Sequence[Problem] = (), /) -> str:
    from pyverno.report.formats.jobsummary import job_summary

    return job_summary(findings, problems)


def _csv(findings: Iterable[Finding], problems: Sequence[Problem] = (), /) -> str:
    from pyverno.report.formats.spreadsheet import spreadsheet

    return spreadsheet(findings, problems)


def _html(findings: Iterable[Finding], problems: Sequence[Problem] = (), /) -> str:
    from pyverno.report.html import html_page
    from pyverno.report.overview import overview_of

    texts = [f"{each.location}: {each.message}".removeprefix(": ") for each in problems]
    return html_page(overview_of([Collected(each) for each in findings], problems=texts))


FORMATTERS: Mapping[str, Formatter] = {
    "json": _json,
    "yaml": _yaml,
    "sarif": sarif,
    "junit": _junit,
    "github": github,
    "gitlab": _gitlab,
    "azure": _azure,
    "teamcity": _teamcity,
    "tap": _tap,
    "markdown": _markdown,
    "csv": _csv,
    "html": _html,
}
"""Findings to text, by the name that the command line uses."""
