"""The formats of findings by name.

To add one: write its function in a new module and add it to the table here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.report.finding import Finding
from pyverno.report.formats.github import github
from pyverno.report.formats.junit import Case, WrittenCase, junit, write_case
from pyverno.report.formats.listing import indented, json_list
from pyverno.report.formats.sarif import sarif
from pyverno.report.packed import packed
from pyverno.report.problem import Problem
from pyverno.report.rendered import Lost, no_bug, rendered

__all__ = ["FORMATTERS", "WRITERS", "Formatter", "Writer"]


STATUSES = ("pass", "fail", "warn", "error", "skip")


class Writer(Protocol):
    """Writes findings, and the problems of the run that they come from, piece by piece.

    The findings are read first and the problems after them, so that a run may add problems while it finds. What is kept
    of a finding is its text, compressed.
    """

    def __call__(
        self, findings: Iterable[Finding], problems: Sequence[Problem] = (), lost: Lost = no_bug, /
    ) -> Iterator[str]:
        """Yield one document."""
        ...


class Formatter(Protocol):
    """Writes findings, and the problems of the run that they come from, as text."""

    def __call__(self, findings: Iterable[Finding], problems: Sequence[Problem] = (), /) -> str:
        """Return one document."""
        ...


class _Listing:
    """The texts of findings, and their number by status."""

    def __init__(self, findings: Iterable[Finding], render: Callable[[JSONObject], str], lost: Lost) -> None:
        self._render = render
        self._counts = dict.fromkeys(STATUSES, 0)
        self.texts = packed(rendered(findings, self._take, lost))

    def _take(self, each: Finding) -> str:
        text = self._render(each.to_json())
        self._counts[each.status] += 1
        return text

    def summary(self, problems: Sequence[Problem]) -> JSONObject:
        """Return the counts; a run with unreadable input fails, whatever its results are."""
        return {**self._counts, "error": self._counts["error"] + len(problems)}


def _json(findings: Iterable[Finding], problems: Sequence[Problem] = (), lost: Lost = no_bug, /) -> Iterator[str]:
    listing = _Listing(findings, lambda item: indented(item, 2), lost)
    yield f'{{\n  "errors": {indented([each.to_json() for each in problems])},\n  "results": '
    yield from json_list(listing.texts, 1)
    yield f',\n  "summary": {indented(listing.summary(problems))}\n}}\n'


def _yaml(findings: Iterable[Finding], problems: Sequence[Problem] = (), lost: Lost = no_bug, /) -> Iterator[str]:
    listing = _Listing(findings, lambda item: dump_yaml([item]), lost)
    yield dump_yaml({"errors": [each.to_json() for each in problems]})
    yield "results:\n" if listing.texts else "results: []\n"
    yield from listing.texts
    yield dump_yaml({"summary": listing.summary(problems)})


def _junit(findings: Iterable[Finding], problems: Sequence[Problem] = (), lost: Lost = no_bug, /) -> Iterator[str]:
    return junit(rendered(findings, _case, lost), problems)


def _case(each: Finding) -> WrittenCase:
    case = Case(
        policy=each.policy,
        rule=each.rule,
        resource=str(each.resource),
        outcome=each.status.title(),
        reason=each.status,
        message=f"{each.message} ({each.location})" if each.is_problem else each.message,
        is_failure=each.status == "fail",
        is_error=each.status == "error",
    )
    return write_case(case)


def _gitlab(findings: Iterable[Finding], problems: Sequence[Problem] = (), lost: Lost = no_bug, /) -> Iterator[str]:
    from pyverno.report.formats.gitlab import gitlab  # a run writes one format

    return gitlab(findings, problems, lost)


def _azure(findings: Iterable[Finding], problems: Sequence[Problem] = (), lost: Lost = no_bug, /) -> Iterator[str]:
    from pyverno.report.formats.azure import azure

    return azure(findings, problems, lost)


def _teamcity(findings: Iterable[Finding], problems: Sequence[Problem] = (), lost: Lost = no_bug, /) -> Iterator[str]:
    from pyverno.report.formats.teamcity import teamcity

    return teamcity(findings, problems, lost)


def _tap(findings: Iterable[Finding], problems: Sequence[Problem] = (), lost: Lost = no_bug, /) -> Iterator[str]:
    from pyverno.report.formats.tap import tap

    return tap(findings, problems, lost)


def _markdown(findings: Iterable[Finding], problems: Sequence[Problem] = (), lost: Lost = no_bug, /) -> Iterator[str]:
    from pyverno.report.formats.jobsummary import job_summary

    return job_summary(findings, problems, lost)


def _csv(findings: Iterable[Finding], problems: Sequence[Problem] = (), lost: Lost = no_bug, /) -> Iterator[str]:
    from pyverno.report.formats.spreadsheet import spreadsheet

    return spreadsheet(findings, problems, lost)


def _html(findings: Iterable[Finding], problems: Sequence[Problem] = (), lost: Lost = no_bug, /) -> Iterator[str]:
    from pyverno.report.formats.htmlpage import page

    return page(findings, problems, lost)


WRITERS: Mapping[str, Writer] = {
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
"""Findings to pieces of a document, by the name that the command line uses."""


def _joined(writer: Writer) -> Formatter:
    return lambda findings, problems=(), /: "".join(writer(findings, problems))


FORMATTERS: Mapping[str, Formatter] = {name: _joined(writer) for name, writer in WRITERS.items()}
"""Findings to text, by the same names."""
