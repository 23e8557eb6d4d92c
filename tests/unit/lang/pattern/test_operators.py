"""Condition operators by their families."""

from __future__ import annotations

import itertools

import pytest

from pyverno.lang.pattern.operators import OPERATORS, compile_operator, operator

EQUALITY = [
    (True, "Equals", True, True),
    (True, "Equals", 1, False),
    (True, "Equals", "true", False),
    (1, "Equals", True, False),
    (5, "Equals", 5, True),
    (5, "Equals", 5.0, True),
    (5, "Equals", "5", True),
    (5, "Equals", "5.0", False),
    (5, "Equals", "+5", True),
    (5.0, "Equals", "5.0", True),
    (5.0, "Equals", "0x1.4p2", True),
    (5.5, "Equals", 5, False),
    (5, "Equals", [5], False),
    ("abc", "Equals", "a*", True),
    ("a*", "Equals", "abc", False),
    ("1", "Equals", 1, False),
    ("1h", "Equals", 3600, True),
    ("1h", "Equals", 3600.9, True),
    ("1h", "Equals", "60m", True),
    (3600, "Equals", "1h", False),
    ("0", "Equals", "0s", False),
    ("1Gi", "Equals", "1024Mi", True),
    ("1E", "Equals", "1000P", True),
    ("10", "Equals", "1*", False),
    ("1m", "Equals", "60s", True),
    ("1m", "Equals", "0.001", True),
    ("", "Equals", "", True),
    ([1, "a"], "Equals", [1.0, "a"], True),
    (["a", "b"], "Equals", ["b", "a"], False),
    ({"a": 1}, "Equals", {"a": 1}, True),
    ({"a": 1}, "Equals", [1], False),
    ([True], "Equals", [1], False),
    (None, "Equals", None, False),
    (None, "NotEquals", "x", False),
    ("x", "NotEquals", None, True),
    ("x", "NotEquals", 1, True),
    ("10", "NotEquals", "", True),
    (1.5, "NotEquals", "a", True),
    ("a", "NotEqual", "a", False),
    ("a", "Equal", "a", True),
    ("a", "eQuAlS", "a", True),
]

MEMBERSHIP = [
    ("a", "AnyIn", ["a", "b"], True),
    ("a*", "AnyIn", ["abc"], True),
    ("abc", "AllIn", ["a*"], True),
    (5, "AnyIn", [5], True),
    (1000000, "AnyIn", [1000000], True),
    (5.0, "AnyIn", ["5"], True),
    (True, "AnyIn", ["true"], True),
    ("5", "AnyIn", "1-10", True),
    ("5", "AnyIn", "1!-3", False),
    ("2h", "AnyIn", "60m-3h", True),
    ("512Mi", "AnyIn", "100Mi-1Gi", True),
    ("x", "AnyIn", "1-10", False),
    ("x", "AnyNotIn", "1-10", True),
    ("a", "AnyIn", '["a", "b"]', True),
    ("a", "AnyNotIn", '["a", "b"]', False),
    ("x", "AnyNotIn", "5", False),
    ("5", "AnyNotIn", "5", False),
    ("x", "AllNotIn", '"x"', False),
    ("x", "AnyIn", "null", False),
    ("x", "AnyNotIn", "null", True),
    ("x", "AllNotIn", 5, False),
    ("", "AnyIn", '["a", null]', True),
    (None, "AnyIn", ["<nil>"], False),
    (None, "AllNotIn", ["x"], False),
    ({"a": 1}, "AnyNotIn", ["x"], False),
    ([None, {"a": 1}], "AllIn", ["<nil>", "map[a:1]"], True),
    ([1, 20], "AllIn", "10-30", False),
    ([1, 20], "AnyIn", "10-30", True),
    ([1, 20], "AnyNotIn", "10-30", True),
    ([1, 20], "AllNotIn", "10-30", False),
    ([1, 2], "AllNotIn", "10-30", True),
    ([-5], "AnyNotIn", "-10-0", True),
    ([1, 2], "AnyIn", 2, True),
    ([1, 2], "AllIn", 2, False),
    ([True], "AnyIn", True, True),
    ([], "AllIn", ["a"], True),
    ([], "AnyIn", ["a"], False),
    ([], "AllNotIn", ["a"], True),
    ([], "AnyNotIn", ["a"], False),
    (["a"], "AnyIn", "a", True),
    (["a"], "AllNotIn", "a", False),
    (["a", "b"], "AllIn", "*", True),
    (["a", "b"], "AllIn", '["a", "*"]', True),
    (["a"], "AllIn", "[5]", False),
    (["a"], "AllNotIn", "[5]", False),
    ("a", "In", ["*"], True),
    (["a"], "In", ["*"], False),
    (["a"], "In", ["a", "b"], True),
    (["a", "c"], "NotIn", ["a", "b"], True),
    (["a"], "NotIn", ["a", "b"], False),
    (["a"], "NotIn", "a", True),
    (["a"], "In", "a", True),
    (["a"], "NotIn", "b", False),
    ([1], "In", ["1"], False),
    ([1], "NotIn", ["2"], False),
    (["a"], "NotIn", ["b", 1], False),
    ("a", "NotIn", "b", False),
    ("a", "NotIn", ["b", 1], True),
    ("a", "NotIn", "null", True),
    ("a", "NotIn", 5, False),
]

