"""A policy of twice the size costs about twice as much to compile, to review, to explain and to try in the playground.

Functions of Python that are called are counted; objects grow as well.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import pairwise

import pytest

from pyverno.cli.fix.suite import fix_suite
from pyverno.compiler import compile_documents
from pyverno.engine.engine import Engine
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Request
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.documents import load_documents
from pyverno.lang.runtime import Budget
from pyverno.ui.playground.review import review_texts
from tests.property.growth import calls_of
from tests.property.growth_actions import WHOLES, compiles
from tests.property.growth_faults import FAULTY
from tests.support.objects import forget_caches

SIZES = (20, 40, 80)
RATIO = 2.4
UNIT = 1000
NAME = "{{ request.object.metadata.name }}"


def _policy(number: int, *rules: JSONObject) -> JSONObject:
    metadata = {"name": f"p{number}", "annotations": {"pod-policies.kyverno.io/autogen-controllers": "none"}}
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": metadata,
        "spec": {"rules": list(rules)},
    }


def _rule(number: int = 0, *, match: JSON = None, **fields: JSON) -> JSONObject:
    validate = {"message": "m", "failureAction": "Audit", **fields.pop("validate", {})}
    block = match or [{"resources": {"kinds": ["Pod"]}}]
    return {"name": f"r{number}", "match": {"any": block}, **fields, "validate": validate}


def _labelled(number: int, key: str = "a") -> JSONObject:
    return _rule(number, validate={"pattern": {"metadata": {"labels": {key: "?*"}}}})


def _deny(conditions: JSONObject) -> JSONObject:
    return {"deny": {"conditions": conditions}}


def _conditions(size: int, operator: str) -> list[JSON]:
    return [{"key": NAME, "operator": operator, "value": f"v{number}"} for number in range(size)]


def _context(size: int) -> JSONObject:
    """Return a rule with many entries, each of which is read."""
    entries = [{"name": f"v{number}", "variable": {"value": f"x{number}"}} for number in range(size)]
    read = [{"key": f"{{{{ v{number} }}}}", "operator": "Equals", "value": "x"} for number in range(size)]
    return _rule(context=entries, validate=_deny({"any": read}))


def _elements(size: int) -> JSONObject:
    loop = {"list": "request.object.spec.containers", **_deny({"any": [_conditions(1, "Equals")[0]]})}
    return _rule(validate={"foreach": [loop] * size})


def _blocks(size: int) -> list[JSON]:
    named: list[JSON] = [{"resources": {"kinds": ["Pod"], "names": [f"z{number}*"]}} for number in range(size)]
    return [*named, {"resources": {"kinds": ["Pod"]}}]


def _in_cel(size: int) -> JSONObject:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "ValidatingPolicy",
        "metadata": {"name": "v"},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "variables": [{"name": f"a{number}", "expression": "object.metadata.name"} for number in range(size)],
            "validations": [{"expression": f"variables.a{number} != 'x'"} for number in range(size)],
        },
    }


POLICIES: Mapping[str, Callable[[int], list[JSONObject]]] = {
    "policies": lambda size: [_policy(number, _labelled(0, f"k{number}")) for number in range(size)],
    "rules": lambda size: [_policy(0, *(_labelled(number) for number in range(size)))],
    "keys of a pattern": lambda size: [
        _policy(0, _rule(validate={"pattern": {"metadata": {"labels": {f"k{each}": "?*" for each in range(size)}}}}))
    ],
    "alternatives": lambda size: [
        _policy(
            0,
            _rule(validate={"anyPattern": [{"metadata": {"labels": {f"k{each}": "?*"}}} for each in range(size)]}),
        )
    ],
    "conditions": lambda size: [_policy(0, _rule(validate=_deny({"all": _conditions(size, "NotEquals")})))],
    "preconditions": lambda size: [
        _policy(0, {**_labelled(0), "preconditions": {"all": _conditions(size, "NotEquals")}})
    ],
    "context": lambda size: [_policy(0, _context(size))],
    "loops": lambda size: [_policy(0, _elements(size))],
    "blocks": lambda size: [_policy(0, {**_labelled(0), "match": {"any": _blocks(size)}})],
    "expressions": lambda size: [_in_cel(size)],
}

OBJECTS: Mapping[str, Callable[[int], list[JSONObject]]] = {
    "objects": lambda size: [_pod(name=f"o{number}") for number in range(size)],
    "containers": lambda size: [_pod(containers=size)],
    "labels": lambda size: [_pod(labels={f"l{number}": "x" for number in range(size)})],
}


def _pod(containers: int = 1, name: str = "a", **metadata: JSON) -> JSONObject:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", **metadata},
        "spec": {"containers": [{"name": f"c{each}", "image": "nginx:latest"} for each in range(containers)]},
    }


def _text(documents: list[JSONObject]) -> str:
    return "---\n".join(json.dumps(each) + "\n" for each in documents)


def _engine(policies: list[JSONObject]) -> Engine:
    compilation = compile_documents(load_documents(_text(policies)))
    assert () == compilation.errors
    return Engine(PolicySet(compilation.policies))


def _review(policies: list[JSONObject], objects: list[JSONObject]) -> Callable[[], object]:
    engine = _engine(policies)
    return lambda: [engine.review(Request.from_manifest(each)).decision for each in objects]


def _explain(policies: list[JSONObject], objects: list[JSONObject]) -> Callable[[], object]:
    engine = _engine(policies)
    return lambda: [engine.explain(Request.from_manifest(each)).rules for each in objects]


def _play(policies: list[JSONObject], objects: list[JSONObject]) -> Callable[[], object]:
    request = {"policies": _text(policies), "resources": _text(objects), "explain": True, "kubernetesVersion": "1.35"}
    return lambda: review_texts(request)


@pytest.fixture(scope="module", autouse=True)
def _without_caches() -> None:
    """Forget what other tests of the process have compiled: the smaller sizes would cost nothing."""
    forget_caches()


DOORS = {"review": _review, "explain": _explain, "playground": _play}
PATTERN: JSONObject = {"spec": {"containers": [{"image": "!*:latest"}]}}


def _assert_growth(work: Callable[[int], Callable[[], object]], unit: int = UNIT) -> None:
    """Assert that what twice as much adds costs at most twice as much, with a margin."""
    costs: list[int] = []
    work(4)()  # what is imported on first use
    for size in SIZES:
        costs.append(calls_of(work(size)))
    steps = [after - before for before, after in pairwise(costs)]
    assert all(after <= RATIO * max(before, 0) + unit for before, after in pairwise(steps)), costs


@pytest.mark.parametrize("shape", POLICIES)
@pytest.mark.parametrize("door", DOORS)
def test_a_policy_of_twice_the_size_costs_twice_as_much(door: str, shape: str) -> None:
    """On one object, which most rules refuse: their fields are searched, too."""
    _assert_growth(lambda size: DOORS[door](POLICIES[shape](size), [_pod()]))


@pytest.mark.parametrize("shape", OBJECTS)
@pytest.mark.parametrize("door", DOORS)
def test_objects_of_twice_the_size_cost_twice_as_much(door: str, shape: str) -> None:
    """By one policy, which refuses them."""
    policy = _policy(0, _rule(validate={"pattern": PATTERN}))
    _assert_growth(lambda size: DOORS[door]([policy], OBJECTS[shape](size)))


@pytest.mark.parametrize("shape", [*WHOLES, *FAULTY])
def test_a_policy_of_twice_the_size_costs_twice_as_much_to_compile(shape: str) -> None:
    """Also one with a fault in each of its parts: they are reported with their places."""
    compiled = compiles({**WHOLES, **FAULTY}[shape])

    def work(size: int) -> Callable[[], object]:
        call = compiled(100 * size)
        return lambda: call(Budget())

    # expressions that a smaller policy has are compiled
    _assert_growth(work, unit=3 * UNIT)


def test_rows_that_are_joined_are_read_once() -> None:
    """`pyverno fix --compress` joins rows that differ in their resources alone; those may be maps by mistake."""

    def suite(size: int) -> JSONObject:
        row = {"policy": "p", "rule": "r", "kind": "Pod", "result": "pass"}
        rows = [{**row, "resources": [f"o{number}", "o0"]} for number in range(size)]
        return {"kind": "Test", "results": rows}

    fixed, _ = fix_suite(suite(1000), compress=True)
    assert [[f"o{number}" for number in range(1000)]] == [row["resources"] for row in fixed["results"]]
    odd, _ = fix_suite({"results": [{"resources": [{"a": 1}]}, {"resources": [{"a": 1}, "b"]}]}, compress=True)
    assert [{"resources": [{"a": 1}, "b"]}] == odd["results"]
    _assert_growth(lambda size: lambda: fix_suite(suite(size), compress=True))
