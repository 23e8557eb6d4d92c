"""Tables as Markdown (GitHub's dialect)."""

from __future__ import annotations

from collections.abc import Sequence

from pyverno.sinks.markdown import markdown_cell

__all__ = ["markdown_row", "markdown_table"]


def markdown_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows under headers; cells cannot break out of their column.

    >>> print(markdown_table(["ID", "POLICY"], [["1", "a|b"]]), end="")
    | ID | POLICY |
    |----|--------|
    | 1 | a\\|b |
    """
    rule = "|" + "|".join("-" * (len(header) + 2) for header in headers) + "|\n"
    return "".join((_row(headers), rule, *map(markdown_row, rows)))


def markdown_row(cells: Sequence[str]) -> str:
    """Return one row of a table."""
    return _row([markdown_cell(cell) for cell in cells])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |\n"