ORDER = [
    (10, "GreaterThan", 9, True),
    (10, "GreaterThan", "9.5", True),
    (10, "GreaterThan", True, False),
    (1000000, "GreaterThan", "1_000", True),
    ("1_000_000", "GreaterThan", "1_000", True),
    ("1__0", "GreaterThan", "1", False),
    (True, "GreaterThan", 0, False),
    (None, "LessThan", 1, False),
    (10, "GreaterThanOrEquals", "10", True),
    (59, "LessThan", "1m", True),
    ("1m", "GreaterThan", 59, True),
    ("1m", "GreaterThan", "59", False),
    ("0", "LessThan", "1h", True),
    ("1h", "GreaterThan", True, False),
    ("1Gi", "GreaterThan", "1Mi", True),
    ("1Gi", "GreaterThan", 5, False),
    (5, "GreaterThan", "1Ki", False),
    ("1.10.0", "GreaterThan", "1.9.0", True),
    ("1.0.0-rc1", "LessThan", "1.0.0", True),
    ("v1.10.0", "GreaterThan", "1.9.0", False),
    ("1.10", "GreaterThan", "1.9", False),
    ("1.10.0", "GreaterThan", 1, False),
    ("abc", "LessThanOrEquals", "abd", False),
    ("m", "LessThanOrEquals", "100m", True),  # a suffix alone is 0, as in apimachinery
    ("Ki", "GreaterThan", "1", False),
    ("e1", "LessThan", "1", True),
    ("i", "LessThan", "1", False),
    ("5", "LessThan", 6, True),
    (5, "LessThan", "inf", True),
    (5, "LessThan", [6], False),
    (5, "lessthan", 6, False),
    (5, "DURATIONLESSTHAN", 6, False),
    (5.9, "DurationGreaterThan", 5, False),
    ("1h", "DurationGreaterThanOrEquals", 3600, True),
    (3599, "DurationLessThan", "1h", True),
    ("0", "DurationLessThanOrEquals", "0s", True),
    ("x", "DurationLessThan", "1h", False),
    (True, "DurationLessThan", "1h", False),
]


@pytest.mark.parametrize(("key", "name", "value", "expected"), EQUALITY + MEMBERSHIP + ORDER)
def test_an_operator_answers_for_a_key_and_a_value(key, name, value, expected):
    """Both call forms of an operator give the same answer."""
    assert expected is operator(name)(key, value)
    assert expected is compile_operator(name, value)(key)


def test_there_are_no_other_operators():
    """An unknown name is None, not an operator that is always false."""
    assert operator("Matches") is None
    assert compile_operator("", 1) is None


def test_deprecated_operators_name_their_alternatives():
    """The texts of warnings need them."""
    assert OPERATORS["In"].alternatives == ("AllIn", "AnyIn")
    assert OPERATORS["NotIn"].alternatives == ("AllNotIn", "AnyNotIn")
    assert OPERATORS["Equals"].alternatives == ()
    assert OPERATORS["DurationGreaterThan"].alternatives == ()


def test_no_operator_raises_for_any_pair_of_types():
    """Every type problem is an answer."""
    values = [None, True, 0, -1, 2**80, 1.5, 1e300, "", "0", "1-", "|1-2", "1-|2", "!", "[", "1h", "1e99999", "x" * 500]
    values += ["9" * 5000, "[[1]]", '["a"]', [], [None], [[1]], {}, {"a": []}, "NaN", "\ud800", "Infinity", "+-1"]
    for name, key, value in itertools.product(OPERATORS, values, values):
        assert operator(name)(key, value) in (True, False)
