"""Convert YAML scalars to JSON values by the rules of sigs.k8s.io/yaml (YAML 1.1 as go-yaml v2 reads it).

`yes/no/on/off/y/n` are booleans, integers take Go's base prefixes and underscores, timestamps and base-60 numbers stay
text, whole floats become integers (they pass through JSON text upstream). Invalid scalars
raise `ValueError` with the reason.
"""

from __future__ import annotations

import binascii
import math
import re
import struct
from collections.abc import Callable
from typing import Final

from pyverno.lazyregex import regex

__all__ = ["TYPE_REMEDIES", "Scalar", "key_text", "resolve_plain", "resolve_tagged"]

Scalar = str | int | float | bool | None

TYPE_REMEDIES: Final = {
    "a string, found a boolean": ": write it in quotes",
    "a string, found a number": ": write it in quotes",
    "a list, found a string": ": write `- ` before it",
    "a list, found an object": ": write `- ` before its first field, and indent the others",
    "an object, found a list": ": write it without `- ` or brackets",
}
"""Advice for values that YAML reads as another type than was meant."""

_WORDS: Final[dict[str, bool | float | None]] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
# A scalar that starts with anything else is text; this is the test that decides most scalars.
_HINTS: Final = frozenset("+-0123456789yYnNtTfFoO~.")
_NUMERIC_HINTS: Final = frozenset("+-0123456789")
_INTEGER: Final = regex(
    r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]([0-7]+)|0([0-7]+)|([1-9][0-9]*|0))", re.ASCII
)
_FLOAT: Final = regex(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
# What strconv.ParseFloat reads after a leading dot; an underscore may be between two digits.
_DOT_FLOAT: Final = regex(r"\.[0-9](?:_?[0-9])*(?:[eE][-+]?[0-9](?:_?[0-9])*)?", re.ASCII)
_BASES: Final = (16, 2, 8, 8, 10)
_MIN_INT64: Final = -(2**63)
_MAX_INT64: Final = 2**63 - 1
_MAX_UINT64: Final = 2**64 - 1
_TAG_PREFIX: Final = "tag:yaml.org,2002:"
# Longest run of digits that can still be a 64-bit integer in base 2, with its sign and prefix.
_MAX_INTEGER_DIGITS: Final = 4000


def _raw_plain(text: str) -> Scalar:
    """One untagged plain scalar with Go's own number types (a float stays a float)."""
    if not text:
        return None
    if text[0] not in _HINTS:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if text[0] == ".":
        return _finite_or_text(text.replace("_", ""), text) if _DOT_FLOAT.fullmatch(text) else text
    if text[0] not in _NUMERIC_HINTS:
        return text
    plain = text.replace("_", "")
    match = _INTEGER.fullmatch(plain)
    if match and len(plain) < _MAX_INTEGER_DIGITS:
        index = match.lastindex or 6
        number = int(match[index], _BASES[index - 2])
        if match[1] == "-":
            number = -number
        if _MIN_INT64 <= number <= _MAX_INT64 or (number > 0 and not match[1] and number <= _MAX_UINT64):
            return number
    return _finite_or_text(plain, text) if _FLOAT.fullmatch(plain) else text


def _finite_or_text(number: str, text: str) -> float | str:
    """Go's ParseFloat reports a range error for what overflows, and the scalar stays text."""
    value = float(number)
    return text if math.isinf(value) else value


def _as_json(value: Scalar) -> Scalar:
    """The value after the JSON text in between: whole floats lose their point, integers beyond int64 are floats."""
    if type(value) is float:
        if math.isinf(value) or math.isnan(value):
            word = ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
            raise ValueError(f"`{word}` has no JSON value")
        if value.is_integer():
            # JSON text carries the shortest digits, which beyond 2**53 may name another integer than the float does.
            import decimal  # few documents hold such a number

            number = int(decimal.Decimal(repr(value)))
            if _MIN_INT64 <= number <= _MAX_INT64:
                return number
    elif type(value) is int and value > _MAX_INT64:
        return float(value)
    return value


def resolve_plain(text: str) -> Scalar:
    """The JSON value of an untagged plain scalar.

    Raises ValueError for infinities and NaN, which JSON cannot hold.

    >>> [resolve_plain(text) for text in ("yes", "0x1F", "017", "1e3", "2001-01-01")]
    [True, 31, 15, 1000, '2001-01-01']
    """
    return _as_json(_raw_plain(text))


def resolve_tagged(tag: str, text: str) -> Scalar:
    """The JSON value of a scalar that carries a tag (`!!str 1`, `!!binary aGk=`, `!mine x`).

    Tags that are not of the YAML core are ignored and the scalar is text. Raises ValueError when text and tag do not
    fit, or for bad base64.

    >>> resolve_tagged("tag:yaml.org,2002:str", "1"), resolve_tagged("tag:yaml.org,2002:int", "0b11")
    ('1', 3)
    """
    return _as_json(_raw_tagged(tag, text))


def _raw_tagged(tag: str, text: str) -> Scalar:
    name = tag.removeprefix(_TAG_PREFIX) if tag.startswith(_TAG_PREFIX) else ""
    if name == "binary":
        return _binary(text)
    accepts = _TAG_TYPES.get(name)
    if accepts is None:
        return text
    value = _raw_plain(text)
    if name == "float" and type(value) is int:
        return float(value)
    if not accepts(value):
        raise ValueError(f"`{text}` is not a value of tag `!!{name}`")
    return value


_TAG_TYPES: Final[dict[str, Callable[[Scalar], bool]]] = {
    "bool": lambda value: isinstance(value, bool),
    "int": lambda value: type(value) is int,
    "float": lambda value: type(value) is float,
    "null": lambda value: value is None,
    "timestamp": lambda value: isinstance(value, str),
}


def _binary(text: str) -> str:
    import base64  # few documents hold binary values

    try:
        data = base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("`!!binary` value is not valid base64") from None
    # Go's JSON encoder writes U+FFFD for bytes that are not UTF-8.
    return data.decode("utf-8", "replace")


def key_text(text: str, tag: str | None, *, plain: bool) -> str:
    """The text of a mapping key: keys that are not strings become strings as sigs.k8s.io/yaml spells them.

    Raises ValueError for a null key.

    >>> key_text("yes", None, plain=True), key_text("0x10", None, plain=True), key_text("1.50", None, plain=True)
    ('true', '16', '1.5')
    """
    if not tag:
        value = _raw_plain(text) if plain else text
    else:
        value = _raw_tagged(tag, text)
    if isinstance(value, str):
        return value
    if value is None:
        raise ValueError("a mapping key cannot be null")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if value > _MAX_INT64:
            raise ValueError(f"mapping key `{text}` is beyond 64-bit integers")
        return str(value)
    return _float32_text(value)


def _float32_text(value: float) -> str:
    """The shortest text that reads back as the same 32-bit float, as Go's FormatFloat(v, 'g', -1, 32)."""
    if math.isnan(value):
        return ".nan"
    try:
        packed = struct.pack("f", value)
    except OverflowError:
        packed = struct.pack("f", math.copysign(math.inf, value))
    single = struct.unpack("f", packed)[0]
    if math.isinf(single):
        return ".inf" if single > 0 else "-.inf"
    digits = next(text for p in range(9) if struct.pack("f", float(text := f"{single:.{p}e}")) == packed or p == 8)
    mantissa, _, exponent_text = digits.partition("e")
    exponent = int(exponent_text)
    if exponent < -4 or exponent >= 6:
        return f"{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    return f"{float(digits):.{max(0, len(mantissa.lstrip('-').replace('.', '')) - 1 - exponent)}f}"
