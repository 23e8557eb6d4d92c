"""Wrong conversions are found: hand-made ones in every run, changed right ones by the hundred in the nightly run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from pyverno.compiler import compile_documents
from pyverno.compiler.equivalence.compare import Comparison, Pair, compare
from pyverno.compiler.equivalence.material import material_of
from pyverno.compiler.mutants.policies import mutants_of
from pyverno.engine.engine import Engine
from pyverno.engine.policyset import PolicySet
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.documents import load_documents
from pyverno.kube.yaml.writer import dump_yaml
from tests.support.migration import admission, compare_rule, convert_rule, engine_of, legacy_policy

CASES = Path(__file__).parents[1] / "cases" / "migration" / "conditions.yaml"
ROWS: list[JSONObject] = [
    row
    for row in load_documents((Path(__file__).parents[1] / "cases" / "migration" / "conditions.yaml").read_text())[
        0
    ].value
    if "passes" in row and row["kind"] != "Widget"
]
OBJECTS = 2000
SAMPLE = 300
FOUND = 0.99
TEAM = "object.metadata.?labels.?team.orValue('')"
TTL = "object.metadata.?annotations.?ttl.orValue('0s')"
VERSION = "object.metadata.?labels.?v.orValue('0.0.0')"
IMAGES = "{{ request.object.spec.containers[].image }}"
nightly = pytest.mark.skipif(not os.environ.get("PYVERNO_NIGHTLY"), reason="takes minutes")

WRONG: list[tuple[str, str, str, JSON, str]] = [
    ("Pod", "{{ request.object.metadata.labels.team || 'none' }}", "Equals", "none", f"{TEAM} != 'none'"),
    ("Pod", "{{ request.object.metadata.labels.team || '' }}", "AllNotIn", ["alpha", "b*"], f"{TEAM} == 'alpha'"),
    ("Pod", "{{ request.object.metadata.labels.team || '' }}", "Equals", "a*", f"{TEAM} != 'a*'"),
    (
        "Pod",
        "{{ request.object.metadata.annotations.ttl || '0s' }}",
        "DurationGreaterThan",
        "1h",
        f"duration({TTL}) <= duration('1h')",
    ),
    (
        "Pod",
        "{{ request.object.metadata.annotations.size || '0' }}",
        "Equals",
        "1Gi",
        "object.metadata.?annotations.?size.orValue('') != '1Gi'",
    ),
    (
        "Pod",
        "{{ request.object.metadata.labels.v || '0.0.0' }}",
        "LessThan",
        "1.9.0",
        f"!semver({VERSION}).isLessThan(semver('1.9.0'))",
    ),
    ("Pod", "{{ request.object.metadata.labels.v || '0.0.0' }}", "LessThan", "1.9.0", f"{VERSION} >= '1.9.0'"),
    ("Pod", IMAGES, "AllIn", ["reg.io/*"], "!object.spec.containers.all(c, c.image.contains('reg.io/'))"),
    ("Pod", IMAGES, "AnyIn", ["reg.io/*"], "!object.spec.containers.exists(c, c.image.startsWith('reg.io/'))"),
    ("Pod", IMAGES, "AnyNotIn", ["reg.io/*"], "object.spec.containers.exists(c, c.image.startsWith('reg.io/'))"),
    (
        "Pod",
        "{{ length(request.object.spec.volumes) }}",
        "GreaterThan",
        1,
        "size(object.spec.?volumes.orValue([])) <= 1",
    ),
    ("Pod", "{{ length(request.object.spec.containers) }}", "GreaterThan", 2, "size(object.spec.containers) < 2"),
    ("Pod", "{{ request.object.spec.priority > `10` }}", "Equals", False, "object.spec.?priority.orValue(0) > 10"),
    (
        "Role",
        "{{ request.object.rules[].verbs[] || `[]` }}",
        "AnyIn",
        ["create"],
        "!object.?rules.orValue([]).exists(r, 'create' in r.verbs)",
    ),
    ("Role", "{{ length(request.object.rules || `[]`) }}", "GreaterThan", 1, "size(object.rules) <= 1"),
    ("Deployment", "{{ request.object.spec.replicas }}", "LessThan", 3, "object.spec.replicas > 3"),
    ("Service", "{{ request.object.spec.type }}", "Equals", "NodePort", "object.spec.type != 'LoadBalancer'"),
    (
        "Service",
        "{{ request.object.spec.ports[0].targetPort }}",
        "Equals",
        "80",
        "object.spec.ports[0].targetPort != 80",
    ),
    ("Service", "{{ request.object.spec.ports[].port }}", "AnyIn", [80], "object.spec.ports[0].port != 80"),
    ("Pod", "{{ request.operation }}", "Equals", "UPDATE", "request.operation == 'UPDATE'"),
    ("Pod", "{{ request.namespace }}", "AnyIn", ["kube-*"], "request.namespace != 'kube-*'"),
    ("ConfigMap", "{{ request.object.data.\"x.y\" || '' }}", "Equals", "y", "object.data['x.y'] != 'y'"),
]


def rule_of(key: str, operator: str, value: JSON) -> JSONObject:
    """Return a rule that denies by one condition."""
    return {"validate": {"deny": {"conditions": {"all": [{"key": key, "operator": operator, "value": value}]}}}}


@pytest.mark.parametrize(("kind", "key", "operator", "value", "wrong"), WRONG)
def test_a_wrong_conversion_is_found(kind: str, key: str, operator: str, value: JSON, wrong: str) -> None:
    """Each is a common mistake: a forgotten default, guard, wildcard, list or boundary."""
    rule = rule_of(key, operator, value)
    converted = convert_rule(rule, kind)
    converted["spec"]["validations"] = [{"expression": wrong, "message": "refused"}]
    found = compare_rule(rule, kind, converted, count=OBJECTS)
    assert found.counterexample is not None


@nightly
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['key']} {row['operator']}")
def test_a_right_conversion_is_never_refused(row: JSONObject) -> None:
    """Three seeds, two thousand objects each."""
    rule = rule_of(row["key"], row["operator"], row.get("value"))
    converted = convert_rule(rule, row["kind"])
    for seed in (1, 2, 3):
        assert None is compare_rule(rule, row["kind"], converted, count=OBJECTS, seed=seed).counterexample


def changed_conversions() -> Iterator[tuple[Engine, JSONObject, JSONObject]]:
    """Yield right conversions with one change, in a fixed random order, with the rule's engine and document."""
    found = []
    for row in ROWS:
        rule = rule_of(row["key"], row["operator"], row.get("value"))
        converted, old = convert_rule(rule, row["kind"]), legacy_policy(rule, row["kind"])
        engine = engine_of(old)
        found += [
            (engine, old, each.document)
            for each in mutants_of(converted)
            # another text instead of an empty one, where nothing but a constant is compared, changes nothing
            if "validations" in each.place and not each.title.startswith("`''`")
        ]
    Random(7).shuffle(found)  # noqa: S311 - the same order in every run
    yield from found


def judged(engine: Engine, old: JSONObject, changed: JSONObject, count: int, seed: int) -> Comparison | None:
    """Compare a rule with a changed conversion, None for one that does not compile."""
    compilation = compile_documents(load_documents(dump_yaml(changed)))
    if compilation.errors:
        return None
    pair = Pair(engine, Engine(PolicySet(compilation.policies)), admission())
    return compare(pair, material_of([old, changed]), count=count, seed=seed)


@nightly
def test_hundreds_of_changed_conversions_are_found() -> None:
    """Of those that a search three times as long shows to be wrong, the usual one finds nearly all."""
    missed = wrong = 0
    for engine, old, changed in changed_conversions():
        quick = judged(engine, old, changed, OBJECTS, 7)
        if quick is None:
            continue
        if quick.counterexample is None:
            thorough = judged(engine, old, changed, 3 * OBJECTS, 11)
            if thorough is None or thorough.counterexample is None:
                continue  # as far as anything shows, it decides alike
            missed += 1
        wrong += 1
        if wrong == SAMPLE:
            break
    assert SAMPLE == wrong
    assert (SAMPLE - missed) / SAMPLE >= FOUND
