"""Columns of a kind and the function that fills a row of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TypeAlias

from pyverno.kube.json import JSON, JSONObject
from pyverno.value import dataclass

__all__ = ["AGE", "NAME", "Cells", "Column", "Printer", "Printers", "columns"]

Cells: TypeAlias = Callable[[JSONObject, datetime], Iterable[JSON]]
"""Gives the values of one row: the object, and what time it is."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column; those with a `priority` above 0 are shown by `-o wide` only."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0

    def to_json(self) -> JSONObject:
        """Return the entry of `columnDefinitions`."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


@dataclass(frozen=True, slots=True)
class Printer:
    """The table of one kind: how objects become rows; `condition` describes a row as a whole."""

    columns: tuple[Column, ...]
    cells: Cells
    conditions: Callable[[JSONObject], list[JSONObject]] | None = None


Printers: TypeAlias = dict[tuple[str, str], Printer]
"""Printers by group and plural name."""

NAME = Column("Name", format="name")
AGE = Column("Age")


def columns(text: str) -> tuple[Column, ...]:
    """Read columns from a short text: `Name:type`, strings by default, with `*` for those of `-o wide`.

    The name and the age of the object are `NAME` and `AGE`; an underscore stands for a blank.

    >>> [(column.name, column.type, column.priority) for column in columns("NAME Last_Seen Desired:integer IP*")]
    [('Name', 'string', 0), ('Last Seen', 'string', 0), ('Desired', 'integer', 0), ('IP', 'string', 1)]
    """
    return tuple(_column(word) for word in text.split())


def _column(word: str) -> Column:
    if word in ("NAME", "AGE"):
        return NAME if word == "NAME" else AGE
    name, _, kind = word.rstrip("*").partition(":")
    return Column(name.replace("_", " "), kind or "string", priority=int(word.endswith("*")))
