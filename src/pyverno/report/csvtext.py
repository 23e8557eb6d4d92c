"""Results as comma-separated values (RFC 4180), for spreadsheets."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pyverno.report.collected import Collected
from pyverno.sinks.cells import csv_cell

__all__ = ["csv_lines", "csv_row", "csv_rows", "csv_text"]

_HEADERS: Final = (
    *(
        "status",
        "severity",
        "category",
        "policy",
        "rule",
        "namespace",
        "kind",
        "name",
        "message",
        "source",
        "timestamp",
    ),
)


def csv_text(results: Iterable[Collected]) -> str:
    """Return one row a result, under a row of headers.

    A cell that a spreadsheet would take for a formula begins with an apostrophe.

    >>> csv_text([]).splitlines()[0][:24]
    'status,severity,category'
    """
    return "".join(csv_lines(results))


def csv_lines(results: Iterable[Collected]) -> Iterator[str]:
    """Yield the rows of `csv_text`."""
    yield csv_row(_HEADERS)
    yield from map(csv_row, _rows(results))


def _rows(results: Iterable[Collected]) -> Iterator[Sequence[str]]:
    for each in results:
        found, ref = each.finding, each.finding.resource
        yield (
            *(found.status, found.severity, found.category, found.policy, found.rule),
            *(ref.namespace, ref.kind, ref.name, found.message, each.source, str(each.seconds or "")),
        )


def csv_rows(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return rows under headers; a cell that a spreadsheet would take for a formula begins with an apostrophe.

    >>> csv_rows(["a"], [["=1+1"]])
    "a\\r\\n'=1+1\\r\\n"
    """
    return "".join((csv_row(headers), *map(csv_row, rows)))


def csv_row(row: Sequence[str]) -> str:
    """Return one row; a cell that a spreadsheet would take for a formula begins with an apostrophe."""
    text = io.StringIO()
    csv.writer(text).writerow([csv_cell(cell) for cell in row])
    return text.getvalue()
