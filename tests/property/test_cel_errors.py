"""Law: an error of a CEL variable is absorbed only where its value could not matter.

Operators, macros and functions come from the tables of the parser and from the declarations of the libraries. The
error is that of a lazily computed variable of a policy; an exception of a bug is one too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

import pytest

from pyverno.compiler.cel.environment import environment_of_kind
from pyverno.engine.broker import Broker
from pyverno.engine.cel.session import CelSession, CelVariable
from pyverno.engine.request import Request
from pyverno.engine.rule import Run
from pyverno.engine.scope import Scope, VariableFaultError
from pyverno.errors import BudgetExceededError, EvaluationError, HostError, HostUnavailableError, PyvernoError
from pyverno.lang.cel import Environment, Library, Program, types
from pyverno.lang.cel.declarations import Declaration
from pyverno.lang.cel.libraries.optionals import OPTIONALS
from pyverno.lang.cel.libraries.standard import STANDARD_LIBRARY
from pyverno.lang.cel.syntax import macros
from pyverno.lang.cel.values import Value
from pyverno.lang.runtime import Budget, Runtime
from tests.property.cel_functions import VALUES, FixedHost, overloads
from tests.property.profile import examples
from tests.property.test_cel_totality import written
from tests.security.asking import CONFIG_MAP, Spy

ERRORS: dict[str, Exception] = {
    "evaluation": EvaluationError("planted"),
    "host": HostError("planted"),
    "away": HostUnavailableError("planted"),
    "budget": BudgetExceededError("planted", resource="steps"),
    "key": KeyError("planted"),
    "type": TypeError("planted"),
    "recursion": RecursionError("planted"),
    "memory": MemoryError("planted"),
}
READ = "variables.v"
OTHERS: tuple[Value, ...] = VALUES[:: max(len(VALUES) // examples(8), 1)]
"""Values that the variable could have had."""

STRIDE = 1 if os.environ.get("PYVERNO_NIGHTLY") else 5
"""Every how many expressions are asked, for each error others."""

_OPERATORS = (
    *("{} && {}", "{} || {}", "{} ? {} : {}", "{} == {}", "{} != {}", "{} in {}", "{} < {}", "{} + {}", "{}[{}]"),
    *("!{}", "-{}", "{}.f", "{}.?f", "{}[?{}]", "[{}]", "[{}, {}]", "{{'k': {}}}", "{{'k': {}}}.k", "[?{}]"),
    *("{{?'k': {}}}", "has({}.f)", "dyn({})", "type({})", "{}.?f.orValue({})", "optional.of({}).orValue({})"),
    *("optional.ofNonZeroValue({}).hasValue()", "{}.?f.or(optional.of({})).orValue({})", "variables.?v.hasValue()"),
    *("variables.?v.orValue(true)", "{} && {} && {}", "{} || {} || {}", "[[{}]].exists(x, x[0] == {})"),
)
_PLAIN = ("true", "false", "1", "'a'", "[1]")


def _macro_calls() -> Iterator[str]:
    """Yield every macro with the error in every part, the other parts by something plain."""
    for name, table in vars(macros).items():
        if not name.endswith("_MACROS"):
            continue
        for macro, arity, is_method in table:
            if not is_method:
                yield f"{macro}({READ}.f)"
                continue
            if macro == "bind":
                yield from (f"cel.bind(x, {READ}, {body})" for body in ("x", "true", "x || true", "[x]"))
                yield f"cel.bind(x, 1, {READ})"
                continue
            if macro == "orValue":
                yield from (
                    f"{READ}.orValue(true)",
                    f"optional.none().orValue({READ})",
                    f"optional.of(1).orValue({READ})",
                )
                continue
            names = ["x", "y"][: arity - (2 if macro in ("transformList", "transformMap") and arity == 4 else 1)]
            if macro in ("map", "optMap", "optFlatMap", "sortBy"):
                names = ["x"]
            rest = arity - len(names)
            for target in (READ, "[1, 2]", "{'k': 1}", "optional.of(1)"):
                for body in (READ, "true", f"x == 1 || {READ}", f"x == 1 ? true : {READ}", f"dyn({READ}) == x", "[x]"):
                    yield f"{target}.{macro}({', '.join((*names, *['true'] * (rest - 1), body))})"
                    if rest == 2:
                        yield f"{target}.{macro}({', '.join((*names, body, 'true'))})"


def _forms() -> Iterator[str]:
    for form in _OPERATORS:
        places = form.replace("{{", "").count("{}")
        for position in range(max(places, 1)):
            for other in _PLAIN:
                yield form.format(*(READ if at == position else other for at in range(places)))
    yield from _macro_calls()


def _texts() -> list[str]:
    """Return every form, alone and below each operator that may absorb an error."""
    below = (
        "{}",
        "dyn({}) == true || true",
        "dyn({}) == true && false",
        "[{}].exists(x, dyn(x) == 1)",
        "[{}].size() == 1",
    )
    return list(dict.fromkeys(outer.format(form) for form in _forms() for outer in below))


class _Failing:
    """The program of a variable, which raises."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def evaluate(self, *_: object, **__: object) -> Value:
        """Raise the error."""
        raise self._error


