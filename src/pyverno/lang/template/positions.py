"""Positions of the characters of a variable's expression in the surrounding text.

Expressions are compiled without their braces, blanks and nested variables, so that offsets in them are not those of the
text. This runs only for what is reported, and goes over a text once for all its variables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyverno.kube.json import JSON
from pyverno.lang.template.location import join_path
from pyverno.lang.template.syntax import MAX_ROUNDS, PLACEHOLDER, PRIVATE, VARIABLE, split_expression

__all__ = ["VariablePositions", "find_outer_offset", "find_steps"]

_Positions = Sequence[int]


class VariablePositions:
    """The positions in a text of the characters of its variables; made by going over the text once.

    Variables have the numbers of `parse_string`: inner ones first.

    >>> text = "a {{ f({{ b }}, c) }}"
    >>> found = VariablePositions(text)
    >>> text[found.find(0) :][:1], text[found.find(1, len("f(?0?, ")) :][:1]
    ('b', 'c')
    """

    __slots__ = ("_found",)

    def __init__(self, text: str) -> None:
        self._found = dict(_variables(text))

    def find(self, number: int, offset: int = 0) -> int:
        """Return the index in the text of the character at `offset` of the expression of a variable."""
        positions = self._found.get(number)
        return 0 if positions is None else positions[min(max(offset, 0), len(positions) - 1)]


def find_outer_offset(text: str, offset: int) -> int:
    """Return the index in `text` of the character at `offset` of the text with all variables replaced by placeholders.

    >>> text = "a[{{ index }}].b || c"
    >>> text[find_outer_offset(text, len("a[?0?].b || ")) :]
    'c'
    """
    current, positions, _ = [*_passes(text)][-1]
    numbered = _renumber(current, positions)
    return (*numbered, len(text))[min(max(offset, 0), len(numbered))]


def find_steps(document: JSON, path: str, base: str = "") -> tuple[str | int, ...]:
    """Return the steps to the place in a document that a template names by a path below `base`.

    >>> find_steps({"a/b": ["x"]}, "/spec/a\\\\/b/0", "/spec")
    ('a/b', 0)
    """
    steps: list[str | int] = []
    while base != path:
        members: Sequence[str | int]
        match document:
            case dict():
                members = [key for key in document if isinstance(key, str)]
            case list():
                members = range(len(document))
            case _:
                break
        # the longest name first: one key may begin as another one and a slash do
        fitting = [each for each in members if _leads_to(join_path(base, each), path)]
        if not fitting:
            break
        step = max(fitting, key=lambda each: len(str(each)))
        steps.append(step)
        document, base = document[step], join_path(base, step)
    return tuple(steps)


def _leads_to(place: str, path: str) -> bool:
    return path == place or path.startswith(f"{place}/")


def _protect(text: str) -> tuple[str, _Positions]:
    """Return the text with each of its own placeholder characters replaced by a placeholder."""
    pieces: list[str] = []
    positions: list[int] = []
    number = 0
    for index, character in enumerate(text):
        piece = character
        if PRIVATE.match(character) is not None:
            piece, number = f"\ue000{number}\ue001", number + 1
        pieces.append(piece)
        positions += [index] * len(piece)
    return "".join(pieces), positions


def _variables(text: str) -> Iterator[tuple[int, _Positions]]:
    """Yield the numbers of all variables with the index of each character of their expressions, and of their end."""
    for current, positions, count in _passes(text):
        for index, match in enumerate(VARIABLE.finditer(current)):
            start, end = match.span(2)
            expression, is_shallow = split_expression(match[2])
            # the braces of nested variables are gone, so the expression is in one piece
            at = start + _find(match[2], expression, is_shallow)
            own = positions[at : at + len(expression)]
            closing = positions[min(at + len(expression), end - 1)]
            yield count + index, [*_renumber(expression, own), closing]


def _passes(text: str) -> Iterator[tuple[str, _Positions, int]]:
    """Yield the text as each pass of `parse_string` finds it, its positions, and the number of its first variable."""
    current, positions = _protect(text)
    count = len(PRIVATE.findall(text))
    yield current, positions, count
    for _ in range(MAX_ROUNDS):
        found = [*VARIABLE.finditer(current)]
        if not found or found[-1][2] == current:
            return
        current, positions, count = _replace(current, positions, count)
        yield current, positions, count
        if split_expression(found[-1][2])[1]:
            return


def _find(variable: str, expression: str, is_shallow: bool) -> int:
    begin = 2
    if is_shallow:
        begin = variable.find("-", begin) + 1
    at = variable.find(expression, begin) if expression else begin
    return max(at, begin)


def _replace(current: str, positions: _Positions, count: int) -> tuple[str, _Positions, int]:
    """Replace the innermost variables by placeholders at their start positions."""
    pieces: list[str] = []
    kept: list[int] = []
    position = 0
    for match in VARIABLE.finditer(current):
        start, end = match.span(2)
        placeholder = f"\ue000{count}\ue001"
        pieces += (current[position:start], placeholder)
        kept += [*positions[position:start], *([positions[start]] * len(placeholder))]
        position, count = end, count + 1
    return "".join((*pieces, current[position:])), [*kept, *positions[position:]], count


def _renumber(text: str, positions: _Positions) -> list[int]:
    """Return the positions of a text whose placeholders are numbered from 0, as those of an expression are."""
    result: list[int] = []
    position = 0
    for number, match in enumerate(PLACEHOLDER.finditer(text)):
        result += positions[position : match.start()]
        result += [positions[match.start()]] * len(f"\ue000{number}\ue001")
        position = match.end()
    return [*result, *positions[position:]]
