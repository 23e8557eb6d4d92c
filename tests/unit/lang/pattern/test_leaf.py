"""Claims about leaves."""

import pytest

from pyverno.kube.json import JSON
from pyverno.lang.pattern.leaf import (
    Operator,
    as_float,
    compile_leaf,
    integer_range,
    literal_texts,
    number_text,
    plain_text,
    split_operator,
)

CASES: list[tuple[JSON, JSON, bool]] = [
    # identity and text
    (">5", ">5", True),
    ("a", "a", True),
    ("a", "A", False),
    ("a", None, False),
    ("", "", True),
    ("", None, False),
    ("a*", "abc", True),
    ("a?", "a", False),
    ("?*", "", False),
    ("?*", "x", True),
    ("?*", 0, True),
    ("?*", None, False),
    ("*", "", True),
    ("*", None, False),
    ("*", {}, False),
    ("*", False, True),
    ("tru*", True, True),
    ("true", True, True),
    ("false", False, True),
    ("false", 0, False),
    ("true", 1, False),
    ("1.5*", 1.5, True),
    ("1.5E+00x | 1.5E*", 1.5, True),
    # alternatives and conjunctions
    ("a | b", "b", True),
    ("a|b", "c", False),
    ("x|", "", True),
    (">1 & <5", 3, True),
    (">1&<5", 5, False),
    ("<1 | >5 & <7", 6, True),
    ("a & a", "a", True),
    # operators
    (">=5", 5, True),
    (">= 5", "5", True),
    ("<5", None, True),
    (">5", True, False),
    ("!a", "b", True),
    ("!a", "a", False),
    ("!a", None, False),
    ("!a", {}, False),
    ("!5", None, True),
    ("!a*", "abc", False),
    ("!1-5", 3, True),
    ("!1-5", "1-5", False),
    (">a", "b", False),
    ("!", "!", True),
    ("!", "x", False),
    # ranges
    ("1-10", 5, True),
    ("1-10", 10, True),
    ("1-10", 11, False),
    ("1!-10", 50, True),
    ("1!-10", 10, False),
    ("-5--1", -3, True),
    ("+1-+3", 2, True),
    ("1Mi-1Gi", "128Mi", True),
    ("1m-1h", "30m", True),
    ("1-5-9", "1-5-9", True),
    ("1-10", "5\n", False),
    ("1-", "1-", True),
    # durations and quantities
    ("1Gi", "1024Mi", True),
    ("60s", "1m", True),
    ("1m", "60s", True),
    ("1m", 60, False),
    ("1m", 0.001, True),
    ("<1m", "30s", True),
    (">=1h", 3600, False),
    ("0.5", "500m", True),
    ("0", "0s", True),
    ("0", 0, True),
    (">0", 0, False),
    (">0", 1000, True),
    ("<=1k", 1000, True),
    ("1E", "1000P", True),
    # bool
    (True, True, True),
    (True, "true", False),
    (True, 1, False),
    (False, None, False),
    (False, 0, False),
    # numbers
    (5, 5, True),
    (5, 5.0, True),
    (5, 5.5, False),
    (5, "5", True),
    (5, "+5", True),
    (5, "5.0", False),
    (5, " 5", False),
    (5, "5_0", False),
    (5, "٥", False),
    (1, True, False),
    (0, False, False),
    (0, None, False),
    (5.0, 5, True),
    (5.5, 5, False),
    (5.5, "5.5", True),
    (5.5, "55e-1", True),
    (5.5, "5,5", False),
    (1.0, True, False),
    (9223372036854775807, "9223372036854775807", True),
    (9223372036854775808, "9223372036854775808", False),
    # null, map, list
    (None, None, True),
    (None, 0, True),
    (None, 0.0, True),
    (None, "", True),
    (None, False, True),
    (None, "0", False),
    (None, {}, False),
    (None, [], False),
    ({"a": 1}, {}, True),
    ({}, [], False),
    ([], [], False),
    # values of the wrong kind never match
    ("a", [], False),
    (">0", {}, False),
    ("a", ["a"], False),
]


