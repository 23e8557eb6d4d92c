"""A JSON decoder that never recurses and has Go's error texts: the exact path behind `json.decode`.

It takes a microsecond per byte at worst, so `json.decode` gives it only short texts: deep documents, numbers that
overflow, and errors. `has_more_values` bounds a text before any decoder sees it.
"""

from __future__ import annotations

import re
from typing import Any

from pyverno.errors import DocumentError
from pyverno.lazyregex import regex

__all__ = ["MAX_DEPTH", "MAX_INT64", "MIN_INT64", "has_more_values", "scan", "with_valid_escapes"]

MAX_DEPTH = 10_000
"""Levels of nesting that are accepted, as in Go."""

MIN_INT64, MAX_INT64 = -(2**63), 2**63 - 1

_SPACE = regex(r"[ \t\n\r]*")
_PLAIN = regex(r'[^"\\\x00-\x1f]*')
_NUMBER = regex(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_HEX = regex(r"[0-9a-fA-F]{4}")
_INVALID_BYTE = regex("[\ud800-\udfff]")
# Every escape is one match, so that a backslash that is escaped itself begins none.
_ESCAPE = regex(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
_STRING = regex(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"')
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORDS: dict[str, tuple[str, bool | None]] = {"t": ("true", True), "f": ("false", False), "n": ("null", None)}


def has_more_values(data: bytes, most: int) -> bool:
    """Return whether a JSON text has more than `most` values, for a fraction of what decoding it costs.

    A value takes two bytes of text and up to 200 of memory, and no decoder lets other threads run meanwhile. An empty
    list or map counts as two.

    >>> has_more_values(b'[1, {"a": ",,,"}]', 4), has_more_values(b'[1, {"a": ",,,"}]', 3)
    (False, True)
    """
    if len(data) <= 2 * most or _max_values(data) <= most:
        return False
    if data.count(b'"') - data.count(b'\\"') > 4 * most:
        return True  # at least every second text is a value
    return _max_values(_STRING.sub(b"", data)) > most  # the marks may be in texts, which are taken out only now


def _max_values(data: bytes) -> int:
    return 1 + data.count(b",") + data.count(b"{") + data.count(b"[")


def with_valid_escapes(data: bytes) -> bytes:
    r"""Return a text in which bytes that are not UTF-8 and lone surrogates are U+FFFD, as Go reads them.

    >>> with_valid_escapes(b'["\\ud800", "\\\\ud800", "\xff"]')
    b'["\\ufffd", "\\\\ud800", "\xef\xbf\xbd"]'
    """
    if b"\\u" in data:
        data = _ESCAPE.sub(lambda found: rb"\ufffd" if found[1] else found[0], data)
    return _valid_text(data).encode()


def _valid_text(data: bytes) -> str:
    """Every byte that is not UTF-8 turns into its own surrogate and then into U+FFFD, as Go does."""
    return _INVALID_BYTE.sub("\ufffd", data.decode("utf-8", "surrogateescape"))


def scan(data: bytes) -> Any:
    """Read one JSON text; raises `DocumentError` with the text of Go's encoding/json.

    >>> scan(b'[1, {"a": "x"}]')
    [1, {'a': 'x'}]
    """
    text = _valid_text(data)
    position = _skip(text, 0)
    value, position = _document(text, position)
    position = _skip(text, position)
    if position < len(text):
        raise _unexpected(text, position, "after top-level value")
    return value


def _document(text: str, position: int) -> tuple[Any, int]:
    """Read one value with an explicit stack of open containers."""
    stack: list[tuple[Any, str]] = []
    while True:
        character = text[position : position + 1]
        if character in ("{", "["):
            value, position, is_open = _start(text, position, stack)
            if is_open:
                continue
        else:
            value, position = _scalar(text, position)
        while True:
            if not stack:
                return value, position
            container, key = stack[-1]
            if isinstance(container, dict):
                container[key] = value
            else:
                container.append(value)
            position = _skip(text, position)
            mark = text[position : position + 1]
            closing = "}" if isinstance(container, dict) else "]"
            if mark == closing:
                stack.pop()
                value = container
                position += 1
                continue
            if mark != ",":
                raise _unexpected(
                    text, position, f"after {'object key:value pair' if closing == '}' else 'array element'}"
                )
            position = _skip(text, position + 1)
            if closing == "}":
                key, position = _member_key(text, position)
                stack[-1] = (container, key)
            break


def _start(text: str, position: int, stack: list[tuple[Any, str]]) -> tuple[Any, int, bool]:
    """Open a container; returns it, the next position, and whether items follow."""
    if len(stack) >= MAX_DEPTH:
        raise DocumentError(f"invalid character '{text[position]}' exceeded max depth")
    is_map = text[position] == "{"
    position = _skip(text, position + 1)
    if text[position : position + 1] == ("}" if is_map else "]"):
        return ({} if is_map else []), position + 1, False
    if not is_map:
        stack.append(([], ""))
        return None, position, True
    key, position = _member_key(text, position)
    stack.append(({}, key))
    return None, position, True


def _member_key(text: str, position: int) -> tuple[str, int]:
    if text[position : position + 1] != '"':
        raise _unexpected(text, position, "looking for beginning of object key string")
    key, position = _string(text, position)
    position = _skip(text, position)
    if text[position : position + 1] != ":":
        raise _unexpected(text, position, "after object key")
    return key, _skip(text, position + 1)


def _scalar(text: str, position: int) -> tuple[Any, int]:
    character = text[position : position + 1]
    if character == '"':
        return _string(text, position)
    if character in _WORDS:
        word, value = _WORDS[character]
        for index, expected in enumerate(word):
            if text[position + index : position + index + 1] != expected:
                raise _unexpected(text, position + index, f"in literal {word} (expecting {_quote(expected)})")
        return value, position + len(word)
    if character == "-" or (character and character in "0123456789"):
        return _number(text, position)
    raise _unexpected(text, position, "looking for beginning of value")


def _number(text: str, position: int) -> tuple[int | float, int]:
    found = _NUMBER.match(text, position)
    if found is None:
        raise _unexpected(text, position + 1, "in numeric literal")
    end = found.end()
    # The pattern stops before an incomplete fraction or exponent: those are errors, not trailing text.
    following = text[end : end + 1]
    token = found[0]
    has_exponent = "e" in token or "E" in token
    if following == "." and "." not in token and not has_exponent:
        raise _unexpected(text, end + 1, "after decimal point in numeric literal")
    if following in ("e", "E") and not has_exponent:
        signed = text[end + 1 : end + 2] in ("+", "-")
        raise _unexpected(text, end + (2 if signed else 1), "in exponent of numeric literal")
    if "." not in token and not has_exponent and len(token) <= 20:
        whole = int(token)
        if MIN_INT64 <= whole <= MAX_INT64:
            return whole, end
    value = float(token)
    if value in (float("inf"), float("-inf")):
        raise DocumentError(f"json: cannot unmarshal number {token[:64]} into Go value of type float64")
    return value, end


def _string(text: str, position: int) -> tuple[str, int]:
    parts: list[str] = []
    position += 1
    while True:
        found = _PLAIN.match(text, position)
        if found is not None:
            parts.append(found[0])
            position = found.end()
        character = text[position : position + 1]
        if character == '"':
            return "".join(parts), position + 1
        if character != "\\":
            raise _unexpected(text, position, "in string literal")
        piece, position = _escape(text, position + 1)
        parts.append(piece)


def _escape(text: str, position: int) -> tuple[str, int]:
    character = text[position : position + 1]
    if character in _ESCAPES:
        return _ESCAPES[character], position + 1
    if character != "u":
        raise _unexpected(text, position, "in string escape code")
    first = _hex(text, position + 1)
    position += 5
    if not 0xD800 <= first <= 0xDFFF:
        return chr(first), position
    if first < 0xDC00 and text[position : position + 2] == "\\u" and _HEX.match(text, position + 2):
        second = _hex(text, position + 2)
        if 0xDC00 <= second <= 0xDFFF:
            return chr(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)), position + 6
    return "\ufffd", position


def _hex(text: str, position: int) -> int:
    found = _HEX.match(text, position)
    if found is not None:
        return int(found[0], 16)
    while text[position : position + 1] in tuple("0123456789abcdefABCDEF"):
        position += 1
    raise _unexpected(text, position, "in \\u hexadecimal character escape")


def _skip(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return found.end() if found else position


def _unexpected(text: str, position: int, context: str) -> DocumentError:
    if position >= len(text):
        # Go feeds its scanner one blank at the end; inside these tokens a blank is the character at fault.
        if context.startswith(("in literal", "in numeric", "after decimal", "in exponent")) or "escape" in context:
            return DocumentError(f"invalid character ' ' {context}")
        return DocumentError("unexpected end of JSON input")
    return DocumentError(f"invalid character {_quote(text[position])} {context}")


def _quote(character: str) -> str:
    """Quote one character as Go's JSON scanner does: by its first byte."""
    byte = character.encode("utf-8")[0]
    special = {0x27: "'\\''", 0x22: "'\"'", 0x5C: "'\\\\'"}
    named = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r"}
    if byte in special:
        return special[byte]
    if byte in named:
        return f"'{named[byte]}'"
    if byte < 0x20 or byte == 0x7F:
        return f"'\\x{byte:02x}'"
    if 0x7F < byte <= 0xA0 or byte == 0xAD:
        return f"'\\u{byte:04x}'"
    return f"'{chr(byte)}'"
