"""Tests of `migration.validating`: rules of every form beside what they become."""

from __future__ import annotations

import pytest

from pyverno.kube.json import JSONObject
from tests.support.conversions import convert, differences, policy, rule


def _deny(key: str, operator: str, value: object) -> JSONObject:
    return {"deny": {"conditions": {"any": [{"key": key, "operator": operator, "value": value}]}}}


def _with(check: JSONObject, **more: object) -> JSONObject:
    entry: JSONObject = rule("a", None, **more)
    entry["validate"] |= check
    return entry


LATEST: JSONObject = {"key": "{{ element.image }}", "operator": "Equals", "value": "*:latest"}
TYPE: JSONObject = {
    "key": "{{ request.object.spec.type || 'ClusterIP' }}",
    "operator": "NotEquals",
    "value": "ExternalName",
}
PARAMS: JSONObject = {"paramKind": {"kind": "ConfigMap", "apiVersion": "v1"}, "expressions": [{"expression": "true"}]}
FOREACH: JSONObject = {
    "foreach": [
        {
            "list": "request.object.spec.containers",
            "deny": {
                "conditions": {"any": [{"key": "{{ element.image }}", "operator": "Equals", "value": "*:latest"}]}
            },
        }
    ]
}
ANY: JSONObject = {
    "anyPattern": [{"spec": {"hostNetwork": True}}, {"spec": {"containers": [{"imagePullPolicy": "Always"}]}}]
}


@pytest.mark.parametrize(
    "entry",
    [
        _with(_deny("{{ request.object.spec.hostNetwork || `false` }}", "Equals", True)),
        _with(_deny("{{ request.object.metadata.labels.team || '' }}", "Equals", "")),
        _with(FOREACH),
        _with(ANY),
        _with({"podSecurity": {"level": "baseline", "version": "v1.30"}}),
        _with({"podSecurity": {"level": "restricted", "version": "latest"}}, action="Enforce"),
        _with(_deny("{{ request.object.spec.replicas }}", "GreaterThan", 3), kinds=["Deployment"]),
        _with(_deny("{{ request.operation }}", "Equals", "DELETE"), kinds=["ConfigMap"]),
        rule(
            "a",
            {"spec": {"type": "!NodePort"}},
            kinds=["Service"],
            preconditions={"all": [TYPE]},
        ),
    ],
)
def test_checks_decide_as_before(entry: JSONObject) -> None:
    """deny, foreach, anyPattern and preconditions, for Pods with all their controllers and for others."""
    written = policy(entry)
    found = convert(written)
    assert [None] == [each.refused for each in found.rules]
    assert [] == differences(written, found.documents, count=150)


def test_preconditions_become_match_conditions() -> None:
    """Unless they read the Pod of a controller: match conditions have no variables."""
    condition = {"key": "{{ request.object.spec.hostNetwork || `false` }}", "operator": "Equals", "value": False}
    entry = rule("a", {"spec": {"containers": [{"image": "ghcr.io/*"}]}}, preconditions={"all": [condition]})
    spec = convert(policy(entry)).documents[0]["spec"]
    assert ["podSpec", "applies"] == [each["name"] for each in spec["variables"]]
    alone = policy(entry, annotations={"pod-policies.kyverno.io/autogen-controllers": "none"})
    spec = convert(alone).documents[0]["spec"]
    assert ["preconditions"] == [each["name"] for each in spec["matchConditions"]]


def test_entries_of_the_context_become_variables() -> None:
    """In their order, below the name that they have."""
    entry = _with(
        _deny("{{ team }}", "Equals", ""),
        kinds=["ConfigMap"],
        context=[{"name": "team", "variable": {"jmesPath": "request.object.metadata.labels.team || ''"}}],
    )
    written = policy(entry)
    found = convert(written)
    assert ["team"] == [each["name"] for each in found.documents[0]["spec"]["variables"]]
    assert [] == differences(written, found.documents)


def test_messages_with_variables_become_expressions() -> None:
    """The text is the same; what cannot be filled in is written out, with a note."""
    entry = rule("a", {"spec": {"type": "!NodePort"}}, kinds=["Service"])
    entry["validate"]["message"] = "service {{ request.object.metadata.name }} is open"
    validation = convert(policy(entry)).documents[0]["spec"]["validations"][0]
    expression = validation["messageExpression"]
    assert expression.startswith("'service ' + ")
    assert expression.endswith(" + ' is open'")


@pytest.mark.parametrize(
    ("check", "code"),
    [
        ({"manifests": {"attestors": [{"entries": [{"keys": {"publicKeys": "x"}}]}]}}, "manifests"),
        ({"cel": PARAMS}, "params"),
        ({"pattern": {"kind": "Pod"}}, "autogen-field"),
    ],
)
def test_what_cel_cannot_express_is_refused(check: JSONObject, code: str) -> None:
    """With a code that the documentation explains."""
    refused = convert(policy(_with(check))).rules[0].refused
    assert refused is not None
    assert code == refused.code


def test_only_the_first_rule_that_applies_has_no_equal() -> None:
    """`applyRules: One` of several rules."""
    written = policy(rule("a", {"spec": {"hostPID": True}}), rule("b", {"spec": {"hostIPC": True}}))
    written["spec"]["applyRules"] = "One"
    assert ["apply-one", "apply-one"] == [each.refused.code for each in convert(written).rules if each.refused]


def test_preconditions_that_fail_on_deletions_are_noted() -> None:
    """The old rule blocks every deletion by its error; a policy for new objects does not."""
    key = "{{ request.object.metadata.labels.team }}"
    before = {"all": [{"key": key, "operator": "Equals", "value": "a"}]}
    written = policy(rule("a", {"metadata": {"labels": {"app": "?*"}}}, kinds=["ConfigMap"], preconditions=before))
    assert ["deletion-errors"] == [note.code for note in convert(written).rules[0].notes]
    written["spec"]["rules"][0]["match"]["any"][0]["resources"]["operations"] = ["CREATE"]
    assert [] == [note.code for note in convert(written).rules[0].notes]
