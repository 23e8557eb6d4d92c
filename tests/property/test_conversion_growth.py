"""A policy of twice the size converts to about twice the text, with about twice the work.

An operand that a translation writes twice doubles the text at each level of nesting: a chain of forty alternatives
would fill the memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from pyverno.compiler.compile import compile_documents
from pyverno.compiler.migration.policy import convert_policy
from pyverno.compiler.migration.printer import print_policy
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import load_documents
from pyverno.policy.clusterpolicy import ClusterPolicy
from tests.property.growth import calls_of
from tests.support.conversions import BOOK, convert, differences, policy, rule

SMALL = 5
RATIO = 2.4
CHARACTERS, CALLS = 150, 9000
"""By which policies of a shape may differ otherwise; a long expression gets a variable of its own."""

LONGEST = 1000
"""Characters for one item: more would be the beginning of an explosion."""

NIGHTLY = bool(os.environ.get("PYVERNO_NIGHTLY"))


def _denying(*keys: str, value: Any = "x", **more: Any) -> JSONObject:
    """Return a policy that denies where one of some queries gives a value."""
    conditions = [{"key": f"{{{{ {key} }}}}", "operator": "Equals", "value": value} for key in keys]
    made = rule("r", None, **more)
    made["validate"] |= {"deny": {"conditions": {"any": conditions}}, "allowExistingViolations": False}
    return policy(made)


def _label(number: int) -> str:
    return f"request.object.metadata.labels.k{number}"


def _nested(head: str, inner: str, tail: str, value: Any = "x") -> Callable[[int], JSONObject]:
    return lambda size: _denying(head * size + inner + tail * size, value=value)


def _joined(operator: str, item: Callable[[int], str], tail: str = "", value: Any = "x") -> Callable[[int], JSONObject]:
    return lambda size: _denying(operator.join(map(item, range(size))) + tail, value=value)


def _matching(part: str, item: Callable[[int], Any]) -> Callable[[int], JSONObject]:
    def make(size: int) -> JSONObject:
        made = rule("r", {"metadata": {"labels": {"a": "?*"}}})
        made["match"]["any"][0]["resources"][part] = [item(number) for number in range(size)]
        return policy(made)

    return make


def _rules(size: int) -> JSONObject:
    return policy(*(rule(f"r{each}", {"metadata": {"labels": {f"k{each}": "?*"}}}) for each in range(1 + size // 5)))


def _lists(size: int) -> JSONObject:
    queries = (f"request.object.spec.containers[{each}].args" for each in range(size))
    return _denying(f"length({' || '.join(queries)} || `[]`)", value=3)


def _in_brackets(size: int) -> JSONObject:
    return _denying("(" * size + _label(0) + "".join(f" || {_label(each)})" for each in range(size)))


def _of_alternatives(size: int) -> JSONObject:
    return _denying("".join(f"({_label(each)} || " for each in range(size)) + "''" + ")" * size)


def _variables(query: str) -> Callable[[int], JSONObject]:
    """Return the shape of variables each of which is a query of the one before, `{0}`."""

    def make(size: int) -> JSONObject:
        written = [f"{_label(0)} || ''", *(query.format(f"v{each}") for each in range(size - 1))]
        context = [{"name": f"v{each}", "variable": {"jmesPath": text}} for each, text in enumerate(written)]
        return _denying(f"v{size - 1}", context=context)

    return make


def _preconditions(size: int) -> JSONObject:
    tests = [{"key": f"{{{{ {_label(each)} || '' }}}}", "operator": "Equals", "value": "x"} for each in range(size)]
    return _denying(_label(0), preconditions={"all": tests})


def _keys(make: Callable[[int], JSONObject]) -> Callable[[int], JSONObject]:
    return lambda size: policy(rule("r", {"metadata": make(size)}))


SHAPES: Mapping[str, Callable[[int], JSONObject]] = {
    "rules": _rules,
    "conditions": lambda size: _denying(*(f"{_label(each)} || ''" for each in range(size))),
    "alternatives": _joined(" || ", _label, " || ''"),
    "alternatives without a default": _joined(" || ", _label),
    "alternatives of truths": _joined(" || ", lambda each: f"contains({_label(each)} || '', 'x')", value=True),
    "alternatives of lists": _lists,
    "alternatives in brackets": _in_brackets,
    "alternatives of alternatives": _of_alternatives,
    "all of": _joined(" && ", lambda each: f"{_label(each)} == 'x'", value=True),
    "all of texts": _joined(" && ", _label, " && `true`", value=True),
    "comparisons": _joined(" || ", lambda each: f"{_label(each)} == 'x'", value=True),
    "comparisons of truths": _nested("(", f"{_label(0)} == 'x'", " == `true`)", value=True),
    "negations": _nested("!(", f"{_label(0)} == 'x'", ")", value=True),
    "functions": _nested("to_upper(", f"{_label(0)} || ''", ")"),
    "defaults of functions": _nested("to_upper(", f"{_label(0)}", " || '')"),
    "joins": _nested("join('-', ['a', ", f"{_label(0)} || ''", "])"),
    "replaces": _nested("replace_all(", f"{_label(0)} || ''", ", 'a', 'b')"),
    "pipes": _nested("", f"{_label(0)} || ''", " | to_upper(@)"),
    "filters": lambda size: _denying("length(request.object.spec.containers" + "[?name == 'x']" * size + ")", value=3),
    "numbers": _nested("add(", "length(request.object.metadata.name)", ", `1`)", value=30),
    "variables": _variables("to_upper({0})"),
    "variables that are used twice": _variables("join('', [{0}, {0}])"),
    "preconditions": _preconditions,
    "keys of a pattern": _keys(lambda size: {"labels": {f"k{each}": "a | b*" for each in range(size)}}),
    "optional keys": _keys(lambda size: {"=(labels)": {f"=(k{each})": "a*" for each in range(size)}}),
    "conditional keys": _keys(lambda size: {"labels": {f"(k{each})": "a*" for each in range(size)} | {"z": "b"}}),
    "alternatives of a value": _keys(lambda size: {"labels": {"a": " | ".join(f"v{each}*" for each in range(size))}}),
    "names": _matching("names", lambda each: f"n{each}-*"),
    "namespaces": _matching("namespaces", lambda each: f"n{each}"),
}


def _cost(written: JSONObject) -> tuple[int, int]:
    """Return the characters of a conversion without indentation, and in the nightly run the calls that it takes."""
    decoded = compile_documents(load_documents(print_policy(written))).items[0].written
    assert isinstance(decoded, ClusterPolicy)
    calls = calls_of(lambda: convert_policy(decoded, BOOK)) if NIGHTLY else 0
    made = convert_policy(decoded, BOOK)
    return sum(len("".join(print_policy(each).split())) for each in made.documents), calls


@pytest.mark.parametrize("shape", SHAPES)
def test_a_conversion_grows_with_its_policy(shape: str) -> None:
    """What twice as much adds to a policy adds at most twice the text and the calls, with a margin."""
    make, costs = SHAPES[shape], [_cost(SHAPES[shape](1))]
    for size in (SMALL, 2 * SMALL, 4 * SMALL):
        costs.append(_cost(make(size)))
        assert 0 < costs[-1][0] <= LONGEST * size
    for (_, first, second, third), unit in zip(zip(*costs, strict=True), (CHARACTERS, CALLS), strict=True):
        assert third - second <= RATIO * (second - first) + unit


def test_a_long_chain_of_alternatives_decides_as_before() -> None:
    """It is joined from its end, short ones from their beginning: both give the first operand that is not empty."""
    written = SHAPES["alternatives"](5)
    assert [] == differences(written, convert(written).documents, count=20)