@pytest.mark.parametrize(("pattern", "value", "expected"), CASES)
def test_a_leaf_accepts(pattern: JSON, value: JSON, expected: bool) -> None:
    """One leaf against one value."""
    assert compile_leaf(pattern)(value) is expected


@pytest.mark.parametrize(
    ("pattern", "value", "expected"),
    [(5, "5.0", True), (5, "5", True), (5, 5, True), (5, 6, False), (5, True, False), (10**400, 5, False)],
)
def test_float_numbers_read_integers_as_floats(pattern: JSON, value: JSON, expected: bool) -> None:
    """Inside anyPattern every number is a float."""
    assert compile_leaf(pattern, float_numbers=True)(value) is expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("", Operator.EQUAL),
        ("!", Operator.EQUAL),
        (">=1", Operator.MORE_EQUAL),
        ("<=1", Operator.LESS_EQUAL),
        (">1", Operator.MORE),
        ("<1", Operator.LESS),
        ("!1-5", Operator.NOT_EQUAL),
        ("1-5", Operator.IN_RANGE),
        ("1!-5", Operator.NOT_IN_RANGE),
        ("1.2.3-4", Operator.EQUAL),
        ("a-b", Operator.EQUAL),
        ("1-5\n", Operator.EQUAL),
    ],
)
def test_operators_are_found_by_their_text(condition: str, expected: Operator) -> None:
    """Prefixes win over ranges, texts shorter than two characters have none."""
    assert split_operator(condition)[0] is expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a", {"a"}),
        ("a | b", {"a | b", "a", "b"}),
        ("a|", {"a|", "a", ""}),
        ("a*", None),
        ("a & b", None),
        ("5", None),
        ("1h", None),
        ("!a", None),
    ],
)
def test_only_plain_alternatives_are_literal(pattern: str, expected: set[str] | None) -> None:
    """Operators, wildcards, durations and quantities take the long way."""
    assert literal_texts(pattern) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (">0", (1, None)),
        ("<=5", (None, 5)),
        ("<5", (None, 4)),
        (">=2 & <9", (2, 8)),
        ("7", (7, 7)),
        ("1-1k", (1, 1000)),
        ("-5--1", (-5, -1)),
        ("!5", None),
        ("1!-5", None),
        (">0 | <9", None),
        (">0.5", None),
        (">1h", None),
        ("a", None),
    ],
)
def test_integer_ranges_are_exact(pattern: str, expected: tuple[int | None, int | None] | None) -> None:
    """The leaf agrees with its range on every integer but zero."""
    bounds = integer_range(pattern)
    assert bounds == expected
    if bounds is not None:
        low, high = bounds
        leaf = compile_leaf(pattern)
        for value in filter(None, range(-20, 1100)):
            assert leaf(value) is ((low is None or low <= value) and (high is None or value <= high))


@pytest.mark.parametrize(
    ("value", "number", "plain"),
    [
        (None, "0", None),
        (True, None, "true"),
        (7, "7", "7"),
        (1.5, "1.500000", "1.5E+00"),
        (1e21, "1000000000000000000000.000000", "1E+21"),
        (-0.00012, "-0.000120", "-1.2E-04"),
        (0.0, "0.000000", "0E+00"),
        (100.0, "100.000000", "1E+02"),
        ("x", "x", "x"),
        ({}, None, None),
        ([], None, None),
    ],
)
def test_values_render_as_go_renders_them(value: JSON, number: str | None, plain: str | None) -> None:
    """Numbers have six decimals for quantities, and the shortest exponent form as text."""
    assert (number_text(value), plain_text(value)) == (number, plain)


def test_integers_beyond_a_float_become_infinite() -> None:
    """No number of a document is too large to compare."""
    assert as_float(-(10**400)) == float("-inf")


def test_thousands_of_zeros_are_a_number() -> None:
    """Python reads no number of more than 4,300 digits by itself."""
    assert compile_leaf(5)("0" * 5000 + "5")
    assert compile_leaf(-5)("-" + "0" * 5000 + "5")
    assert not compile_leaf(5)("0" * 5000)
