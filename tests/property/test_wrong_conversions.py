"""Wrong conversions are found: hand-made ones in every run, changed right ones by the hundred in the nightly run."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from random import Random

import pytest

from pyverno.compiler import compile_documents
from pyverno.compiler.equivalence.compare import Comparison, Pair, compare
from pyverno.compiler.equivalence.vocabulary import vocabulary_of
from pyverno.compiler.mutants.policies import mutants_of
from pyverno.engine.request import Operation
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.documents import load_documents
from pyverno.kube.yaml.writer import dump_yaml
from tests.support.conversions import convert as convert_policy
from tests.support.migration import admission, compare_rule, convert_rule, legacy_policy
from tests.support.migrationcases import convert, engine_with, policy_of, rows_of

ROWS = [row for row in rows_of("conditions.yaml") if "passes" in row and row["kind"] != "Widget"]
OBJECTS = 2000
PARTS, SAMPLE = 3, 100
SECONDS = 5
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


@dataclass(frozen=True)
class Conversion:
    """A policy, and what it becomes."""

    name: str
    old: JSONObject
    new: tuple[JSONObject, ...]


def condition_conversions() -> Iterator[Conversion]:
    """Yield the rows of conditions, as rules that deny."""
    for row in ROWS:
        rule = rule_of(row["key"], row["operator"], row.get("value"))
        yield Conversion(
            f"{row['key']} {row['operator']}",
            legacy_policy(rule, row["kind"]),
            (convert_rule(rule, row["kind"]),),
        )


def whole_conversions() -> Iterator[Conversion]:
    """Yield the rows of whole rules: scopes, checks, mutations, generations."""
    for row in rows_of("rules.yaml"):
        old = {"apiVersion": "kyverno.io/v1", **{key: row[key] for key in ("kind", "metadata", "spec")}}
        if "converted" in row:
            yield Conversion(str(row["claim"]), old, convert_policy(old).documents)
    for name in ("mutations.yaml", "generations.yaml"):
        for row in rows_of(name):
            if "becomes" in row:
                yield Conversion(str(row["claim"]), policy_of(row), convert(policy_of(row))[0])


RIGHT = [*condition_conversions(), *whole_conversions()] if os.environ.get("PYVERNO_NIGHTLY") else []


@nightly
@pytest.mark.parametrize("right", RIGHT, ids=lambda right: right.name)
def test_a_right_conversion_is_never_refused(right: Conversion) -> None:
    """Two thousand objects each."""
    found = judged(right.old, right.new, OBJECTS, 1)
    assert found is not None
    assert None is found.counterexample


@nightly
@pytest.mark.parametrize("right", RIGHT, ids=lambda right: right.name)
def test_a_conversion_decides_alike_where_errors_are_ignored(right: Conversion) -> None:
    """With failurePolicy Ignore an error lets a request pass that a failure refuses; what differs then is refused."""
    old = {**right.old, "spec": {**right.old["spec"], "failurePolicy": "Ignore"}}
    converted = convert_policy(old)
    if any(rule.refused is not None and rule.refused.code == "ignored-errors" for rule in converted.rules):
        return
    found = judged(old, converted.documents, OBJECTS // 4, 3)
    assert found is not None
    assert None is found.counterexample


def changed_conversions() -> Iterator[tuple[JSONObject, tuple[JSONObject, ...]]]:
    """Yield right conversions with one change, in a fixed random order, with the policy that they are made of."""
    found = [
        (right.old, (*right.new[:index], each.document, *right.new[index + 1 :]))
        for right in RIGHT
        for index, document in enumerate(right.new)
        for each in mutants_of(document)
        # another text instead of an empty one, where nothing but a constant is compared, changes nothing
        if not each.title.startswith("`''`")
    ]
    Random(7).shuffle(found)  # noqa: S311 - the same order in every run
    yield from found


def judged(old: JSONObject, new: tuple[JSONObject, ...], count: int, seed: int) -> Comparison | None:
    """Compare a policy with what it became, None where that does not compile."""
    if compile_documents([each for document in new for each in load_documents(dump_yaml(document))]).errors:
        return None
    pair = Pair(engine_with([old]), engine_with(new), admission())
    operations = (Operation.CREATE, Operation.UPDATE, Operation.DELETE)
    if any(each["kind"] == "GeneratingPolicy" for each in new):
        operations = operations[:2]
    return compare(pair, vocabulary_of([old, *new]), count=count, seed=seed, operations=operations)


@nightly
@pytest.mark.parametrize("part", range(PARTS))
def test_hundreds_of_changed_conversions_are_found(part: int) -> None:
    """Of those that a search three times as long shows to be wrong, the usual one finds nearly all, each in 5 s."""
    missed: list[str] = []
    slowest, wrong = 0.0, 0
    for old, new in islice(changed_conversions(), part, None, PARTS):
        started = time.process_time()
        quick = judged(old, new, OBJECTS, 7)
        taken = time.process_time() - started
        if quick is None:
            continue
        if quick.counterexample is None:
            thorough = judged(old, new, 3 * OBJECTS, 11)
            if thorough is None or thorough.counterexample is None:
                continue  # as far as anything shows, it decides alike
            missed.append(dump_yaml(new[0]["spec"]))
        else:
            slowest = max(slowest, taken)
        wrong += 1
        if wrong == SAMPLE:
            break
    assert SAMPLE == wrong
    assert (SAMPLE - len(missed)) / SAMPLE >= FOUND, missed
    assert slowest <= SECONDS
