"""The type of a guard: where it is in the source, what stands there without it, and the tests that must then fail.

A guard is named in the source, by a comment `# guard: NAME` at the end of the first line of its statement. Older guards
quote the text that forms them. Tests that check that a guard lets harmless requests pass ("twins") are proven by a
guard that lets nothing pass. This module must never import the package: the source is text to it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

__all__ = ["Edit", "Guard", "guard", "marks", "without"]

_MARK: Final = re.compile(r"# guard: ([^#\n]+?)\s*$")


@dataclass(frozen=True, slots=True)
class Edit:
    """Changes one place of a module (below `src/pyverno`).

    With a name as `mark`, the place is the statement whose first line has the comment `# guard: NAME`: `new` replaces
    the condition of an `if` or `while`, the value of a `return` or an assignment, or the body of a function (as its
    result); an empty `new` makes the condition False and any other statement `pass`. Without a mark, the text `old`,
    which must occur exactly once, becomes `new`.
    """

    module: str
    old: str
    new: str
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Guard:
    """One guard: the edits that remove it, its row of the register, and the tests (node ids) that must then fail.

    With `may_hang`, a test that never ends counts as failed, because the guard is there to prevent hangs.
    """

    row: str
    name: str
    tests: tuple[str, ...]
    edits: tuple[Edit, ...]
    may_hang: bool = False


def guard(row: str, name: str, tests: str, *edits: tuple[str, ...], may_hang: bool = False) -> Guard:
    """Make a guard of tests as `file::test` below tests/security, or as whole paths, separated by spaces.

    An edit is `(module, old, new)`, or for a guard that the source names `(module,)`, or `(module, new)` if something
    must stand in its place.
    """
    found = tuple(each if each.startswith("tests/") else f"tests/security/test_{each}" for each in tests.split())
    nodes = tuple(each.replace("::", ".py::", 1) if ".py" not in each else each for each in found)
    return Guard(row, name, nodes, tuple(_edit(name, edit) for edit in edits), may_hang)


def _edit(name: str, edit: tuple[str, ...]) -> Edit:
    if len(edit) == 3:
        return Edit(*edit)
    module, *new = edit
    return Edit(module, "", "".join(new), mark=name)


def marks(text: str) -> Iterator[str]:
    """Yield the names of the guards that a module names, in order."""
    for line in text.splitlines():
        if found := _MARK.search(line):
            yield found[1]


def without(text: str, edit: Edit) -> str | None:
    """Return the text of a module without a guard; None if the guard is not there exactly once."""
    if not edit.mark:
        return text.replace(edit.old, edit.new) if text.count(edit.old) == 1 else None
    lines = text.splitlines(keepends=True)
    found = [number for number, line in enumerate(lines, start=1) if (at := _MARK.search(line)) and at[1] == edit.mark]
    if len(found) != 1:
        return None
    statements = [each for each in ast.walk(ast.parse(text)) if isinstance(each, ast.stmt) and each.lineno == found[0]]
    return _replaced(lines, statements[0], edit.new) if statements else None


def _replaced(lines: list[str], statement: ast.stmt, new: str) -> str:
    match statement:
        case ast.If(test=place) | ast.While(test=place):
            return _spliced(lines, place, new or "False")
        case ast.Return(value=ast.expr() as place) | ast.Assign(value=place) if new:
            return _spliced(lines, place, new)
        case ast.AnnAssign(value=ast.expr() as place) if new:
            return _spliced(lines, place, new)
        case ast.FunctionDef(body=[*body]) | ast.AsyncFunctionDef(body=[*body]):
            first, last = body[0], body[-1]
            indent = " " * first.col_offset
            result = f"{indent}return {new}\n" if new else f"{indent}pass\n"
            return "".join([*lines[: first.lineno - 1], result, *lines[last.end_lineno :]])
        case _:
            indent = " " * statement.col_offset
            return "".join(
                [*lines[: statement.lineno - 1], f"{indent}{new or 'pass'}\n", *lines[statement.end_lineno :]]
            )


def _spliced(lines: list[str], place: ast.expr, new: str) -> str:
    before = lines[place.lineno - 1].encode()[: place.col_offset].decode()
    after = lines[(place.end_lineno or 0) - 1].encode()[place.end_col_offset :].decode()
    # in brackets, so that an expression of several lines may stand for one without
    return "".join([*lines[: place.lineno - 1], f"{before}({new}){after}", *lines[place.end_lineno :]])
