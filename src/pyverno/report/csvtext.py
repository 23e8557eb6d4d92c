"""Results as comma-separated values (RFC 4180), for spreadsheets."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import Final

from pyverno.report.collected import Collected

__all__ = ["csv_text"]

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
_FORMULAS: Final = ("=", "+", "-", "@", "\t", "\r")
"""Beginnings that make a spreadsheet compute a cell."""


def csv_text(results: Iterable[Collected]) -> str:
    """Return one row a result, under a row of headers.

    A cell that a spreadsheet would take for a formula begins with an apostrophe.

    >>> csv_text([]).splitlines()[0][:24]
    'status,severity,category'
    """
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(_HEADERS)
    for each in results:
        found, ref = each.finding, each.finding.resource
        cells = (
            *(found.status, found.severity, found.category, found.policy, found.rule),
            *(ref.namespace, ref.kind, ref.name, found.message, each.source, str(each.seconds or "")),
        )
        writer.writerow([f"'{cell}" if cell.startswith(_FORMULAS) else cell for cell in cells])
    return text.getvalue()
