"""Exceptions in CEL: policies are exempt for the same objects as rules were."""

from __future__ import annotations

import pytest

from pyverno.compiler.migration.outcome import Converted, UnconvertibleError
from pyverno.compiler.migration.related.exceptions import convert_exception
from pyverno.compiler.migration.related.successors import Successor, Successors
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import load_documents
from pyverno.kube.yaml.writer import dump_yaml
from tests.support.migrationcases import BOOK, convert, judge

CONTROLLERS = frozenset(
    {"DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet", "CronJob"}
)
BOTH = Successors(
    (
        Successor("p", "a", "p", "ValidatingPolicy", frozenset({"Pod"})),
        Successor("p", "autogen-a", "p", "ValidatingPolicy", CONTROLLERS),
    )
)
TWO_RULES = Successors((*BOTH.entries, Successor("p", "b", "p", "ValidatingPolicy", frozenset({"Pod"}))))
POLICY: JSONObject = {
    "apiVersion": "kyverno.io/v1",
    "kind": "ClusterPolicy",
    "metadata": {"name": "p"},
    "spec": {
        "rules": [
            {
                "name": "a",
                "match": {"any": [{"resources": {"kinds": ["Pod"], "operations": ["CREATE", "UPDATE"]}}]},
                "validate": {
                    "failureAction": "Enforce",
                    "allowExistingViolations": False,
                    "message": "no host network",
                    "pattern": {"spec": {"=(hostNetwork)": False}},
                },
            }
        ]
    },
}
HOST: list[JSONObject] = [
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}},
        "spec": {"hostNetwork": True, "containers": [{"name": "a", "image": "b"}]},
    }
    for name, namespace in (("web", "team-a"), ("web", "default"), ("x", "team-a"), ("x", "default"))
]


def exception(rules: list[str] | None = None, policy: str = "p", **changes: object) -> JSONObject:
    """Return an exception of kyverno.io."""
    resources = {"kinds": ["Pod", "Deployment"], "namespaces": ["team-*"], "names": ["web*"]}
    spec = {
        "exceptions": [{"policyName": policy, "ruleNames": rules or ["a", "autogen-a"]}],
        "match": {"any": [{"resources": resources}]},
    }
    return {
        "apiVersion": "kyverno.io/v2",
        "kind": "PolicyException",
        "metadata": {"name": "e", "namespace": "n"},
        "spec": {**spec, **changes},
    }


def converted(document: JSONObject, successors: Successors = BOTH) -> Converted:
    """Convert an exception."""
    return convert_exception(load_documents(dump_yaml(document))[0], successors, BOOK)


def test_match_becomes_conditions_of_a_whole_policy() -> None:
    """Kinds, names and namespaces; the reference is name and kind."""
    ((document,), spec) = (converted(exception()).documents, converted(exception()).documents[0]["spec"])
    assert ("policies.kyverno.io/v1", "PolicyException") == (document["apiVersion"], document["kind"])
    assert [{"name": "p", "kind": "ValidatingPolicy"}] == spec["policyRefs"]
    assert "request.kind.kind in ['Deployment', 'Pod']" == spec["matchConditions"][0]["expression"]
    assert ["kinds", "match-name", "match-namespace"] == [each["name"] for each in spec["matchConditions"]]


@pytest.mark.parametrize(
    "rules", [["a", "autogen-a"], ["*"], ["a"], ["autogen-*"]], ids=["both", "all", "rule", "copies"]
)
def test_the_same_objects_are_exempt(rules: list[str]) -> None:
    """A rule's name exempts Pods, that of its copies their controllers."""
    old = exception([*rules])
    new = converted(old).documents
    found = judge([POLICY, old], [*convert(POLICY)[0], *new], count=60, kinds=["Pod", "Deployment"], seeds=HOST)
    assert None is found.counterexample
    assert found.first["deny"]


def test_an_exception_of_some_rules_of_a_policy_is_refused() -> None:
    """The new policy can only be exempt as a whole; for controllers it is."""
    with pytest.raises(UnconvertibleError) as raised:
        converted(exception(["a", "autogen-a"]), TWO_RULES)
    assert "exception-of-some-rules" == raised.value.refused.code
    (document,) = converted(exception(["autogen-a"]), TWO_RULES).documents
    assert "request.kind.kind == 'Deployment'" == document["spec"]["matchConditions"][0]["expression"]


def test_a_policy_of_a_namespace_is_exempt_there_only() -> None:
    """References of the new kind know no namespaces."""
    namespaced = Successors((Successor("team-a/p", "a", "p", "NamespacedValidatingPolicy", frozenset({"Pod"})),))
    (document,) = converted(exception(["a"], "team-a/p"), namespaced).documents
    assert "request.namespace == 'team-a'" == document["spec"]["matchConditions"][-1]["expression"]


def test_rules_that_stay_keep_the_old_exception() -> None:
    """The note `exception-kept` reports it."""
    successors = Successors(BOTH.entries, frozenset({("p", "c")}))
    assert ("exception-kept",) == tuple(note.code for note in converted(exception(["*"]), successors).notes)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"podSecurity": [{"controlName": "Privileged Containers"}]}, "exception-pod-security"),
        ({"background": False}, "exception-background"),
        ({"exceptions": [{"policyName": "other", "ruleNames": ["a"]}]}, "exception-unused"),
        (
            {"match": {"any": [{"resources": {"kinds": ["Pod"], "namespaceSelector": {"matchLabels": {"a": "b"}}}}]}},
            "exception-namespace-selector",
        ),
        (
            {
                "conditions": {
                    "all": [{"key": "{{ request.object.spec.hostname }}", "operator": "Equals", "value": "a"}]
                }
            },
            "exception-condition",
        ),
    ],
    ids=["podSecurity", "background", "unused", "namespaceSelector", "condition"],
)
def test_what_an_exception_in_cel_cannot_express_is_refused(changes: JSONObject, code: str) -> None:
    """With the code of the reason and a next step."""
    with pytest.raises(UnconvertibleError) as raised:
        converted(exception(**changes))
    assert (code, True) == (raised.value.refused.code, bool(raised.value.refused.advice))


def test_conditions_of_an_exception_become_a_match_condition() -> None:
    """With a default they never fail."""
    key = "{{ request.object.metadata.labels.app || '' }}"
    old = exception(["*"], conditions={"all": [{"key": key, "operator": "Equals", "value": "web"}]})
    new = converted(old).documents
    assert "conditions" == new[0]["spec"]["matchConditions"][-1]["name"]
    found = judge([POLICY, old], [*convert(POLICY)[0], *new], count=30, kinds=["Pod"], seeds=HOST)
    assert None is found.counterexample
