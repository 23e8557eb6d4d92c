"""Kubernetes quantities (`500m`, `1.5Gi`, `1e3`): exact numbers with the suffix family they were written in.

Follows apimachinery's `resource.Quantity`: values below one nano are rounded up, binary values are capped at
2**63-1, text is canonical. Comparison and addition are exact.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache, total_ordering
from typing import TYPE_CHECKING

from pyverno.errors import ValueSyntaxError
from pyverno.kube.gofloat import float_verb_text
from pyverno.kube.names import MAX_NAME
from pyverno.lazyregex import regex
from pyverno.value import dataclass, field

if TYPE_CHECKING:
    import fractions

__all__ = ["Quantity", "QuantityFormat", "parse_quantity", "try_quantity"]


class QuantityFormat(Enum):
    """The suffix family of a quantity."""

    BINARY_SI = "BinarySI"
    DECIMAL_SI = "DecimalSI"
    DECIMAL_EXPONENT = "DecimalExponent"


_BINARY, _DECIMAL, _EXPONENT = QuantityFormat.BINARY_SI, QuantityFormat.DECIMAL_SI, QuantityFormat.DECIMAL_EXPONENT

_SPLIT = regex(r"([+-]?)0*+([0-9]*+)((?:\.([0-9]*+))?+)([eEinumkKMGTP]*+[-+]?+[0-9]*+)")
_EXPONENT_SUFFIX = regex(r"[eE]([+-]?[0-9]{1,19})")
_STARTS = frozenset("0123456789+-.numkKMGTPEe")
_SUFFIXES: dict[str, tuple[int, int, QuantityFormat]] = {
    **{
        suffix: (10, exponent, _DECIMAL)
        for suffix, exponent in (
            ("n", -9),
            ("u", -6),
            ("m", -3),
            ("", 0),
            ("k", 3),
            ("M", 6),
            ("G", 9),
            ("T", 12),
            ("P", 15),
            ("E", 18),
        )
    },
    **{f"{letter}i": (2, 10 * (index + 1), _BINARY) for index, letter in enumerate("KMGTPE")},
}
_DECIMAL_TEXTS = {exponent: suffix for suffix, (base, exponent, _) in _SUFFIXES.items() if base == 10}
_BINARY_TEXTS = {exponent: suffix for suffix, (base, exponent, _) in _SUFFIXES.items() if base == 2}

_NANO = -9
_INT64_MAX = 2**63 - 1
_LONGEST = 4_000
"""Characters above which a text is refused: Python reads no longer integers, and no quantity needs them."""

_WIDEST = 10_000
"""Decimal places that two values may be apart before an exact sum is refused."""

_FORM_ERROR = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_NUMBER_ERROR = "unable to parse numeric part of quantity"
_SUFFIX_ERROR = "unable to parse quantity's suffix"


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """One exact value: `unscaled` times ten to the power of `exponent`, written in the family `format`.

    `text` is what was parsed when Kubernetes prints it back unchanged, else empty. Order and equality look at the
    value only.

    >>> str(parse_quantity("1Gi").add(parse_quantity("1Mi")))
    '1025Mi'
    """

    unscaled: int
    exponent: int = 0
    format: QuantityFormat = _DECIMAL
    text: str = field(default="", repr=False)

    @property
    def value(self) -> fractions.Fraction:
        """Return the exact value; raises `ValueSyntaxError` when it has more than 10,000 decimal places."""
        if abs(self.exponent) > _WIDEST:
            raise ValueSyntaxError(_NUMBER_ERROR)
        import fractions  # most quantities are compared as integers

        if self.exponent >= 0:
            return fractions.Fraction(self.unscaled * 10**self.exponent)
        return fractions.Fraction(self.unscaled, 10**-self.exponent)

    def __str__(self) -> str:
        return self.text or self.canonical()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.compare(other) == 0

    def __lt__(self, other: Quantity) -> bool:
        return self.compare(other) < 0

    def __hash__(self) -> int:
        digits, exponent = _without_zeros(self.unscaled, self.exponent)
        return hash((digits, exponent))

    def compare(self, other: Quantity) -> int:
        """Return -1, 0 or 1.

        >>> parse_quantity("1Gi").compare(parse_quantity("1024Mi"))
        0
        """
        a, b = self.unscaled, other.unscaled
        shift = self.exponent - other.exponent
        if shift and a and b and (a > 0) == (b > 0):
            # Values of different magnitude are compared before any power is computed.
            gap = _magnitude(self) - _magnitude(other)
            if gap:
                return 1 if (gap > 0) == (a > 0) else -1
            if shift > 0:
                a *= 10**shift
            else:
                b *= 10**-shift
        return (a > b) - (a < b)

    def add(self, other: Quantity) -> Quantity:
        """Return the sum in the family of this quantity, or of the other one when this is zero."""
        return self._sum(other, 1)

    def subtract(self, other: Quantity) -> Quantity:
        """Return the difference in the family of this quantity, or of the other one when this is zero."""
        return self._sum(other, -1)

    def multiply(self, factor: float) -> Quantity:
        """Return the product with a number, exact for the number as Go writes it.

        >>> str(parse_quantity("1Gi").multiply(0.5))
        '512Mi'
        """
        other = parse_quantity(float_verb_text(float(factor)))
        return Quantity(self.unscaled * other.unscaled, self.exponent + other.exponent, self.format)

    def divide(self, divisor: float) -> Quantity:
        """Return the quotient by a number that is not zero, cut toward zero at the finer of the two written scales.

        >>> str(parse_quantity("10.00").divide(3))
        '3330m'
        """
        other = parse_quantity(float_verb_text(float(divisor)))
        if not other.unscaled:
            raise ZeroDivisionError
        exponent = min(self.exponent, other.exponent)
        shift = self.exponent - other.exponent - exponent
        if abs(shift) > _WIDEST:
            raise ValueSyntaxError(_NUMBER_ERROR)
        above, below = abs(self.unscaled), abs(other.unscaled)
        quotient = above * 10**shift // below if shift >= 0 else above // (below * 10**-shift)
        negative = (self.unscaled < 0) != (other.unscaled < 0)
        return Quantity(-quotient if negative else quotient, exponent, self.format)

    def ratio(self, other: Quantity) -> float:
        """Return this quantity divided by another one that is not zero, in floating point.

        >>> parse_quantity("1Gi").ratio(parse_quantity("512Mi"))
        2.0
        """
        return self.approximate() / other.approximate()

    def modulo(self, other: Quantity) -> Quantity:
        """Return the remainder with the sign of this quantity.

        Both must be whole numbers within 64 bits (`ValueSyntaxError`), the other not zero (`ZeroDivisionError`).

        >>> str(parse_quantity("10Gi").modulo(parse_quantity("3Gi")))
        '1Gi'
        """
        above, below = self.whole(), other.whole()
        if above is None or below is None:
            raise ValueSyntaxError("not a whole number")
        if not below:
            raise ZeroDivisionError
        rest = abs(above) % abs(below)
        return Quantity(-rest if above < 0 else rest, 0, self.format)

    def whole(self) -> int | None:
        """Return the value as integer when it is one within 64 bits, else None.

        >>> parse_quantity("1k").whole(), parse_quantity("1m").whole()
        (1000, None)
        """
        if not self.unscaled:
            return 0
        digits, exponent = _without_zeros(self.unscaled, self.exponent)
        if exponent < 0 or exponent > 19:
            return None
        value = digits * 10**exponent
        return value if -_INT64_MAX - 1 <= value <= _INT64_MAX else None

    def approximate(self) -> float:
        """Return the value in floating point, with the rounding of apimachinery's AsApproximateFloat64."""
        try:
            base = float(self.unscaled)
        except OverflowError:
            base = float("inf") if self.unscaled > 0 else float("-inf")
        return base * _power_of_ten(self.exponent) if self.exponent else base

    def sign(self) -> int:
        """Return -1, 0 or 1."""
        return (self.unscaled > 0) - (self.unscaled < 0)

    def canonical(self) -> str:
        """Return the canonical text: no fraction, the largest suffix that keeps the value exact.

        >>> parse_quantity("0.5").canonical(), parse_quantity("2048Ki").canonical()
        ('500m', '2Mi')
        """
        if not self.unscaled:
            return "0"
        if self.format is _BINARY:
            text = self._binary_text()
            if text is not None:
                return text
        digits, exponent = _without_zeros(self.unscaled, self.exponent)
        rest = exponent % 3
        digits *= 10**rest
        exponent -= rest
        if self.format is _EXPONENT:
            return f"{digits}e{exponent}" if exponent else str(digits)
        # COMPAT: apimachinery drops an exponent for which it has no suffix.
        return f"{digits}{_DECIMAL_TEXTS.get(exponent, '')}"

    def _binary_text(self) -> str | None:
        """Return the text with a binary suffix; None for small values and fractions, which stay decimal."""
        digits, exponent = _without_zeros(self.unscaled, self.exponent)
        if exponent < 0 or exponent > _WIDEST:
            return None
        value = digits * 10**exponent
        if -1024 < value < 1024:
            return None
        times = 0
        while value % 1024 == 0:
            value //= 1024
            times += 1
        return f"{value}{_BINARY_TEXTS.get(10 * times, '')}"

    def _sum(self, other: Quantity, sign: int) -> Quantity:
        written = self.format if self.unscaled else other.format
        if not other.unscaled:
            return Quantity(self.unscaled, self.exponent, written)
        if not self.unscaled:
            return Quantity(sign * other.unscaled, other.exponent, written)
        exponent = min(self.exponent, other.exponent)
        left, right = self.exponent - exponent, other.exponent - exponent
        if max(left, right) > _WIDEST:
            raise ValueSyntaxError(_NUMBER_ERROR)
        return Quantity(self.unscaled * 10**left + sign * other.unscaled * 10**right, exponent, written)


