"""Our CEL against Google's own implementation (cel-cpp behind cel-expr-python), on random expressions.

Both compile (or refuse) and evaluate the same expressions. `DIFFERENCES` lists where they may differ, with reasons.
"""

from __future__ import annotations

import math
import re
from random import Random
from typing import Any

import pytest

from pyverno.errors import EvaluationError
from pyverno.lang.cel import CompileError, Environment
from pyverno.lang.cel.libraries.optionals import OPTIONALS
from pyverno.lang.cel.libraries.standard import STANDARD_LIBRARY
from pyverno.lang.cel.scalars import Uint
from pyverno.lang.cel.types import BOOL, DOUBLE, DYN, INT, STRING, list_of, map_of
from pyverno.lang.runtime import Runtime
from tests.property.cel_expressions import Expressions, bindings
from tests.property.profile import examples

oracle = pytest.importorskip("cel_expr_python.cel")

EXAMPLES = examples(1500)
OURS = Environment(
    (STANDARD_LIBRARY, OPTIONALS),
    {"i": INT, "d": DOUBLE, "s": STRING, "b": BOOL, "l": list_of(DYN), "m": map_of(STRING, DYN), "x": DYN},
    strict_presence=True,
)
THEIRS = oracle.NewEnv(
    variables={
        "i": oracle.Type.INT,
        "d": oracle.Type.DOUBLE,
        "s": oracle.Type.STRING,
        "b": oracle.Type.BOOL,
        "l": oracle.Type.List(oracle.Type.DYN),
        "m": oracle.Type.Map(oracle.Type.STRING, oracle.Type.DYN),
        "x": oracle.Type.DYN,
    }
)
ERROR = "error"
NO_OPINION = re.compile("expression of type '(dyn|bool)' cannot be the range of a comprehension")
"""cel-cpp refuses loops over some dyn values (indexed, or elements of an empty literal) with this odd message."""

DIFFERENCES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("`x in []` is false without looking at x (cel-go's optimiser); cel-cpp looks", re.compile(r" in \[\]")),
    ("a key of a type that no map has is not found; cel-cpp fails", re.compile(r" in .*\{|\b[xlmv]\d? in ")),
    (
        "the elements of an empty literal have no type yet; which overload first takes one differs",
        re.compile(r"(\[\]|\{\}).*\.(all|exists|exists_one|map|filter)\("),
    ),
)

ONLY_WE_FAIL: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("cel-cpp converts booleans to numbers; the language has no such overload", re.compile(r"\bint\(.*\bx\b")),
)
"""Differences that excuse an error of ours, and nothing else."""

ONLY_THEY_FAIL: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("a key of a type that no map has is not found; cel-cpp fails", re.compile(r"\b[xlmv]\d?(\.\w+)+ in ")),
    (
        "an operand of || or && that is no boolean does not hide a decisive one beside it; cel-cpp fails",
        re.compile(r"\? x\b[^?]*: .*\) (\|\||&&) "),
    ),
)
"""Differences that excuse an error of theirs, and nothing else."""


def is_explained(text: str, mine: Any, reference: Any) -> bool:
    """Return whether a listed difference explains why the two disagree."""
    listed = [*DIFFERENCES]
    if mine == ERROR:
        listed += ONLY_WE_FAIL
    if reference == ERROR:
        listed += ONLY_THEY_FAIL
    return any(pattern.search(text) for _, pattern in listed)


def ours(text: str, values: dict[str, Any]) -> Any:
    """Return our value, or ERROR."""
    try:
        return plain(OURS.compile(text).evaluate(values, Runtime()))
    except (CompileError, EvaluationError):
        return ERROR


def theirs(text: str, values: dict[str, Any]) -> Any:
    """Return the oracle's value, ERROR or NO_OPINION."""
    try:
        result = THEIRS.compile(text).eval(data=values)
    except Exception as error:
        return NO_OPINION if NO_OPINION.search(str(error)) else ERROR
    return ERROR if result.type() == oracle.Type.ERROR else plain(result.plain_value())


def plain(value: Any) -> Any:
    """Return a value in a form in which both sides can be compared."""
    if isinstance(value, Uint):
        return int(value)
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def same(one: Any, two: Any) -> bool:
    """Return whether two plain values are equal and of one type."""
    if type(one) is not type(two):
        return False
    if isinstance(one, list):
        return len(one) == len(two) and all(map(same, one, two))
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(same(item, two[key]) for key, item in one.items())
    return bool(one == two)


def test_random_expressions_have_the_oracles_values() -> None:
    """Every random expression compiles and evaluates alike, but for the listed differences."""
    found = []
    for seed in range(EXAMPLES):
        random = Random(seed)  # noqa: S311 - reproducible, not secret
        text, values = Expressions(random).make(), bindings(random)
        mine, reference = ours(text, values), theirs(text, values)
        if reference is NO_OPINION or same(mine, reference):
            continue
        if not is_explained(text, mine, reference):
            found.append(f"{text} with {values}: {mine!r}, oracle {reference!r}")
    assert found == []
