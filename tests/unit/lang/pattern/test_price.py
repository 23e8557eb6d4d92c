"""The cost of conditions: long texts, and wildcards against lists."""

import pytest

from pyverno.lang.pattern.price import condition_price


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("a" * 1000, "a*"),
        (["a*"] * 100, ["b"] * 100),
        (["a"] * 100_000, ["b"] * 100),
        (5, ["a*"] * 100_000),
        (None, "a"),
    ],
    ids=["texts", "short lists", "no wildcards", "number", "null"],
)
def test_what_takes_no_time_costs_next_to_nothing(key: object, value: object) -> None:
    """Names and lists without wildcards are read once."""
    assert condition_price(key, value) < 10_000


@pytest.mark.parametrize(
    ("key", "value", "least"),
    [
        ("a" * 1_000_000, "b", 60_000),
        ("a" * 100_000, "?" * 100_000, 300_000),
        (["*a*"] * 1000, ["b"] * 1000, 1_000_000),
        (["b"] * 1000, ["*a*"] * 1000, 1_000_000),
        (["*a*"] * 1000, ["b" * 10_000], 9_000),
        ([{"*": "*"}] * 1000, ["b"] * 1000, 1_000_000),
        (["a"] * 1000, "*" * 1000, 1_000_000),
        ("a" * 10_000, ["*a*"] * 1000, 9_000),
    ],
)
def test_what_takes_time_has_a_price(key: object, value: object, least: int) -> None:
    """Whichever side holds the wildcards, also inside of maps and of texts that may be JSON."""
    assert condition_price(key, value) >= least