def parse_quantity(text: str) -> Quantity:
    """Read a quantity; raises `ValueSyntaxError` with the text of apimachinery.

    >>> parse_quantity("1.5Gi") == parse_quantity("1536Mi")
    True
    """
    found = _parse(text) if len(text) <= MAX_NAME else _read(text)
    if isinstance(found, str):
        raise ValueSyntaxError(found)
    return found


def try_quantity(text: str) -> Quantity | None:
    """Read a quantity; None when the text is not one.

    >>> try_quantity("nginx") is None
    True
    """
    if not text or text[0] not in _STARTS:
        return None
    found = _parse(text) if len(text) <= MAX_NAME else _read(text)
    return None if isinstance(found, str) else found


def _read(text: str) -> Quantity | str:
    """Return the quantity, or the text of the error."""
    if text == "0":
        return _ZERO
    found = _SPLIT.fullmatch(text) if text else None
    if found is None:
        return _FORM_ERROR
    if len(text) > _LONGEST:
        return _NUMBER_ERROR
    sign, digits, point, fraction, suffix = found.groups()
    digits = digits or "0"
    fraction = fraction or ""
    meaning = _suffix_meaning(suffix)
    if meaning is None:
        return _SUFFIX_ERROR
    base, exponent, written = meaning
    negative = sign == "-"
    if written is not _BINARY:
        if len(digits) + len(fraction) <= 18 and exponent - len(fraction) >= _NANO:
            return _short_decimal(text, negative, digits + fraction, exponent - len(fraction), written)
    elif not fraction and 15 - len(digits) - int(exponent * 3 / 10) - 1 >= 0:
        whole = int(digits)
        # apimachinery prints such a text back unchanged
        kept = text if whole & 7 else ""
        return Quantity((-whole if negative else whole) << exponent, 0, written, kept)
    if not point and digits == "0" and not text.lstrip("+-").startswith("0"):
        return _NUMBER_ERROR
    if point and digits == "0" and not fraction and "0" not in text.partition(".")[0]:
        return _NUMBER_ERROR
    value = int(digits + fraction)
    if base == 2:
        return _long(negative, value << exponent, -len(fraction), written)
    return _long(negative, value, exponent - len(fraction), written)


