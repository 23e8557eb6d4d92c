"""Places of keys in a TOML file; the parser of Python gives none."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence

from pyverno.errors import Location

__all__ = ["toml_place"]

_LONGEST = 200
"""The most lines of one statement; in a longer one keys have no line."""


def toml_place(file: str, text: str, steps: Sequence[str]) -> Location:
    """Return the place of a key by its steps from the top; the line is looked up when it is shown.

    >>> toml_place("a.toml", "# one\\n[tool.pyverno.apply]\\nset = [1]\\n", ("tool", "pyverno", "apply", "set"))
    Location(file='a.toml', line=3, column=1)
    """
    return Location.later(file, lambda: _find(text, tuple(steps)))


def _find(text: str, steps: tuple[str, ...]) -> tuple[int, int]:
    table: tuple[str, ...] = ()
    for line, statement in _statements(text):
        try:
            body = tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            return 0, 0
        opened = _header(statement, body)
        table = table if opened is None else opened
        column = len(statement) - len(statement.lstrip()) + 1
        if opened is not None and opened[: len(steps)] == steps:
            return line, column
        if opened is None and steps[: len(table)] == table and _has(body, steps[len(table) :]):
            return line, column
    return 0, 0


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield the headers and assignments of a valid file with their first lines: each can be parsed alone."""
    held: list[str] = []
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        if not held and (not line.strip() or line.lstrip().startswith("#")):
            continue
        held.append(line)
        statement = "\n".join(held)
        try:
            tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            if len(held) < _LONGEST:
                continue
        yield number - len(held) + 1, statement
        held = []


def _header(statement: str, body: object) -> tuple[str, ...] | None:
    """Return the path of the table that a header opens, None for an assignment."""
    if not statement.lstrip().startswith("["):
        return None
    found: list[str] = []
    while body:
        body = body[0] if isinstance(body, list) else body
        if isinstance(body, dict):
            found += body
            body = next(iter(body.values()), None)
    return tuple(found)


def _has(body: object, steps: Sequence[str]) -> bool:
    for step in steps:
        if not isinstance(body, dict) or step not in body:
            return False
        body = body[step]
    return bool(steps)
