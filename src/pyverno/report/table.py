"""Tables as Kyverno's command line draws them.

One blank on both sides of a cell, left-aligned, columns separated by `│`, rules of `─` above and below the header and
at the end.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from pyverno.report.packed import Packed
from pyverno.report.rendered import no_bug, rendered

__all__ = ["BOX", "MAX_CELL", "draw_table", "table_lines"]

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
    return "\n".join(table_lines(headers, rows, paint_header=paint_header, paint_cell=paint_cell, is_ascii=is_ascii))


def table_lines(
    headers: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    paint_header: Paint = _plain,
    paint_cell: Callable[[int, str], str] | None = None,
    is_ascii: bool = False,
    lost: Callable[[Sequence[str], Exception], None] = no_bug,
) -> Iterator[str]:
    """Yield the lines of a table (see `draw_table`), after all rows were read; `lost` takes rows with a bug."""
    cells = Packed()
    widths = [0 for _ in headers]
    for row, sizes in rendered(rows, lambda row: (row, [max(map(len, _lines(cell))) for cell in row]), lost):
        widths = [*map(max, widths, sizes)]
        for cell in row:
            cells.add(cell)
    if not cells:
        return
    titles = [header.upper() for header in headers]
    total = len(cells) // len(headers)
    if total > COUNT_FROM:
        titles[0] = f"{titles[0]} ({total})"
    widths = [max(len(title), width) for title, width in zip(titles, widths, strict=True)]
    bar, line = ("|", "-") if is_ascii else _BOX
    rule = bar + bar.join(line * (width + 2) for width in widths) + bar
    header = bar + bar.join(paint_header(f" {title:<{width}} ") for title, width in zip(titles, widths, strict=True))
    yield from (rule, header + bar, rule)
    texts = iter(cells)
    for _ in range(total):
        parts = [_lines(cell) for cell in islice(texts, len(headers))]
        for number in range(max(map(len, parts))):
            pieces = []
            for column, (lines, width) in enumerate(zip(parts, widths, strict=True)):
                text = f" {lines[number] if number < len(lines) else '':<{width}} "
                pieces.append(paint_cell(column, text) if paint_cell else text)
            yield bar + bar.join(pieces) + bar
    yield rule


def _lines(cell: str) -> list[str]:
    lines: list[str] = []
    for line in cell.split("\n"):
        lines.extend(textwrap.wrap(line, MAX_CELL, break_long_words=False) or [""] if len(line) > MAX_CELL else [line])
    return lines
