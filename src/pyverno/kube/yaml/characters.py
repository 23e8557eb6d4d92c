"""Positions of the characters of a scalar's value in the text: block, folded, quoted and plain scalars.

An error inside an expression has an offset in the value; a reader needs the place in the file.
"""

from __future__ import annotations

from typing import Final

from pyverno.lazyregex import regex

__all__ = ["find_character"]

_PROPERTIES: Final = regex(r"(?:[&!][^\s]*[ \t]*\n?[ \t]*)+")
_LINE_END: Final = regex(r"[ \t]*\r?\n")
_BLANKS: Final = regex(r"[ \t]*")
_LINE_FEEDS: Final = regex(r"\n*")
_ESCAPE_LENGTHS: Final = {"x": 4, "u": 6, "U": 10}


def find_character(text: str, start: int, value: str, offset: int) -> int | None:
    """Return the index in `text` of the character at `offset` in the value of the scalar that begins at `start`.

    An offset past the end gives the place after the last character. None where value and text do not fit together.

    >>> text = "a: >\\n  one\\n  two\\n"
    >>> text[find_character(text, 3, "one two\\n", 4):]
    'two\\n'
    """
    found = _PROPERTIES.match(text, start)
    if found is not None:
        start = found.end()
    offset = min(max(offset, 0), len(value))
    match text[start : start + 1]:
        case "|":
            return _in_literal(text, start, value, offset)
        case ">":
            return _in_folded(text, start, value, offset)
        case '"' | "'" as quote:
            return _in_flow(text, start + 1, value, offset, quote)
    return _in_flow(text, start, value, offset, "")


def _content(text: str, start: int) -> int:
    """Return the start of the line after a block scalar's header."""
    end = text.find("\n", start)
    return len(text) if end < 0 else end + 1


def _indentation(text: str, first: int, value: str) -> int:
    """Return by how much the lines of a block scalar are indented more than those of its value."""
    written = _first_line(text[first : first + len(value) * 2 + 10_000])
    meant = _first_line(value)
    return (len(written) - len(written.lstrip(" "))) - (len(meant) - len(meant.lstrip(" ")))


def _first_line(text: str) -> str:
    return next((line for line in text.split("\n") if line.strip(" \r")), "")


def _in_literal(text: str, start: int, value: str, offset: int) -> int | None:
    position = _content(text, start)
    indentation = _indentation(text, position, value)
    for _ in range(value.count("\n", 0, offset)):
        position = text.find("\n", position) + 1
        if not position:
            return None
    column = offset - (value.rfind("\n", 0, offset) + 1)
    end = text.find("\n", position)
    return min(position + indentation + column, len(text) if end < 0 else end)


def _in_folded(text: str, start: int, value: str, offset: int) -> int | None:
    position = _content(text, start)
    indentation = _indentation(text, position, value)
    index = 0
    while text[position : position + 1] == "\n":  # blank lines at the beginning are part of the value
        position, index = position + 1, index + 1
    position += indentation
    while index < offset:
        if text[position : position + 1] == value[index] != "\n":
            position, index = position + 1, index + 1
            continue
        if text[position : position + 1] != "\n" or value[index] not in " \n":
            return None
        index += _run(value, index)
        if index > offset:
            return position
        while text[position : position + 1] == "\n":
            position += 1
            blank = _LINE_END.match(text, position)
            if blank is not None:
                position = blank.end() - 1
        position += indentation
    return position


def _run(value: str, index: int) -> int:
    """Return how many characters of a value a line end stands for: one blank, or line feeds."""
    if value[index] == " ":
        return 1
    found = _LINE_FEEDS.match(value, index)
    return 0 if found is None else found.end() - index


def _in_flow(text: str, position: int, value: str, offset: int, quote: str) -> int | None:
    index = plain = 0
    while True:
        character = text[position : position + 1]
        if character == "\\" and quote == '"' and text[position + 1 : position + 2] in ("\n", "\r"):
            position = _next_line(text, position + 1)  # the line continues without a blank
            continue
        if index >= offset:
            return position
        fold = _LINE_END.match(text, position) if value[index] in " \n" and position >= plain else None
        if fold is None and character in (" ", "\t") and position >= plain:
            blanks = _BLANKS.match(text, position)
            plain = position if blanks is None else blanks.end()  # blanks that end no line are looked at once
        if fold is not None:
            index += _run(value, index)
            if index > offset:
                return position
            position = _next_line(text, position)
        elif character == "\\" and quote == '"':
            position, index = position + _ESCAPE_LENGTHS.get(text[position + 1 : position + 2], 2), index + 1
        elif character == "'" == quote:
            position, index = position + 2, index + 1
        elif character == value[index]:
            position, index = position + 1, index + 1
        else:
            return None


def _next_line(text: str, position: int) -> int:
    """Return where the next line that is not blank has its first character."""
    fold = _LINE_END.match(text, position)
    while fold is not None:
        position = fold.end()
        fold = _LINE_END.match(text, position)
    while text[position : position + 1] in (" ", "\t"):
        position += 1
    return position
