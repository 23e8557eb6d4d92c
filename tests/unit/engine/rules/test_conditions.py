"""Conditions: forms, order of evaluation, messages and errors."""

from __future__ import annotations

import pytest

from pyverno.engine.rules.conditions import compile_conditions
from pyverno.errors import BudgetExceededError, EvaluationError, SubstitutionError
from pyverno.lang.runtime import Runtime

TRUE = {"key": 1, "operator": "Equals", "value": 1}
FALSE = {"key": 1, "operator": "Equals", "value": 2}
FAILS = {"key": "{{ zz }}", "operator": "Equals", "value": 2}
SCOPE = {"a": "x", "n": None, "l": ["p", "q"], "five": 5, "request": {"object": {"k": 1}, "oldObject": {"k": 2}}}


def check(conditions, **options):
    """Compile and check in one step."""
    return compile_conditions(conditions, **options).check(SCOPE, Runtime())


def saying(condition, message):
    """Return the condition with a message."""
    return {**condition, "message": message}


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        (None, True),
        ({"any": [], "all": []}, True),
        ({"any": [FAILS], "all": [FALSE]}, False),
        ({"any": [TRUE, FAILS], "all": [TRUE]}, True),
        ({"any": [FALSE], "all": [TRUE]}, False),
        ({"all": [FALSE, FAILS]}, False),
        ([{"all": [FALSE]}, {"all": [FAILS]}], False),
    ],
)
def test_conditions_of_cleanup_and_exceptions_end_with_the_decision(conditions, expected):
    """All of `all` come first; what follows the decision is not evaluated and cannot fail."""
    compiled = compile_conditions(conditions, blocks=isinstance(conditions, list))
    assert expected == compiled.hold(SCOPE, Runtime())


def test_an_error_in_all_is_reported_before_one_in_any():
    """The order in which they are evaluated."""
    other = {**FAILS, "key": "{{ request.missing }}"}
    with pytest.raises(SubstitutionError, match="missing"):
        compile_conditions({"any": [FAILS], "all": [other]}).hold(SCOPE, Runtime())


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        (None, True),
        ({}, True),
        ([], True),
        ({"any": [], "all": []}, False),
        ({"all": []}, True),
        ({"any": []}, False),
        ({"any": None, "all": None}, True),
        ({"any": [FALSE, TRUE]}, True),
        ({"any": [FALSE, FALSE]}, False),
        ({"any": [TRUE, FAILS]}, True),
        ({"any": [TRUE], "all": [TRUE, FALSE, FAILS]}, False),
        ([TRUE, TRUE], True),
        ([FALSE, FAILS], False),
        ([{"any": [TRUE]}, {"all": [TRUE]}], True),
        ([{"any": [FALSE]}, {"all": [FAILS]}], False),
    ],
)
def test_conditions_are_met_in_all_their_forms(conditions, expected):
    """Evaluation stops where Kyverno's stops."""
    assert expected is check(conditions).met


def test_empty_maps_in_a_list_are_blocks_only_with_the_option():
    """Otherwise they are conditions without an operator."""
    assert check([{}], blocks=True).met
    with pytest.raises(EvaluationError):
        check([{}])


@pytest.mark.parametrize("conditions", [{"any": [FALSE], "all": [FAILS]}, {"any": [FAILS]}, [TRUE, FAILS]])
def test_an_error_surfaces_when_its_condition_is_reached(conditions):
    """`all` is evaluated even when `any` has failed."""
    with pytest.raises(SubstitutionError):
        check(conditions)


@pytest.mark.parametrize(
    ("conditions", "met", "message"),
    [
        ({"any": [saying(FALSE, "f1"), saying(TRUE, "t1")], "all": [saying(TRUE, "t2"), TRUE]}, True, "t1; t2"),
        ({"any": [saying(FALSE, "f1"), saying(TRUE, "t1")], "all": [saying(FALSE, "f2")]}, False, "f1; f2"),
        ({"any": [saying(FALSE, "f1"), FALSE, saying(FALSE, "{{ a }}")]}, False, "f1; {{ a }}"),
        ([saying(TRUE, "t1"), TRUE, saying(TRUE, "t2")], True, "t1;t2"),
        ([saying(TRUE, "t1"), saying(FALSE, "f1"), saying(FALSE, "f2")], False, "f1"),
        ([{"all": [saying(TRUE, "a"), saying(TRUE, "b")]}, {"any": [saying(TRUE, "c")]}], True, "a; b;c"),
        ([{"all": [saying(TRUE, "a")]}, {"any": [saying(FALSE, "c"), saying(FALSE, "d")]}], False, "c; d"),
    ],
)
def test_messages_belong_to_the_conditions_that_decided(conditions, met, message):
    """Blocks join with a blank, lists without."""
    outcome = check(conditions)
    assert (met, message) == (outcome.met, outcome.message)


