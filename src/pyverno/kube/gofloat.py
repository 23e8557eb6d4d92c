"""Floating point numbers as text, exactly as Go's strconv and encoding/json read and write them."""

from __future__ import annotations

import math
from typing import Final

from pyverno.lazyregex import regex

__all__ = ["float_text", "float_verb_text", "parse_float"]

_DECIMAL: Final = regex(r"[+-]?(?:[0-9]++\.?+[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+")
_HEXADECIMAL: Final = regex(r"[+-]?0[xX](?:[0-9a-fA-F]++\.?+[0-9a-fA-F]*+|\.[0-9a-fA-F]++)[pP][+-]?[0-9]++")
_UNDERSCORE: Final = regex(r"(?<=[0-9])_(?=[0-9])")
_UNDERSCORE_OF_HEXADECIMAL: Final = regex(r"(?<=[0-9a-fA-FxX])_(?=[0-9a-fA-F])")
_SPECIAL: Final = frozenset({"inf", "infinity", "nan"})


def parse_float(text: str) -> float | None:
    """Read a float as Go's ParseFloat does; None for what it rejects, numbers beyond the range included.

    >>> parse_float("1_000.5"), parse_float("0x1p4"), parse_float("-Inf"), parse_float("1e400"), parse_float("1__0")
    (1000.5, 16.0, -inf, None, None)
    """
    plain = text
    if "_" in text:
        plain = (_UNDERSCORE_OF_HEXADECIMAL if "x" in text.lower() else _UNDERSCORE).sub("", text)
    if _DECIMAL.fullmatch(plain):
        number = float(plain)
        return None if math.isinf(number) else number
    if plain is text and text.lower().lstrip("+-") in _SPECIAL and len(text) - len(text.lstrip("+-")) < 2:
        return float(text)
    if _HEXADECIMAL.fullmatch(plain):
        try:
            return float.fromhex(plain)
        except OverflowError:
            return None
    return None


def float_text(value: float) -> str:
    """Render a float as Go's encoding/json does: digits between 1e-6 and 1e21, else an exponent without padding.

    >>> float_text(1e16), float_text(1e-7), float_text(1e21), float_text(2.50)
    ('10000000000000000', '1e-7', '1e+21', '2.5')
    """
    if not math.isfinite(value):
        return float_verb_text(value)
    negative, digits, point = _shortest(value)
    if value and (abs(value) < 1e-6 or abs(value) >= 1e21):
        return negative + _scientific(digits, point, width=1)
    return negative + _plain(digits, point)


def float_verb_text(value: float) -> str:
    """Render a float as Go's `%v` does: digits from 1e-4 to 1e6, an exponent of at least two digits elsewhere.

    >>> float_verb_text(1e-05), float_verb_text(1e6), float_verb_text(float("inf"))
    ('1e-05', '1e+06', '+Inf')
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    negative, digits, point = _shortest(value)
    exponent = point - 1
    if value and (exponent < -4 or exponent >= 6):
        return negative + _scientific(digits, point, width=2)
    return negative + _plain(digits, point)


def _shortest(value: float) -> tuple[str, str, int]:
    """Split the shortest text that reads back into sign, digits without outer zeros, and where the point is."""
    text = repr(value)
    negative = "-" if text[0] == "-" else ""
    mantissa, _, exponent = text.lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = whole + fraction
    point = len(whole) + int(exponent or "0")
    stripped = digits.lstrip("0")
    point -= len(digits) - len(stripped)
    stripped = stripped.rstrip("0")
    return (negative, stripped, point) if stripped else (negative, "0", 1)


def _plain(digits: str, point: int) -> str:
    if point <= 0:
        return "0." + "0" * -point + digits
    if point >= len(digits):
        return digits + "0" * (point - len(digits))
    return f"{digits[:point]}.{digits[point:]}"


def _scientific(digits: str, point: int, *, width: int) -> str:
    exponent = point - 1
    sign = "-" if exponent < 0 else "+"
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{fraction}e{sign}{abs(exponent):0{width}d}"
