"""Edges of the functions that JMESPath itself defines."""

import math

import pytest

from pyverno.errors import EvaluationError
from tests.unit.lang.jmespath.hosts import evaluate


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("max(`[]`)", None),
        ("min_by(`[]`, &a)", None),
        ("contains('abc', `1`)", False),
        ("contains(`[1]`, `true`)", False),
        ("to_number('1_000')", 1000),
        ("to_number(' 1')", None),
        ("to_number('NaN')", None),
        ("to_number(`true`)", None),
        ("to_number('-1.50')", -1.5),
        ('to_string(`"<"`)', "<"),
        ('to_string(`["<"]`)', '["\\u003c"]'),
        ("to_string(`1e21`)", "1e+21"),
        ('sort_by(`[{"a": 1, "b": 1}, {"a": 1, "b": 2}]`, &a)[].b', [1, 2]),
        ('max_by(`[{"a": 1, "b": 1}, {"a": 1, "b": 2}]`, &a).b', 1),
        ("type(items(`{}`, 'k', 'v'))", "array"),
        ("reverse(`[1, 2]`)", [2, 1]),
    ],
)
def test_standard(text, expected):
    """Empty lists, types that do not fit, order of equals."""
    assert expected == evaluate(text)


def test_the_mean_of_nothing_is_not_a_number():
    """As upstream."""
    assert math.isnan(evaluate("avg(`[]`)"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('sort_by(`[{"a": 1}, {"b": 1}]`, &a)', "error in sort_by comparison"),
        ('sort_by(`[{"b": 1}, {"a": 1}]`, &a)', "invalid type, must be number of string"),
        ('max_by(`[{"a": 1}, {"b": 1}]`, &a)', "invalid type, must be number"),
        ('min_by(`[{"a": "x"}, {"a": 1}]`, &a)', "invalid type, must be string"),
        ('sort(`[1, "a"]`)', 'Invalid type for: [1 a], expected: []jmespath.JpType{"array[string]", "array[number]"}'),
        ("[&a]", "an expression reference may only be an argument of a function"),
        ("type(&a)", 'Invalid type for: an expression reference, expected: []jmespath.JpType{"any"}'),
    ],
)
def test_standard_errors(text, message):
    """The errors have the texts of Kyverno's JMESPath fork."""
    with pytest.raises(EvaluationError) as caught:
        evaluate(text, [])
    assert message == caught.value.detailed
