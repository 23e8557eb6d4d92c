"""Rows of `pyverno test` as a table, JSON, YAML, Markdown, JUnit XML, TAP, CSV or HTML.

Pure text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from pyverno.cli.style import Style
from pyverno.cli.test.check import Row
from pyverno.engine.result import ResourceRef
from pyverno.kube.json import JSONObject
from pyverno.report.finding import Finding
from pyverno.report.formats.junit import Case, junit, write_case
from pyverno.report.formats.listing import json_document, yaml_document
from pyverno.report.formats.registry import FORMATTERS
from pyverno.report.problem import Problem
from pyverno.report.table import draw_table
from pyverno.sinks.markdown import markdown_cell

__all__ = ["render", "table"]

_HEADERS = ("ID", "POLICY", "RULE", "RESOURCE", "RESULT", "REASON")
_RESULT_COLUMN = _HEADERS.index("RESULT")


def table(rows: Sequence[Row], style: Style, *, detailed: bool, is_ascii: bool = False) -> str:
    """Draw rows as a table, numbered from 1; no rows give the empty text."""
    return draw_table(
        [*_HEADERS, "MESSAGE"] if detailed else _HEADERS,
        [_cells(number, row, detailed=detailed) for number, row in enumerate(rows, 1)],
        paint_header=style.header,
        paint_cell=style.cells(_RESULT_COLUMN),
        is_ascii=is_ascii,
    )


def _cells(number: int, row: Row, *, detailed: bool) -> list[str]:
    cells = [str(number), row.policy, row.rule, row.resource, row.outcome, row.reason]
    return [*cells, row.message] if detailed else cells


def render(
    rows: Sequence[Row],
    form: str,
    problems: Sequence[Problem] = (),
    *,
    detailed: bool = False,
    measures: JSONObject | None = None,
) -> str:
    """Return rows, and the problems of the run, in a format of `--output-format`, without a final newline.

    `measures` are fields that JSON and YAML have besides.
    """
    if measures and form in _LISTINGS:
        return _LISTINGS[form]({**_listing(rows, problems, detailed), **measures})
    return _FORMS[form](rows, problems, detailed)


def _objects(rows: Sequence[Row], *, detailed: bool) -> Iterator[JSONObject]:
    for number, row in enumerate(rows, 1):
        item: JSONObject = dict(zip(_HEADERS, _cells(number, row, detailed=False), strict=True))
        item["ID"] = number
        if detailed:
            item["Message"] = row.message
        yield item


def _listing(rows: Sequence[Row], problems: Sequence[Problem], detailed: bool) -> JSONObject:
    failed = sum(row.counts_as_failed for row in rows)
    return {
        "results": _objects(rows, detailed=detailed),
        "errors": [problem.to_json() for problem in problems],
        "summary": {"pass": len(rows) - failed, "fail": failed, "error": len(problems)},
    }


def _json(rows: Sequence[Row], problems: Sequence[Problem], detailed: bool) -> str:
    return _json_text(_listing(rows, problems, detailed))


def _json_text(listing: JSONObject) -> str:
    return "".join(json_document(listing, escape_html=True))


def _yaml(rows: Sequence[Row], problems: Sequence[Problem], detailed: bool) -> str:
    return _yaml_text(_listing(rows, problems, detailed))


def _yaml_text(listing: JSONObject) -> str:
    return "".join(yaml_document(listing)).rstrip("\n")


def _markdown(rows: Sequence[Row], problems: Sequence[Problem], detailed: bool) -> str:
    headers = (*_HEADERS, "MESSAGE") if detailed else _HEADERS
    lines = ["".join(f"| {header} " for header in headers) + "| "]
    lines.append("".join(f"|{'-' * (len(header) + 2)}" for header in headers) + "|")
    for number, row in enumerate(rows, 1):
        cells = _cells(number, row, detailed=detailed)
        lines.append("".join(f"| {markdown_cell(cell)} " for cell in cells) + "|")
    if problems:
        lines.append("")
        lines += [f"- {markdown_cell(f'{each.location}: {each.message}'.removeprefix(': '))}" for each in problems]
    return "\n".join(lines)


def _junit(rows: Sequence[Row], problems: Sequence[Problem], detailed: bool) -> str:
    cases = (
        Case(
            policy=row.policy,
            rule=row.rule,
            resource=row.resource,
            outcome=row.outcome,
            reason=row.reason,
            message=row.message,
            is_failure=row.counts_as_failed,
            has_message=detailed,
        )
        for row in rows
    )
    return "".join(junit(map(write_case, cases), problems)).rstrip("\n")


def _findings(rows: Sequence[Row]) -> Iterator[Finding]:
    """Yield rows as findings, for the formats that have one line for each."""
    for row in rows:
        status = "fail" if row.counts_as_failed else "skip" if row.outcome == "Skip" else "pass"
        *_, kind, namespace, name = ("", "", *row.resource.split("/"))
        text = ": ".join(part for part in (row.reason, row.message) if part)
        yield Finding(row.policy, row.rule, ResourceRef("", kind, namespace, name), status, text)


def _format(name: str) -> Callable[[Sequence[Row], Sequence[Problem], bool], str]:
    return lambda rows, problems, _detailed: FORMATTERS[name](_findings(rows), problems).rstrip("\n")


_LISTINGS: Mapping[str, Callable[[JSONObject], str]] = {"json": _json_text, "yaml": _yaml_text}
_FORMS: Mapping[str, Callable[[Sequence[Row], Sequence[Problem], bool], str]] = {
    "json": _json,
    "yaml": _yaml,
    "markdown": _markdown,
    "junit": _junit,
    "tap": _format("tap"),
    "csv": _format("csv"),
    "html": _format("html"),
}