_parse = lru_cache(maxsize=8192)(_read)  # of texts no longer than a name

_ZERO = Quantity(0, 0, _DECIMAL, "0")


def _short_decimal(text: str, negative: bool, digits: str, exponent: int, written: QuantityFormat) -> Quantity:
    value = int(digits)
    is_kept = exponent % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
    return Quantity(-value if negative else value, exponent, written, text if is_kept else "")


def _long(negative: bool, value: int, scale: int, written: QuantityFormat) -> Quantity | str:
    """Read what does not fit 18 digits: rounded up to nano, binary values capped."""
    if not value:
        return Quantity(0, scale, written)
    if scale > _WIDEST:
        return _NUMBER_ERROR
    if scale > _NANO:
        value *= 10 ** (scale - _NANO)
    elif scale < _NANO:
        drop = _NANO - scale
        value = 1 if drop > _LONGEST + 20 else -(-value // 10**drop)
    scale = _NANO
    if written is _BINARY:
        if value > _INT64_MAX * 10**9:
            value, scale = _INT64_MAX, 0
        elif value < 10**9:
            written = _DECIMAL
    return Quantity(-value if negative else value, scale, written)


def _suffix_meaning(suffix: str) -> tuple[int, int, QuantityFormat] | None:
    known = _SUFFIXES.get(suffix)
    if known is not None:
        return known
    found = _EXPONENT_SUFFIX.fullmatch(suffix)
    if found is None:
        return None
    exponent = int(found[1])
    if not -(2**63) <= exponent < 2**63:
        return None
    # COMPAT: the exponent is cut to 32 bits without a check.
    return 10, (exponent + 2**31) % 2**32 - 2**31, _EXPONENT


def _without_zeros(value: int, exponent: int) -> tuple[int, int]:
    """Move trailing zeros of the digits into the exponent; zero has exponent 0."""
    if not value:
        return 0, 0
    if value % 10:
        return value, exponent
    text = str(value)
    stripped = text.rstrip("0")
    return int(stripped), exponent + len(text) - len(stripped)


def _magnitude(quantity: Quantity) -> int:
    return len(str(abs(quantity.unscaled))) + quantity.exponent


def _power_of_ten(exponent: int) -> float:
    """Go's math.Pow10: a product of two table entries."""
    if exponent > 308:
        return float("inf")
    if exponent < -323:
        return 0.0
    if exponent >= 0:
        return float(f"1e{exponent // 32 * 32}") * float(f"1e{exponent % 32}")
    return float(f"1e-{-exponent // 32 * 32}") / float(f"1e{-exponent % 32}")
