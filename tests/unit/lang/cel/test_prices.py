"""Calls of CEL whose work does not show in the size of their operands."""

from __future__ import annotations

import pytest

from pyverno.compiler.cel.environment import environment_of_kind
from pyverno.lang.cel import types
from pyverno.lang.runtime import Budget, Runtime

ENVIRONMENT = environment_of_kind("ValidatingPolicy").with_variables({"object": types.DYN})
SEMVER = "semver(object.a)"


def steps(text: str, **bindings: object) -> int:
    """Return what an expression is charged."""
    budget = Budget()
    ENVIRONMENT.compile(text).evaluate({"object": bindings}, Runtime(budget=budget))
    return Budget().steps - budget.steps


@pytest.mark.parametrize(
    "comparison", ["isLessThan(semver(object.a))", "isGreaterThan(semver(object.a))", "compareTo(semver(object.a)) > 0"]
)
def test_what_a_call_takes_is_charged(comparison: str) -> None:
    """Versions with thousands of identifiers are compared one identifier after the other."""
    version = "1.2.3-" + "1." * 5000 + "1"
    assert steps(f"{SEMVER}.{comparison}", a=version) - 2 * steps(f"{SEMVER}.major() == 1", a=version) >= 10_000


def test_each_value_of_a_marshalled_list_is_charged() -> None:
    """A number takes some microseconds to be written as Go writes it."""
    assert steps("json.marshal(object.l).size() > 0", l=[1.5] * 1000) >= 4000
