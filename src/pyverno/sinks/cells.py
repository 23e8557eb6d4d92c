"""Cells of tables that a spreadsheet opens (CSV)."""

from __future__ import annotations

from typing import Final

from pyverno.sinks.characters import visible
from pyverno.sinks.runners import without_commands

__all__ = ["FORMULAS", "csv_cell"]

FORMULAS: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Beginnings that make a spreadsheet compute a cell, full-width forms too."""


def csv_cell(text: str) -> str:
    """Return a cell before its quotes; what a spreadsheet would compute begins with an apostrophe.

    >>> csv_cell("=1+1"), csv_cell("a\\x1b")
    ("'=1+1", 'a\\\\x1b')
    """
    is_formula = text.lstrip(" \xa0").startswith(FORMULAS)
    shown = without_commands(visible(text))
    return f"'{shown}" if is_formula else shown  # guard: no cell is a formula
