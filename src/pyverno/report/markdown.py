"""Tables as Markdown (GitHub's dialect)."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["markdown_table"]


def markdown_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows under headers; cells cannot break out of their column.

    >>> print(markdown_table(["ID", "POLICY"], [["1", "a|b"]]), end="")
    | ID | POLICY |
    |----|--------|
    | 1 | a\\|b |
    """
    lines = [_row(headers), "|" + "|".join("-" * (len(header) + 2) for header in headers) + "|"]
    lines += [_row([_cell(cell) for cell in row]) for row in rows]
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(text: str) -> str:
    for character, written in (("\\", "\\\\"), ("|", "\\|"), ("<", "&lt;"), ("\n", "<br>")):
        text = text.replace(character, written)
    return text
