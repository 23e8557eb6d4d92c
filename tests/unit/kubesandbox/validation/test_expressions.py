"""Tests of `validation.expressions`."""

from __future__ import annotations

from kubesandbox.validation.expressions import Expressions
from kubesandbox.validation.results import Result
from pyverno.kube.status import FieldError


def test_a_variable_is_known_to_what_comes_after() -> None:
    """A variable cannot refer to a later one."""
    expressions = Expressions((1, 35))
    errors: list[FieldError] = []
    expressions.check("variables.x > 1", "e", errors, expected=Result.CONDITION)
    assert 1 == len(errors)
    expressions.declare("x", "1 + 1")
    expressions.check("variables.x > 1", "e", errors, expected=Result.CONDITION)
    assert 1 == len(errors)


def test_the_result_must_have_the_type_that_is_wanted() -> None:
    """The message names both types."""
    errors: list[FieldError] = []
    expressions = Expressions((1, 35))
    expressions.check("'x'", "e", errors, expected=Result.CONDITION)
    expressions.check("object.x", "e", errors, expected=Result.MESSAGE)
    expressions.check("object.x", "e", errors, expected=Result.ANNOTATION)
    expressions.check("string(object.x)", "e", errors, expected=Result.ANNOTATION)
    assert [
        "e: Invalid value: \"'x'\": must evaluate to bool but got string",
        'e: Invalid value: "object.x": must evaluate to string but got dyn',
        'e: Invalid value: "object.x": must evaluate to one of [string null_type] but got dyn',
    ] == list(map(str, errors))


def test_parameters_are_known_where_the_policy_has_some() -> None:
    """`params` is undeclared otherwise."""
    errors: list[FieldError] = []
    Expressions((1, 35), has_params=True).check("params.x == 1", "e", errors)
    assert [] == errors
    Expressions((1, 35)).check("params.x == 1", "e", errors)
    assert 1 == len(errors)
