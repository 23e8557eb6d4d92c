"""Rows of `pyverno test` as a table, JSON, YAML, Markdown or JUnit XML.

Pure text. This module must never decide whether a row is right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from xml.sax.saxutils import escape, quoteattr

from pyverno.cli.style import Style
from pyverno.cli.test.check import Row
from pyverno.kube.json import JSONObject, encode_indent
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.lazyregex import regex
from pyverno.report.table import draw_table

__all__ = ["render", "table"]

_HEADERS = ("ID", "POLICY", "RULE", "RESOURCE", "RESULT", "REASON")
_RESULT_COLUMN = _HEADERS.index("RESULT")
_NOT_XML = regex("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def table(rows: Sequence[Row], style: Style, *, detailed: bool) -> str:
    """Draw rows as a table, numbered from 1; no rows give the empty text."""
    return draw_table(
        [*_HEADERS, "MESSAGE"] if detailed else _HEADERS,
        [_cells(number, row, detailed=detailed) for number, row in enumerate(rows, 1)],
        paint_header=style.header,
        paint_cell=style.cells(_RESULT_COLUMN),
    )


def _cells(number: int, row: Row, *, detailed: bool) -> list[str]:
    cells = [str(number), row.policy, row.rule, row.resource, row.outcome, row.reason]
    return [*cells, row.message] if detailed else cells


def render(rows: Sequence[Row], form: str, *, detailed: bool) -> str:
    """Return rows in a format of `--output-format`, without a final newline."""
    return _FORMS[form](rows, detailed)


def _objects(rows: Sequence[Row], detailed: bool) -> list[JSONObject]:
    objects: list[JSONObject] = []
    for number, row in enumerate(rows, 1):
        item: JSONObject = dict(zip(_HEADERS, _cells(number, row, detailed=False), strict=True))
        item["ID"] = number
        if detailed:
            item["Message"] = row.message
        objects.append(item)
    return objects


def _json(rows: Sequence[Row], detailed: bool) -> str:
    return encode_indent(_objects(rows, detailed))


def _yaml(rows: Sequence[Row], detailed: bool) -> str:
    return dump_yaml(_objects(rows, detailed)).rstrip("\n")


def _markdown(rows: Sequence[Row], detailed: bool) -> str:
    headers = (*_HEADERS, "MESSAGE") if detailed else _HEADERS
    lines = ["".join(f"| {header} " for header in headers) + "| "]
    lines.append("".join(f"|{'-' * (len(header) + 2)}" for header in headers) + "|")
    for number, row in enumerate(rows, 1):
        cells = _cells(number, row, detailed=detailed)
        lines.append("".join(f"| {_in_markdown(cell)} " for cell in cells) + "|")
    return "\n".join(lines)


def _in_markdown(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", "<br>")


def _junit(rows: Sequence[Row], detailed: bool) -> str:
    suites: dict[str, list[Row]] = {}
    for row in rows:
        suites.setdefault(row.policy, []).append(row)
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuites {_counts(rows)}>"]
    for policy, own in suites.items():
        lines.append(f"  <testsuite name={_attribute(policy)} {_counts(own)}>")
        for row in own:
            lines += _case(row, detailed)
        lines.append("  </testsuite>")
    return "\n".join([*lines, "</testsuites>"])


def _counts(rows: Sequence[Row]) -> str:
    return f'tests="{len(rows)}" failures="{sum(row.counts_as_failed for row in rows)}"'


def _case(row: Row, detailed: bool) -> list[str]:
    start = f"    <testcase classname={_attribute(row.rule)} name={_attribute(row.resource)}>"
    named = [f"Policy: {row.policy}", f"Rule: {row.rule}", f"Resource: {row.resource}"]
    message = [f"Message: {row.message}"] if detailed else []
    if row.counts_as_failed:
        text = "\n".join([*named, f"Result: {row.outcome}", *message])
        body = f"      <failure message={_attribute(row.reason)}>{escape(_xml(text))}</failure>"
    else:
        text = "\n".join([f"Reason: {row.reason}", *named, *message])
        inside = _xml(text).replace("]]>", "]]]]><![CDATA[>")
        body = f"      <system-out><![CDATA[{inside}]]></system-out>"
    return [start, body, "    </testcase>"]


def _xml(text: str) -> str:
    """Remove characters that XML does not allow."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def _attribute(text: str) -> str:
    return quoteattr(_xml(text), {"\n": "&#10;", "\t": "&#9;", "\r": "&#13;"})


_FORMS: Mapping[str, Callable[[Sequence[Row], bool], str]] = {
    "json": _json,
    "yaml": _yaml,
    "markdown": _markdown,
    "junit": _junit,
}
