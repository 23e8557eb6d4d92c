"""Laws of every CEL function: a value or a typed error for all operands, by declaration and not by a list of cases."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import pytest

from pyverno.compiler.cel.environment import environment_of_kind
from pyverno.errors import BudgetExceededError, EvaluationError, PyvernoError
from pyverno.lang.cel import Environment, Library, types
from pyverno.lang.cel.declarations import Declaration, Overload, function
from pyverno.lang.cel.libraries.optionals import OPTIONALS
from pyverno.lang.cel.libraries.standard import STANDARD_LIBRARY
from pyverno.lang.cel.runtime.calls import call_run
from pyverno.lang.cel.runtime.evaluation import Evaluation
from pyverno.lang.cel.runtime.steps import Step
from pyverno.lang.cel.values import Value
from pyverno.lang.cel.work import instant
from pyverno.lang.runtime import Budget, Runtime
from tests.property.cel_functions import VALUES, FixedHost, fitting, overloads
from tests.property.profile import examples

SAMPLED = examples(30)
"""Combinations of values that each function is asked at random."""

BREADTH = min(examples(8), len(VALUES))
"""Values that are combined with each other."""


def given(value: Value) -> Step:
    """Return the step of a value that came from data."""
    return Step(lambda _: value)


def called(name: str, overload: Overload, values: tuple[Value, ...]) -> tuple[str, Value]:
    """Return `value` and the value, or `error` and the typed error, of a call."""
    run = call_run(name, (overload,), tuple(map(given, values)))
    evaluation = Evaluation(Runtime(FixedHost(), Budget(steps=100_000)))
    try:
        return "value", run(evaluation.frame)
    except (EvaluationError, BudgetExceededError) as error:
        return "error", error


def combinations(overload: Overload, random: Random) -> list[tuple[Value, ...]]:
    """Return all combinations of some values for up to two parameters, and each value in each position."""
    params = overload.signature.params
    some = list(product(VALUES[:: len(VALUES) // BREADTH], repeat=len(params))) if len(params) <= 2 else []
    own = [fitting(declared) for declared in params]
    placed = [(*own[:place], value, *own[place + 1 :]) for place in range(len(params)) for value in VALUES]
    return some + placed + [tuple(random.choice(VALUES) for _ in params) for _ in range(SAMPLED)]


def test_every_overload_ends_in_a_value_or_a_typed_error() -> None:
    """Whatever the operands are: null, unknown kinds, numbers out of range, texts that are no Unicode, deep lists."""
    random = Random(11)  # noqa: S311 - reproducible, not secret
    seen = 0
    for name, overload in overloads():
        for values in combinations(overload, random):
            kind, _ = called(name, overload, values)
            assert kind in ("value", "error"), (name, values)
            seen += 1
    assert seen > 30_000


def test_no_error_is_left_to_the_backstop_where_types_fit() -> None:
    """An implementation whose declared types are met raises errors of its own, and no `failed with TypeError`."""
    random = Random(12)  # noqa: S311 - reproducible, not secret
    left: set[tuple[str, str]] = set()
    for name, overload in overloads():
        for values in combinations(overload, random):
            if any(type(value) is object for value in values):
                continue
            kind, outcome = called(name, overload, values)
            if kind == "error" and "failed with" in outcome.message:
                left.add((f"{name}{overload.signature}", outcome.message))
    assert set() == {each for each in left if not each[1].endswith("UnicodeEncodeError")}


@pytest.mark.parametrize("error", [TypeError, ValueError, OverflowError, AttributeError, KeyError, IndexError, OSError])
def test_a_function_that_fails_in_its_own_way_names_itself_and_no_value(error: type[Exception]) -> None:
    """Exceptions of an implementation become CEL errors, which `||` absorbs like others."""

    @function("fails", "(dyn) -> bool", work=instant)
    def fails(value: Value) -> bool:
        """Fail."""
        raise error(value)

    environment = Environment((STANDARD_LIBRARY, Library("own", (fails,))), {"x": types.DYN})
    with pytest.raises(EvaluationError) as caught:
        environment.compile("fails(x)").evaluate({"x": "canary"})
    assert f"fails: failed with {error.__name__}" == caught.value.message
    assert environment.compile("fails(x) || true").evaluate({"x": "canary"}) is True


def test_a_null_where_a_map_was_promised_is_an_error_of_the_expression() -> None:
    """`resource.Get` declares a map and answers null for what does not exist; its size is no such overload."""
    environment = environment_of_kind("ValidatingPolicy")

    class Nowhere:
        def get_resource(self, *_: Any) -> None:
            return None

    host: Any = Nowhere()
    program = environment.compile("size(resource.Get('v1', 'pods', 'a', 'b')) == 0 || true")
    assert program.evaluate({}, host=host) is True
    with pytest.raises(EvaluationError) as caught:
        environment.compile("size(resource.Get('v1', 'pods', 'a', 'b'))").evaluate({}, host=host)
    assert caught.value.message == "no such overload: size"


_FORMS = {
    "_==_": "({0} == {1})", "_!=_": "({0} != {1})", "_+_": "({0} + {1})", "_-_": "({0} - {1})", "_*_": "({0} * {1})",
    "_/_": "({0} / {1})", "_%_": "({0} % {1})", "-_": "(-{0})", "!_": "(!{0})", "_<_": "({0} < {1})",
    "_<=_": "({0} <= {1})", "_>_": "({0} > {1})", "_>=_": "({0} >= {1})", "_[_]": "{0}[{1}]", "_[?_]": "{0}[?{1}]",
    "@in": "({0} in {1})",
}  # fmt: skip
_NAMES = ("a", "b", "c", "d", "e")


def written(name: str, overload: Overload) -> str | None:
    """Return a call of an overload with variables as operands; None for what has no text of its own."""
    operands = list(_NAMES[: len(overload.signature.params)])
    if name in _FORMS:
        needed = 2 if "{1}" in _FORMS[name] else 1
        return _FORMS[name].format(*operands) if len(operands) == needed else None
    if not name.replace(".", "").isalnum():
        return None
    target = f"{operands.pop(0)}." if overload.signature.member else ""
    return f"{target}{name}({', '.join(operands)})"


def test_both_tiers_agree_on_every_function() -> None:
    """Through checker, planner and generated code: what the fast tier passes is true, and neither crashes."""
    random = Random(13)  # noqa: S311 - reproducible, not secret
    checked = 0
    for name, overload in overloads():
        text = written(name, overload)
        if text is None:
            continue
        declared = Library("own", (Declaration(name, (overload,), ""),))
        environment = Environment((STANDARD_LIBRARY, OPTIONALS, declared), dict.fromkeys(_NAMES, types.DYN))
        for tested in (text, f"dyn({text}) == 1", f"[{text}].exists(x, dyn(x) == 1)", f"type({text}) != int || true"):
            program = environment.compile(tested)
            passes = program.pass_check()
            for _ in range(12):
                values = [random.choice(VALUES) for _ in overload.signature.params]
                bindings = dict(zip(_NAMES, values, strict=False))
                passed = passes(bindings) if passes is not None else False
                try:
                    outcome = program.evaluate(bindings, Runtime(FixedHost(), Budget(steps=100_000)))
                except PyvernoError as error:
                    outcome = error
                assert not passed or outcome is True, (tested, values, outcome)
                checked += 1
    assert checked > 10_000
