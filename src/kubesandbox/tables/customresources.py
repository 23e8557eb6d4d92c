"""Rows of custom resources, by the `additionalPrinterColumns` of their definition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

from kubesandbox.tables.cells import moment, name_of, text
from kubesandbox.tables.cells import since as written_since
from kubesandbox.tables.jsonpath import JSONPathError, Path, compile_path
from kubesandbox.tables.printer import NAME, Cells, Column, Printer
from pyverno.kube.gofloat import float_verb_text
from pyverno.kube.json import JSON, JSONObject, encode

__all__ = ["custom_printer"]

_AGE: JSONObject = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def custom_printer(additional: Iterable[JSONObject] | None) -> Printer:
    """Return the printer of a version of a custom resource; without columns of its own it shows the age.

    A column whose path cannot be read ends the table: it and those after it are left out, as in a cluster.
    """
    columns = [NAME]
    cells: list[Callable[[JSONObject, datetime], JSON]] = []
    for entry in list(additional or ()) or [_AGE]:
        try:
            path = compile_path(text(entry, "jsonPath"))
        except JSONPathError:
            break
        columns.append(_column(entry))
        cells.append(_cell(text(entry, "type"), path))
    return Printer(tuple(columns), _row(cells))


def _column(entry: JSONObject) -> Column:
    about = text(entry, "description")
    if not about:
        about = f"Custom resource definition column (in JSONPath format): {text(entry, 'jsonPath')}"
    return Column(text(entry, "name"), text(entry, "type"), text(entry, "format"), about, entry.get("priority") or 0)


def _row(cells: list[Callable[[JSONObject, datetime], JSON]]) -> Cells:
    def row(body: JSONObject, now: datetime) -> Iterator[JSON]:
        yield name_of(body)
        for cell in cells:
            yield cell(body, now)

    return row


def _cell(kind: str, path: Path) -> Callable[[JSONObject, datetime], JSON]:
    def cell(body: JSONObject, now: datetime) -> JSON:
        try:
            found = path(body)
        except LookupError:
            return None
        # only the first result counts, as in a cluster
        return _value(kind, found[0], now) if found else None

    return cell


def _value(kind: str, value: JSON, now: datetime) -> JSON:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    match kind:
        case "string":
            return _format_value(value)
        case "integer":
            return int(value) if is_number else None
        case "number":
            return value if is_number else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date":
            return _date(value, now)
        case _:
            return None


def _format_value(value: JSON) -> JSON:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "<nil>"}[value]
    if isinstance(value, float):
        return float_verb_text(value)
    return str(value) if isinstance(value, int) else encode(value)


def _date(value: JSON, now: datetime) -> JSON:
    if not isinstance(value, str):
        return None
    return "<invalid>" if value and moment(value) is None else written_since(value, now)
