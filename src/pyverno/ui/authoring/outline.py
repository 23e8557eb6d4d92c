"""The outline of a YAML text that may be unfinished: the keys of each line, and the position of a cursor among them.

Only block style is understood; lines in flow style count as values. This module must never know a schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from pyverno.lazyregex import regex
from pyverno.value import dataclass

__all__ = ["Entry", "Path", "Spot", "find_spot", "read_outline", "select_document"]

Path: TypeAlias = tuple[str | int, ...]
"""Keys, and for items of a list the number of the line on which they begin."""

_BLOCK: Final = regex(r"[|>][+-]?\d?[+-]?( +#.*)? *")
_MOST_LINES: Final = 20_000
_MOST_ITEMS: Final = 64
"""Dashes that may begin one line: each opens a list, and has a path as long as there are lists around it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A key, or an item of a list, with the rest of its line as `value`."""

    path: Path
    line: int
    column: int
    value: str


@dataclass(frozen=True, slots=True)
class Spot:
    """The surroundings of a cursor: the path of the value or key, and the text of its line or block up to the cursor.

    With `is_key`, `path` is that of the mapping, and `before` the part of the key that is written; `column` is where it
    begins. `siblings` are the other keys of the mapping.
    """

    path: Path
    before: str
    column: int
    is_key: bool = False
    siblings: frozenset[str] = frozenset()


def select_document(text: str, line: int) -> tuple[Sequence[str], int]:
    """Return the lines of the document around a line (from 1), and the number of this line in it (from 0)."""
    lines = text.split("\n")[:_MOST_LINES]
    index = max(0, min(line - 1, len(lines) - 1))
    start = next((number + 1 for number in range(index, -1, -1) if lines[number].startswith("---")), 0)
    end = next(
        (number for number in range(max(index, start), len(lines)) if lines[number].startswith("---")), len(lines)
    )
    return lines[start:end], max(0, index - start)


class _Stack:
    """The keys and items around a column, by their columns."""

    def __init__(self) -> None:
        self._steps: list[tuple[int, str | int]] = []

    @property
    def path(self) -> Path:
        return tuple(step for _, step in self._steps)

    def put_item(self, column: int, line: int) -> None:
        """Enter an item of a list whose dash is at a column; the key of the list may have the same column."""
        while self._steps and (
            self._steps[-1][0] > column or (self._steps[-1][0] == column and isinstance(self._steps[-1][1], int))
        ):
            self._steps.pop()
        self._steps.append((column, line))

    def put_key(self, column: int, key: str) -> None:
        """Go to a key at a column."""
        self.leave(column)
        self._steps.append((column, key))

    def leave(self, column: int) -> None:
        """Leave all levels at this column or to its right."""
        while self._steps and self._steps[-1][0] >= column:
            self._steps.pop()


def read_outline(lines: Sequence[str]) -> Iterator[Entry]:
    """Yield the keys and items of a document in order."""
    yield from (entry for entry, _ in _walk(lines))


def _walk(lines: Sequence[str]) -> Iterator[tuple[Entry, _Stack]]:
    stack = _Stack()
    block: int | None = None
    for number, line in enumerate(lines):
        content = line.lstrip(" ")
        column = len(line) - len(content)
        if not content.strip() or content.startswith("#"):
            continue
        if block is not None:
            if column > block:
                continue
            block = None
        outer = column
        items = 0
        while items < _MOST_ITEMS and (content == "-" or content.startswith("- ")):
            items += 1
            rest = content[1:].lstrip(" ")
            stack.put_item(column, number)
            yield Entry(stack.path, number, column, rest), stack
            outer = column
            column += len(content) - len(rest)
            content = rest
        if content.startswith("- "):
            continue
        if _BLOCK.fullmatch(content):
            block = outer
            continue
        found = _split_key(content)
        if found is None:
            continue
        key, value = found
        stack.put_key(column, key)
        yield Entry(stack.path, number, column, value), stack
        if _BLOCK.fullmatch(value):
            block = column


def find_spot(lines: Sequence[str], index: int, column: int) -> Spot:
    """Return the surroundings of a cursor at a column of a line, both from 0."""
    line = lines[index] if index < len(lines) else ""
    head = line[:column]
    above = [*_walk(lines[:index])]
    block = _block_around(lines, index, above[-1][0] if above else None)
    if block is not None:
        written = "\n".join([*lines[block.line + 1 : index], head])
        return Spot(block.path, written, len(head) - len(head.lstrip(" ")))
    stack = above[-1][1] if above else _Stack()
    start = len(head) - len(head.lstrip(" "))
    content = head[start:]
    if not content:
        # an empty line belongs to the mapping or list of its column
        stack.leave(column)
        return _key_spot(lines, stack.path, "", column, index)
    while content == "-" or content.startswith("- "):
        rest = content[1:].lstrip(" ")
        stack.put_item(start, index)
        start += len(content) - len(rest)
        content = rest
    found = _split_key(content)
    if found is not None:
        key, value = found
        stack.put_key(start, key)
        return Spot(stack.path, value, start + len(content) - len(value))
    stack.leave(start)
    return _key_spot(lines, stack.path, content, start, index)


def _key_spot(lines: Sequence[str], path: Path, before: str, column: int, index: int) -> Spot:
    siblings = {
        str(entry.path[-1])
        for entry in read_outline(lines)
        if entry.path[:-1] == path and entry.line != index and isinstance(entry.path[-1], str)
    }
    return Spot(path, before, column, is_key=True, siblings=frozenset(siblings))


def _block_around(lines: Sequence[str], index: int, last: Entry | None) -> Entry | None:
    """Return the entry whose block of text (`|` or `>`) a line belongs to."""
    if last is None or not _BLOCK.fullmatch(last.value):
        return None
    line = lines[index] if index < len(lines) else ""
    indent = len(line) - len(line.lstrip(" "))
    return last if indent > last.column else None


def _split_key(content: str) -> tuple[str, str] | None:
    """Return key and value of a line, None where it has no key.

    >>> _split_key("name: web"), _split_key("'a: b': c"), _split_key("no key"), _split_key("{a: b}")
    (('name', 'web'), ('a: b', 'c'), None, None)
    """
    if not content or content[0] in "#[{&*!|>%@`":
        return None
    if content[0] in "\"'":
        end = content.find(content[0], 1) + 1
    else:
        end = content.find(": ")
        if end < 0:
            end = len(content.rstrip()) - 1
    rest = content[end:].lstrip(" ")
    if end < 1 or not rest.startswith(":") or rest[1:2] not in ("", " "):
        return None
    return content[:end].rstrip().strip("\"'"), rest[1:].lstrip(" ")