@pytest.mark.parametrize(
    ("key", "operator", "value", "expected"),
    [
        ("{{ a }}", "Equals", "{{ a }}", True),
        ("{{ l }}", "AnyIn", ["q"], True),
        ("q", "AnyIn", "{{ l }}", True),
        ("{{ n }}", "Equals", "x", False),
        ("{{ five }}", "Equals", "5.0", True),
        ("{{ five }}", "Equals", 5, True),
        ("{{ five }}", "AnyIn", [5], True),
        (5, "Equals", "5.0", True),
        ("{{ zz || 'd' }}", "Equals", "d", True),
        ("x-{{ five }}", "Equals", "x-5", True),
    ],
)
def test_keys_and_values_keep_the_types_of_variables(key, operator, value, expected):
    """Scalar numbers behave as Kyverno's floats."""
    assert expected is check([{"key": key, "operator": operator, "value": value}]).met


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (
            {"key": "{{ zz }}", "operator": "Equals", "value": "{{ yy }}"},
            "failed to substitute variables in condition key: failed to resolve zz at path : "
            'JMESPath query failed: Unknown key "zz" in path',
        ),
        (
            {"key": "a", "operator": "Equals", "value": ["{{ yy }}"]},
            "failed to substitute variables in condition value: failed to resolve yy at path /0: "
            'JMESPath query failed: Unknown key "yy" in path',
        ),
        (
            {"key": "{{ zz }}", "operator": "Nope", "value": 1},
            "failed to substitute variables in condition key: failed to resolve zz at path : "
            'JMESPath query failed: Unknown key "zz" in path',
        ),
        (
            {"key": "{{ a }}", "operator": "Nope", "value": 1},
            "failed to create handler for condition operator: %!w(<nil>)",
        ),
        ({"key": "a", "value": "a"}, "failed to create handler for condition operator: %!w(<nil>)"),
        ("x", "invalid condition"),
    ],
)
def test_errors_have_the_texts_of_kyverno(condition, message):
    """Key first, then value, then operator."""
    with pytest.raises((SubstitutionError, EvaluationError)) as raised:
        check([condition])
    assert message == raised.value.message


@pytest.mark.parametrize("conditions", ["x", 5, {"any": "x"}, {"all": {}}, {"all": ["x"]}])
def test_malformed_conditions_fail_when_checked(conditions):
    """They are neither met nor a crash."""
    with pytest.raises(EvaluationError, match="invalid condition"):
        check(conditions)


def test_on_delete_the_old_object_is_meant():
    """As in every template."""
    conditions = compile_conditions([{"key": "{{ request.object.k }}", "operator": "Equals", "value": 2}])
    assert not conditions.check(SCOPE, Runtime()).met
    assert conditions.check(SCOPE, Runtime(), delete_request=True).met


def test_wildcards_against_long_lists_are_charged():
    """Two long lists out of a request cannot hold the engine up."""
    conditions = compile_conditions([{"key": "{{ k }}", "operator": "AnyIn", "value": "{{ v }}"}])
    with pytest.raises(BudgetExceededError):
        conditions.check({"k": ["a"] * 20_000, "v": ["*b"] * 20_000}, Runtime())
    long = [str(number) for number in range(20_000)]
    assert conditions.check({"k": long, "v": long}, Runtime()).met


def test_templates_are_offered_for_static_checks():
    """Keys and values of every condition."""
    conditions = compile_conditions(
        {"any": [{"key": "{{ a }}", "operator": "In", "value": ["{{ b }}"]}], "all": [TRUE]}
    )
    assert [variable.text for template in conditions.templates for variable in template.variables] == ["a", "b"]
    assert compile_conditions([]).is_empty
