"""Quantities as apimachinery has them."""

import pytest

from pyverno.errors import ValueSyntaxError
from pyverno.kube.quantity import parse_quantity, try_quantity


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1000m", "1"),
        ("0.5", "500m"),
        ("1024Ki", "1Mi"),
        ("1.5Gi", "1536Mi"),
        ("0.1n", "1n"),
        ("1e3", "1e3"),
        ("1000E", "1"),  # apimachinery drops the exponent it has no suffix for
        ("8Ei", "9223372036854775807"),
        ("-0.0", "0"),
        ("m", "0"),
        ("100Ki", "100Ki"),
        ("0.5Ki", "512"),
        ("1.0000000001", "1000000001n"),
    ],
)
def test_text_is_canonical(text, expected):
    """No fraction, the largest suffix that keeps the value, rounded up to nano."""
    assert expected == parse_quantity(text).canonical()


def test_what_is_nearly_canonical_is_printed_back():
    """apimachinery keeps such a text although it is not canonical."""
    assert ("1.234", "1234m") == (str(parse_quantity("1.234")), parse_quantity("1.234").canonical())


@pytest.mark.parametrize(
    "text", ["", "abc", "1_000", "٣", "1 ", "1.1.1", "1Gi1", "1ki", "1e", "1i", "1e99999999999999999999"]
)
def test_other_texts_are_refused(text):
    """Python's own number parsing would take some of them."""
    assert try_quantity(text) is None
    with pytest.raises(ValueSyntaxError):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [("1Gi", "1024Mi", 0), ("1", "1001m", -1), ("1E", "1000P", 0), ("1e2147483647", "1", 1), ("-1", "1", -1)],
)
def test_comparison_is_exact_and_bounded(left, right, expected):
    """Huge exponents are compared without computing their powers."""
    assert expected == parse_quantity(left).compare(parse_quantity(right))


def test_equal_values_have_one_hash():
    """Equal quantities with different suffixes have the same hash."""
    assert 1 == len({parse_quantity("1"), parse_quantity("1000m"), parse_quantity("1e0")})


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (lambda q: q("1Gi").add(q("1Mi")), "1025Mi"),
        (lambda q: q("5m").add(q("10")), "10005m"),
        (lambda q: q("0").add(q("1Gi")), "1Gi"),
        (lambda q: q("1").subtract(q("1500m")), "-500m"),
        (lambda q: q("1Gi").multiply(3.0), "3Gi"),
        (lambda q: q("1Gi").multiply(0.5), "512Mi"),
        (lambda q: q("10").divide(3), "3"),
        (lambda q: q("10.00").divide(3), "3330m"),
        (lambda q: q("1000m").divide(2), "500m"),
        (lambda q: q("1").divide(2), "0"),
        (lambda q: q("-10").modulo(q("3")), "-1"),
        (lambda q: q("10Gi").modulo(q("3Gi")), "1Gi"),
    ],
)
def test_arithmetic_keeps_the_family_of_the_left_operand(operation, expected):
    """Zero takes the family of the other operand."""
    assert expected == str(operation(parse_quantity))


def test_modulo_needs_whole_numbers():
    """The divisor must not be zero either."""
    with pytest.raises(ValueSyntaxError):
        parse_quantity("1500m").modulo(parse_quantity("1"))
    with pytest.raises(ZeroDivisionError):
        parse_quantity("1").modulo(parse_quantity("0"))
