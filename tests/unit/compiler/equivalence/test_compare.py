"""Two engines on the same requests."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pyverno.compiler import compile_documents
from pyverno.compiler.equivalence.compare import Comparison, Pair, compare
from pyverno.compiler.equivalence.vocabulary import vocabulary_of
from pyverno.engine.engine import Engine
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Operation
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import load_documents

POLICY = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: a}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [ConfigMap], operations: [CREATE, UPDATE, DELETE]}}]}
    %s
"""
REFUSE = 'validate: {message: refused, deny: {conditions: {any: [{key: "{{ %s }}", operator: Equals, value: x}]}}}'
LABEL = "mutate: {patchStrategicMerge: {metadata: {labels: {team: %s}}}}"
MAKE = "generate: {apiVersion: v1, kind: Secret, name: s, namespace: %s, data: {type: Opaque}}"
SEEDS: list[JSONObject] = [
    {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "n"},
        "data": {"k": name, "z": "1"},
    }
    for name in ("a", "x", "b", "x")
]


def run(
    first: str,
    second: str,
    *operations: Operation,
    admits: bool = True,
    count: int = 0,
    kind: str = "ConfigMap",
    seeds: Sequence[JSONObject] = SEEDS,
) -> Comparison:
    """Compare two rules, or policies, on four ConfigMaps, or on other objects."""
    policy = POLICY.replace("ConfigMap", kind)
    sides = [load_documents(text if "apiVersion: k" in text else policy % text) for text in (first, second)]
    engines = []
    for documents in sides:
        compilation = compile_documents(documents)
        assert () == compilation.errors
        engines.append(Engine(PolicySet(compilation.policies)))
    return compare(
        Pair(*engines, admit=(lambda body: body) if admits else (lambda _: None)),
        vocabulary_of(document.value for documents in sides for document in documents),
        seeds=seeds,
        count=count,
        operations=operations or (Operation.CREATE,),
    )


NAME, DATA = REFUSE % "request.object.metadata.name", REFUSE % "request.object.data.k || ''"


def test_a_different_decision_is_found_and_made_small() -> None:
    """Shrinking removes the irrelevant part and keeps the relevant one."""
    never = REFUSE % "request.object.metadata.uid || ''"
    found = run(DATA, never).counterexample
    assert found is not None
    assert ("decision", "deny", "allow") == (found.difference, found.first.word, found.second.word)
    assert {"k": "x"} == found.resource["data"]


def test_updates_are_judged_with_the_object_before() -> None:
    """Under one name; the old object is made small as well."""
    before = REFUSE % "request.oldObject.data.k || ''"
    found = run(before, REFUSE % "request.object.metadata.uid || ''", Operation.CREATE, Operation.UPDATE).counterexample
    assert found is not None
    assert Operation.UPDATE is found.operation
    assert found.old is not None
    assert ({"k": "x"}, found.resource["metadata"]["name"]) == (found.old["data"], found.old["metadata"]["name"])


@pytest.mark.parametrize(
    ("kind", "first", "second"), [("mutation", LABEL % "a", LABEL % "b"), ("effects", MAKE % "a", MAKE % "b")]
)
def test_changes_and_effects_are_compared(kind: str, first: str, second: str) -> None:
    """By the object that is left, and by what is generated."""
    found = run(first, second).counterexample
    assert found is not None
    assert kind == found.difference
    assert None is run(first, first).counterexample


MERGE = "mutate: {patchStrategicMerge: {data: {%s}}}"


def test_a_change_that_grows_when_it_is_applied_again_is_found() -> None:
    """Both append to nothing alike; a webhook that is called again sees the object with the change."""
    first = MERGE % "list: \"{{ request.object.data.list || '' }}x\""
    found = run(first, MERGE % "+(list): x").counterexample
    assert found is not None
    assert ("mutation", "x") == (found.difference, found.resource["data"]["list"])


