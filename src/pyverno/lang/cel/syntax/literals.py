"""Literals: the value of a number, string or bytes token.

Escapes follow the CEL grammar: in strings an escape names a code point, in bytes an octal or hex escape names one
byte. This module must never read past one token.
"""

from __future__ import annotations

from typing import Final

from pyverno.lang.cel.scalars import Uint
from pyverno.lang.cel.values import INT_MAX, INT_MIN, UINT_MAX

__all__ = ["LiteralError", "bytes_value", "double_value", "int_value", "string_value", "uint_value"]

_SIMPLE: Final = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "`": "`", "?": "?",
}  # fmt: skip
_HEX_DIGITS: Final = {"x": 2, "X": 2, "u": 4, "U": 8}
_SURROGATES: Final = range(0xD800, 0xE000)


class LiteralError(ValueError):
    """A literal that names no value; the text is cel-go's."""


def int_value(text: str) -> int:
    """Return the value of an int token with its sign.

    >>> int_value("-0x10")
    -16
    """
    value = _digits(text)
    if not INT_MIN <= value <= INT_MAX:
        raise LiteralError("invalid int literal")
    return value


def uint_value(text: str) -> Uint:
    """Return the value of a uint token.

    >>> uint_value("7u")
    7u
    """
    value = _digits(text[:-1])
    if value > UINT_MAX:
        raise LiteralError("invalid uint literal")
    return Uint(value)


def _digits(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    digits = text.lstrip("-").strip()
    if digits[:2] in ("0x", "0X"):
        return sign * int(digits[2:], 16)
    if len(digits) > 40:  # beyond every CEL number, and cheap to refuse
        raise LiteralError("invalid int literal")
    return sign * int(digits)


def double_value(text: str) -> float:
    """Return the value of a double token; too large a number is an error as in Go."""
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise LiteralError("invalid double literal")
    return value


def string_value(token: str) -> str:
    """Return the value of a string token with its quotes and prefix.

    >>> string_value("r'a\\\\n'")
    'a\\\\n'
    """
    raw, body = _body(token)
    body = _normal_newlines(body)
    if raw or "\\" not in body:
        return body
    return "".join(_unescape(body, in_bytes=False))


def bytes_value(token: str) -> bytes:
    """Return the value of a bytes token (`b'..'`)."""
    raw, body = _body(token[1:])
    body = _normal_newlines(body)
    if raw or "\\" not in body:
        return body.encode("utf-8", "surrogatepass")
    return b"".join(
        bytes([ord(part[1])]) if part.startswith("\\") else part.encode("utf-8", "surrogatepass")
        for part in _unescape(body, in_bytes=True)
    )


def _body(token: str) -> tuple[bool, str]:
    raw = token[0] in "rR"
    text = token[1:] if raw else token
    width = 3 if text.startswith(('"""', "'''")) and len(text) >= 6 else 1
    return raw, text[width:-width]


def _normal_newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _unescape(body: str, *, in_bytes: bool) -> list[str]:
    """Return the pieces of a text; in bytes a piece for one byte is a backslash and the byte's character."""
    pieces: list[str] = []
    position = 0
    while position < len(body):
        slash = body.find("\\", position)
        if slash < 0:
            pieces.append(body[position:])
            break
        if slash > position:
            pieces.append(body[position:slash])
        if slash + 1 >= len(body):
            raise LiteralError("unable to unescape string, found '\\' as last character")
        piece, position = _escape(body, slash + 1, in_bytes=in_bytes)
        pieces.append(piece)
    return pieces


def _escape(body: str, position: int, *, in_bytes: bool) -> tuple[str, int]:
    char = body[position]
    simple = _SIMPLE.get(char)
    if simple is not None:
        return ("\\" + simple if simple == "\\" and in_bytes else simple), position + 1
    if char in _HEX_DIGITS:
        if in_bytes and char in "uU":
            raise LiteralError("unable to unescape string")
        return _coded(body, position + 1, _HEX_DIGITS[char], 16, in_bytes=in_bytes)
    if char in "0123":
        return _coded(body, position, 3, 8, in_bytes=in_bytes)
    raise LiteralError("unable to unescape string")


def _coded(body: str, position: int, width: int, base: int, *, in_bytes: bool) -> tuple[str, int]:
    digits = body[position : position + width]
    if len(digits) < width or not all(char in "0123456789abcdefABCDEF"[: 8 if base == 8 else 22] for char in digits):
        octal = " octal sequence in" if base == 8 else ""
        raise LiteralError(f"unable to unescape{octal} string")
    code = int(digits, base)
    if in_bytes:
        return "\\" + chr(code), position + width
    if code > 0x10FFFF or code in _SURROGATES:
        raise LiteralError("invalid unicode code point")
    return chr(code), position + width
