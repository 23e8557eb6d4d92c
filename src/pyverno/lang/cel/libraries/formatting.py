"""The `format` function: clauses of a format text, filled with values.

cel-go has two: one (strings version 1 to 3, which Kubernetes has) prints numbers in an English locale, the other
(from version 4) does without. This module must never make text larger than `produce` allows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from pyverno.errors import EvaluationError
from pyverno.kube.gofloat import float_verb_text
from pyverno.lang.cel.formatclauses import clauses
from pyverno.lang.cel.scalars import Duration, Timestamp, TypeValue, Uint
from pyverno.lang.cel.times import duration_text, timestamp_text
from pyverno.lang.cel.values import Value, map_items, type_name
from pyverno.value import dataclass

__all__ = ["format_locale_free", "format_with_locale"]

_DIGITS: Final = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_THIN: Final = "\u202f"


@dataclass(frozen=True, slots=True)
class _Style:
    """The printers of one version of the library for each clause."""

    text: Callable[[Value], str]
    decimal: Callable[[Value], str]
    fixed: Callable[[Value, int], str]
    scientific: Callable[[Value, int], str]
    of_binary: str
    """Types that `%b` accepts, for its error."""
    of_hexadecimal: str


def format_with_locale(text: str, values: Value, produce: Callable[[int], None]) -> str:
    """Fill in a format text as strings versions 1 to 3 do."""
    return _format(text, values, _LOCALE, produce)


def format_locale_free(text: str, values: Value, produce: Callable[[int], None]) -> str:
    """Fill in a format text as strings version 4 does."""
    return _format(text, values, _FREE, produce)


def _format(text: str, values: Value, style: _Style, produce: Callable[[int], None]) -> str:
    parts: list[str] = []
    size = used = 0
    for clause in clauses(text, len(values)):
        if isinstance(clause, str):
            parts.append(clause)
            continue
        try:
            piece = _verb(clause.verb, values[used], clause.precision, style)
        except _ClauseError as error:
            raise EvaluationError(f"error during formatting: {error}") from None
        used += 1
        size += len(piece)
        produce(size)
        parts.append(piece)
    return "".join(parts)


class _ClauseError(ValueError):
    """A value that a clause does not take."""


def _verb(verb: str, value: Value, precision: int, style: _Style) -> str:
    if verb == "s":
        return style.text(value)
    if verb == "d":
        return style.decimal(value)
    if verb == "f":
        return style.fixed(value, precision)
    if verb == "e":
        return style.scientific(value, precision)
    if verb == "b":
        return _binary(value, style)
    if verb in "xX":
        text = _hexadecimal(value, style)
        return text.upper() if verb == "X" else text
    if type(value) not in (int, Uint):
        raise _ClauseError(f"octal clause can only be used on integers, was given {type_name(value)}")
    return f"{int(value):o}"


def _binary(value: Value, style: _Style) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    if type(value) not in (int, Uint):
        raise _ClauseError(f"only {style.of_binary} can be formatted as binary, was given {type_name(value)}")
    return f"{int(value):b}"


def _hexadecimal(value: Value, style: _Style) -> str:
    if type(value) in (int, Uint):
        return f"{int(value):x}"
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass").hex()
    if isinstance(value, bytes):
        return value.hex()
    raise _ClauseError(f"only {style.of_hexadecimal} can be formatted as hex, was given {type_name(value)}")


def _not_finite(value: float) -> str | None:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return None


# with a locale (strings versions 1 to 3)


def _locale_text(value: Value) -> str:
    if isinstance(value, (list, tuple, dict)):
        return _locale_literal(value)
    if value is None:
        return "null"
    return _scalar_text(value)


def _scalar_text(value: Value) -> str:
    """Return a scalar as `string(value)` prints it."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return float_verb_text(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, Timestamp):
        return timestamp_text(value)
    if isinstance(value, Duration):
        return duration_text(value)
    if isinstance(value, TypeValue):
        return value.name
    raise _ClauseError(
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and "
        f"timestamps, was given {type_name(value)}"
    )


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def _locale_literal(value: Value) -> str:
    """Return a value inside a list or map as a CEL literal."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_locale_literal, value))}]"
    if isinstance(value, dict):
        pairs = sorted((_map_key(key), _locale_literal(item)) for key, item in map_items(value))
        return f"{{{', '.join(f'{key}:{item}' for key, item in pairs)}}}"
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, bytes):
        return f"b{_quote(value.decode('utf-8', 'replace'))}"
    if isinstance(value, float):
        odd = {"NaN": '"NaN"', "Infinity": '"+Inf"', "-Infinity": '"-Inf"'}.get(_not_finite(value) or "")
        return odd or f"{value:.6f}"
    if isinstance(value, Timestamp):
        return f"timestamp({_quote(timestamp_text(value))})"
    if isinstance(value, Duration):
        return f"duration({_quote(duration_text(value))})"
    return _locale_text(value)


def _map_key(key: Value) -> str:
    return _quote(key) if isinstance(key, str) else _scalar_text(key)


def _locale_decimal(value: Value) -> str:
    if type(value) not in (int, Uint):
        raise _ClauseError(f"decimal clause can only be used on integers, was given {type_name(value)}")
    return str(int(value))


def _locale_double(value: Value, clause: str) -> float:
    if isinstance(value, float):
        return value
    odd = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
    if isinstance(value, str) and value in odd:
        return odd[value]
    raise _ClauseError(f"{clause} clause can only be used on doubles, was given {type_name(value)}")


_SYMBOLS: Final = {"NaN": "NaN", "Infinity": "∞", "-Infinity": "-∞"}


def _locale_fixed(value: Value, precision: int) -> str:
    number = _locale_double(value, "fixed-point")
    odd = _not_finite(number)
    return _SYMBOLS[odd] if odd else f"{number:,.{precision}f}"


def _locale_scientific(value: Value, precision: int) -> str:
    number = _locale_double(value, "scientific")
    odd = _not_finite(number)
    if odd:
        return _SYMBOLS[odd]
    mantissa, _, exponent = f"{number:.{precision}e}".partition("e")
    sign = "⁻" if exponent.startswith("-") else ""
    return f"{mantissa}{_THIN}×{_THIN}10{sign}{exponent[1:].translate(_DIGITS)}"


# without locale (strings version 4)


def _free_text(value: Value) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_free_text, value))}]"
    if isinstance(value, dict):
        pairs = sorted((_free_text(key), _free_text(item)) for key, item in map_items(value))
        return f"{{{', '.join(f'{key}: {item}' for key, item in pairs)}}}"
    if value is None:
        return "null"
    if isinstance(value, float):
        return _plain_double(value)
    if isinstance(value, Timestamp):
        return timestamp_text(Timestamp(value.ns))
    return _scalar_text(value)


def _plain_double(value: float) -> str:
    """Return a double in digits without exponent, as Go's FormatFloat('f', -1) prints it."""
    odd = _not_finite(value)
    if odd:
        return odd
    mantissa, _, exponent = repr(value).partition("e")
    if not exponent:
        return mantissa.removesuffix(".0")
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    sign = "-" if value < 0 else ""
    shift = int(exponent)
    if shift > 0:
        return sign + whole + fraction.ljust(shift, "0")
    return f"{sign}0.{'0' * (-shift - 1)}{whole}{fraction}"


def _free_decimal(value: Value) -> str:
    if type(value) in (int, Uint):
        return str(int(value))
    if isinstance(value, float):
        return _plain_double(value)
    raise _ClauseError(f"decimal clause can only be used on ints, uints, and doubles, was given {type_name(value)}")


def _free_double(value: Value, clause: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _ClauseError(
            f"{clause} clause can only be used on ints, uints, and doubles, was given {type_name(value)}"
        )
    return float(value)


def _free_fixed(value: Value, precision: int) -> str:
    number = _free_double(value, "fixed-point")
    return _not_finite(number) or f"{number:.{precision}f}"


def _free_scientific(value: Value, precision: int) -> str:
    number = _free_double(value, "scientific")
    return _not_finite(number) or f"{number:.{precision}e}"


_LOCALE: Final = _Style(
    _locale_text,
    _locale_decimal,
    _locale_fixed,
    _locale_scientific,
    "integers and bools",
    "integers, byte buffers, and strings",
)
_FREE: Final = _Style(
    _free_text,
    _free_decimal,
    _free_fixed,
    _free_scientific,
    "ints, uints, and bools",
    "ints, uints, bytes, and strings",
)