CLEANUP = """\
apiVersion: kyverno.io/v2
kind: ClusterCleanupPolicy
metadata: {name: a}
spec:
  schedule: "0 * * * *"
  match: {any: [{resources: {kinds: [ConfigMap]}}]}
  conditions: {all: [{key: "{{ target.data.k || '' }}", operator: Equals, value: %s}]}
"""


def test_what_cleanup_deletes_is_compared() -> None:
    """Objects that only one side deletes are a difference; those that neither deletes are not."""
    assert None is run(CLEANUP % "x", CLEANUP % "x").counterexample
    found = run(CLEANUP % "x", CLEANUP % "y").counterexample
    assert found is not None
    assert ("effects", {"k": "x"}) == (found.difference, found.resource["data"])


def test_the_order_of_containers_is_counted_and_no_difference() -> None:
    """That of initContainers, which run one after the other, is one."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "n"}}
    items = [{"name": name, "image": name} for name in ("a", "b")]
    move = 'mutate: {patchesJson6902: \'[{"op": "move", "from": "/spec/%s/1", "path": "/spec/%s/0"}]\'}'
    stay = "mutate: {patchStrategicMerge: {metadata: {labels: {+(a): b}}}}"
    for name, reordered, is_same in (("containers", 1, True), ("initContainers", 0, False)):
        body = {**pod, "metadata": {**pod["metadata"], "labels": {"a": "b"}}, "spec": {name: items}}
        found = run(move % (name, name), stay, kind="Pod", seeds=[body])
        assert (reordered, is_same) == (found.reordered, found.counterexample is None)


def test_counts_are_of_requests_and_verdicts() -> None:
    """Per kind and operation, and for each side."""
    found = run(NAME, NAME, Operation.CREATE, Operation.UPDATE)
    assert {"v1/ConfigMap CREATE": 4, "v1/ConfigMap UPDATE": 3} == found.requests
    assert {"allow", "deny"} == {*found.first} == {*found.second}
    assert () == tuple(found.blind)


def test_a_rule_may_refuse_all_that_it_matches_if_it_leaves_others_alone() -> None:
    """Its scope decides then, for objects of the kind; if that leaves nothing out, the comparison says nothing."""
    for excluded, sides in (("x", []), ("none", ["first", "second"])):
        rule = f"exclude: {{resources: {{names: [{excluded}]}}}}\n    validate: {{message: m, deny: {{}}}}"
        assert sides == [reason.split()[1] for reason in run(rule, rule).blind]


IGNORE = POLICY.replace("spec:", "spec:\n  failurePolicy: Ignore", 1)
BROKEN = 'validate: {deny: {conditions: {all: [{key: "{{ request.object.data.none }}", operator: Equals, value: x}]}}}'


@pytest.mark.parametrize(("policy", "differs"), [(POLICY, False), (IGNORE, True)])
def test_an_error_refuses_a_request_unless_the_policy_ignores_it(policy: str, *, differs: bool) -> None:
    """One side fails, the other does not: the same refusal with failurePolicy Fail, a difference with Ignore."""
    error, failure = policy % BROKEN, policy % "validate: {message: m, deny: {}}"
    found = run(error, failure)
    assert differs is (found.counterexample is not None)
    assert None is run(error, error).counterexample


def test_an_error_of_what_is_generated_is_no_refusal_to_ignore() -> None:
    """Controllers generate after the answer, whatever the failurePolicy."""
    broken = MAKE % '"{{ request.object.data.none }}"'
    assert None is run(IGNORE % broken, POLICY % broken).counterexample


def test_what_is_not_admitted_does_not_count() -> None:
    """A comparison in which no request was admitted is reported as blind."""
    found = run(NAME, DATA, admits=False, count=5)
    assert (4 + 5, {}) == (found.refused, dict(found.requests))
    assert "no object was admitted" in found.blind


def test_an_object_that_is_deleted_is_no_change() -> None:
    """A side that never blocks makes a comparison void, whatever operations are tried."""
    never = REFUSE % "request.object.data.none || ''"
    found = run(never, never, Operation.CREATE, Operation.DELETE)
    assert None is found.counterexample
    assert ["first", "second"] == [reason.split()[1] for reason in found.blind]