class _Giving:
    """The program of a variable, which has a value."""

    def __init__(self, value: Value) -> None:
        self._value = value

    def evaluate(self, *_: object, **__: object) -> Value:
        """Return the value."""
        return self._value


def _outcome(program: Program, variable: Any) -> tuple[str, Value]:
    """Return `value` and the value of an expression, or `error`; a variable is read twice, then from memory."""
    runtime = Runtime(FixedHost(), Budget(steps=100_000))
    request = Request.from_manifest(CONFIG_MAP)
    run = Run(None, request, Scope(), Broker(Spy(), runtime.budget, ""), runtime, {})  # type: ignore[arg-type]
    session = CelSession(run, {}, (CelVariable("v", variable),))
    for _ in range(2):
        try:
            found = "value", session.evaluate(program)
        except (PyvernoError, VariableFaultError):
            found = "error", None
    return found


def _absorbed(program: Program, error: Exception) -> str:
    """Return how an expression takes an error for a value that matters, "" when it does not."""
    kind, value = _outcome(program, _Failing(error))
    if kind == "error":
        return ""
    for other in OTHERS:
        otherwise = _outcome(program, _Giving(other))
        if otherwise[0] == "value" and not _is_same(value, otherwise[1]):
            return f"{program.text}: {value!r} with an error, {otherwise[1]!r} with {other!r}"
    return ""


def _is_same(one: Value, other: Value) -> bool:
    return type(one) is type(other) and (one == other or one is other)


def _programs(texts: list[str], environment: Environment) -> Iterator[Program]:
    for text in texts:
        try:
            yield environment.compile(text)
        except PyvernoError:
            continue


@pytest.mark.parametrize("kind", ERRORS)
def test_no_operator_and_no_macro_absorbs_an_error_that_matters(kind: str) -> None:
    """In the environment of policies; an error that `||` and the like do absorb changes no value."""
    environment = environment_of_kind("ValidatingPolicy").with_variables({"variables": types.DYN})
    programs = list(_programs(_texts()[list(ERRORS).index(kind) % STRIDE :: STRIDE], environment))
    assert len(programs) * STRIDE > 2000
    assert [] == [problem for program in programs if (problem := _absorbed(program, ERRORS[kind]))]


def test_no_function_absorbs_an_error_that_matters() -> None:
    """Every overload of every library, with the error in each of its operands."""
    problems, seen = [], 0
    for name, overload in overloads():
        text = written(name, overload)
        if text is None:
            continue
        declared = Library("own", (Declaration(name, (overload,), ""),))
        names = ("a", "b", "c", "d", "e")[: len(overload.signature.params)]
        for position in (
            range(sum(map(ord, text)) % 2, len(names), 2) if STRIDE > 1 and len(names) > 1 else range(len(names))
        ):
            given = {**dict.fromkeys(names, types.DYN), "variables": types.DYN}
            environment = Environment((STANDARD_LIBRARY, OPTIONALS, declared), given)
            placed = _replaced(text, names[position])
            for program in _programs([placed], environment):
                seen += 1
                kind, value = _outcome(program, _Failing(EvaluationError("planted")))
                if kind != "error":
                    problems.append((placed, value))
    assert [] == problems
    assert seen > 300


def _replaced(text: str, name: str) -> str:
    """Return a call with one of its operands read from the variable."""
    return re.sub(rf"(?<![\w.]){name}(?!\w|\()", READ, text, count=1)


def test_the_law_sees_an_absorbed_error() -> None:
    """The harmless twins: what may absorb does, and a form that turns errors into values is found."""
    environment = environment_of_kind("ValidatingPolicy").with_variables({"variables": types.DYN})
    assert ("value", True) == _outcome(environment.compile(f"{READ} || true"), _Failing(EvaluationError("planted")))
    assert "" == _absorbed(environment.compile(f"{READ} || true"), EvaluationError("planted"))

    class _Lenient:
        text = "lenient"

        def evaluate(self, bindings: Any, *_: object, **__: object) -> Value:
            try:
                return bindings["variables"]["v"]
            except PyvernoError:
                return 7

    lenient: Any = _Lenient()
    assert _absorbed(lenient, EvaluationError("planted"))
