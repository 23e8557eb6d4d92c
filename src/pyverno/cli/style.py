"""Colours: only on a terminal, never in a pipe or a file."""

from __future__ import annotations

import os
from collections.abc import Callable

from pyverno.cli.terminal import Stream

# trust rows: environment

__all__ = ["Style", "style_for"]

_HEADER = "\x1b[40;32m"
_RESET = "\x1b[0m"
_RESULTS = {
    "Pass": "\x1b[32m",
    "Fail": "\x1b[31m",
    "Warn": "\x1b[33m",
    "Error": "\x1b[31m",
    "Skip": "\x1b[90m",
}


_ROLES = {"file": "\x1b[1m", "note": "\x1b[2m"}


class Style:
    """Paints words, or leaves them as they are.

    >>> Style(False).result("Pass")
    'Pass'
    """

    __slots__ = ("is_coloured",)

    def __init__(self, is_coloured: bool) -> None:
        self.is_coloured = is_coloured

    def header(self, text: str) -> str:
        """Paint a cell of a table's header."""
        return f"{_HEADER}{text}{_RESET}" if self.is_coloured else text

    def result(self, text: str) -> str:
        """Paint a text by the result word in it (Pass, Fail, Warn, Error, Skip)."""
        colour = _RESULTS.get(text.strip()) if self.is_coloured else None
        return f"{colour}{text}{_RESET}" if colour else text

    def role(self, text: str, role: str) -> str:
        """Paint a part of a finding: `file`, `note`, or a status (`fail`).

        >>> Style(True).role("pod.yaml:1:1", "file")
        '\\x1b[1mpod.yaml:1:1\\x1b[0m'
        """
        colour = (_ROLES.get(role) or _RESULTS.get(role.title())) if self.is_coloured else None
        return f"{colour}{text}{_RESET}" if colour else text

    def cells(self, column: int) -> Callable[[int, str], str]:
        """Return a painter of table cells that colours only the column with the results."""

        def paint(number: int, text: str) -> str:
            return self.result(text) if number == column else text

        return paint


def style_for(stream: Stream, *, remove_color: bool = False) -> Style:
    """Return the style for a stream: colours on a capable terminal, unless NO_COLOR or `--remove-color` is set."""
    has_colours = os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")
    return Style(not remove_color and has_colours and stream.isatty())
