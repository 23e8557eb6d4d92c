"""Conversion of scalars to text when a function takes texts and numbers alike."""

from __future__ import annotations

import math
import struct
from decimal import Decimal

from pyverno.kube.json import JSON, is_number

__all__ = ["scalar_text"]


def scalar_text(value: JSON) -> str:
    """Return a text as it is, a boolean in lower case, a number in digits without exponent.

    Numbers are rounded to 32 bits first, as upstream (16777217 gives 16777216). Raises TypeError for anything else.

    >>> scalar_text(1.50), scalar_text(True), scalar_text(16777217)
    ('1.5', 'true', '16777216')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if not is_number(value):
        raise TypeError("not a scalar")
    return _float32_digits(value)


def _float32_digits(value: float) -> str:
    """Return the shortest digits that read back as the same 32-bit float (Go: FormatFloat(f, 'f', -1, 32))."""
    try:
        wanted = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return "+Inf" if value > 0 else "-Inf"
    if math.isnan(wanted):
        return "NaN"
    for precision in range(9):
        shown = f"{wanted:.{precision}e}"
        if struct.unpack("<f", struct.pack("<f", float(shown)))[0] == wanted:
            break
    digits = f"{Decimal(shown):f}"
    return digits.rstrip("0").rstrip(".") if "." in digits else digits
