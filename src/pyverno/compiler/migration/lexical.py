"""The characters of a CEL expression: what belongs to a string literal, the last call, a sole equality."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["last_call", "scan", "sole_equality"]


def last_call(text: str) -> str:
    """Return the name of the function that an expression ends with, an empty text for none.

    >>> last_call("a.b(c).exists(x, y)"), last_call("a.b")
    ('exists', '')
    """
    if not text.endswith(")"):
        return ""
    stack: list[int] = []
    start = 0
    for index, character, is_quoted in scan(text):
        if is_quoted:
            continue
        if character in "([{":
            stack.append(index)
        elif character in ")]}":
            start = stack.pop() if stack else 0
    begin = start
    while begin and (text[begin - 1].isalnum() or text[begin - 1] == "_"):
        begin -= 1
    return text[begin:start]


def sole_equality(text: str) -> tuple[str, str, str] | None:
    """Split `a == b` when the expression has no other relation.

    >>> sole_equality("a.b != 'c'"), sole_equality("a == b == c")
    (('a.b', '!=', "'c'"), None)
    """
    depth, found = 0, None
    for index, character, is_quoted in scan(text):
        if is_quoted:
            continue
        depth += (character in "([{") - (character in ")]}")
        if depth:
            continue
        if text[index : index + 4] in (" == ", " != "):
            found = index if found is None else -1
        elif character in "<>" or text[index : index + 4] == " in ":
            return None
    if found is None or found < 0:
        return None
    return text[:found], text[found + 1 : found + 3], text[found + 4 :]


def scan(text: str) -> Sequence[tuple[int, str, bool]]:
    """Return every character of an expression with its place and whether it belongs to a string literal.

    >>> [character for _, character, is_quoted in scan("a('b')") if not is_quoted]
    ['a', '(', ')']
    """
    found, quoted, index = [], "", 0
    while index < len(text):
        character = text[index]
        if quoted:
            found.append((index, character, True))
            if character == "\\":
                index += 1
                found.append((index, text[index : index + 1], True))
            elif character == quoted:
                quoted = ""
        else:
            quoted = character if character in "'\"" else ""
            found.append((index, character, bool(quoted)))
        index += 1
    return found
