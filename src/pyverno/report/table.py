"""Tables as Kyverno's command line draws them.

One blank on both sides of a cell, left-aligned, columns separated by `│`, rules of `─` above and below the header and
at the end.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence

__all__ = ["BOX", "MAX_CELL", "draw_table"]

MAX_CELL = 300
_BOX = ("│", "─")
BOX = "".join(_BOX)
"""The characters that lines are drawn with."""
COUNT_FROM = 10

Paint = Callable[[str], str]


def _plain(text: str) -> str:
    return text


def draw_table(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    paint_header: Paint = _plain,
    paint_cell: Callable[[int, str], str] | None = None,
    is_ascii: bool = False,
) -> str:
    """Draw rows under headers; no rows give the empty text. `is_ascii` draws lines with `|` and `-`.

    With more than ten rows the first header carries their number. `paint_cell` gets the column and the padded text of a
    cell and may colour it; colours do not count towards the width.

    >>> print(draw_table(["ID", "POLICY"], [["1", "require-labels"]]))
    │────│────────────────│
    │ ID │ POLICY         │
    │────│────────────────│
    │ 1  │ require-labels │
    │────│────────────────│
    """
    if not rows:
        return ""
    titles = [header.upper() for header in headers]
    if len(rows) > COUNT_FROM:
        titles[0] = f"{titles[0]} ({len(rows)})"
    cells = [[_lines(cell) for cell in row] for row in rows]
    widths = [
        max(len(title), *(len(line) for row in cells for line in row[column])) for column, title in enumerate(titles)
    ]
    bar, line = ("|", "-") if is_ascii else _BOX
    rule = bar + bar.join(line * (width + 2) for width in widths) + bar
    header = bar + bar.join(paint_header(f" {title:<{width}} ") for title, width in zip(titles, widths, strict=True))
    drawn = [rule, header + bar, rule]
    for row in cells:
        for number in range(max(len(lines) for lines in row)):
            pieces = []
            for column, (lines, width) in enumerate(zip(row, widths, strict=True)):
                text = f" {lines[number] if number < len(lines) else '':<{width}} "
                pieces.append(paint_cell(column, text) if paint_cell else text)
            drawn.append(bar + bar.join(pieces) + bar)
    drawn.append(rule)
    return "\n".join(drawn)


def _lines(cell: str) -> list[str]:
    lines: list[str] = []
    for line in cell.split("\n"):
        lines.extend(textwrap.wrap(line, MAX_CELL, break_long_words=False) or [""] if len(line) > MAX_CELL else [line])
    return lines
