"""Differences that only show for some users, namespaces and subresources are found."""

from __future__ import annotations

from typing import Any

import pytest

from pyverno.compiler.equivalence.circumstances import ALICE, circumstances_of
from pyverno.compiler.equivalence.compare import Comparison
from pyverno.engine.request import Operation
from pyverno.kube.json import JSONObject
from tests.support.migrationcases import judge

CONFIG_MAP = {"kinds": ["ConfigMap"], "operations": ["CREATE", "UPDATE"]}
LABELLED = {"pattern": {"metadata": {"labels": {"team": "?*"}}}}


def rule_policy(match: JSONObject, check: JSONObject, **rule: Any) -> JSONObject:
    """Return a ClusterPolicy of one rule with one match block."""
    validate = {"failureAction": "Enforce", "allowExistingViolations": False, "message": "no", **check}
    written = {"name": "r", "match": {"any": [match]}, "validate": validate, **rule}
    annotations = {"pod-policies.kyverno.io/autogen-controllers": "none"}
    metadata = {"name": "p", "annotations": annotations}
    spec = {"background": False, "rules": [written]}
    return {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": metadata, "spec": spec}


def cel_policy(expression: str, resource: str = "configmaps", group: str = "", **spec: Any) -> JSONObject:
    """Return a ValidatingPolicy of one validation."""
    operations = spec.pop("operations", ["CREATE", "UPDATE"])
    rule = {"apiGroups": [group], "apiVersions": ["v1"], "operations": operations, "resources": [resource]}
    constraints = {"resourceRules": [rule], **spec.pop("constraints", {})}
    body = {
        "validationActions": ["Deny"],
        "autogen": {"podControllers": {"controllers": []}},
        "matchConstraints": constraints,
        "validations": [{"expression": expression, "message": "no"}],
        **spec,
    }
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "ValidatingPolicy",
        "metadata": {"name": "p"},
        "spec": body,
    }


def tell_apart(old: JSONObject, new: JSONObject) -> Comparison:
    """Compare two policies on a hundred objects."""
    return judge([old], [new], count=120)


def deny(key: str, value: Any) -> JSONObject:
    """Return a check that denies by one condition."""
    return {"deny": {"conditions": {"all": [{"key": key, "operator": "AnyIn", "value": value}]}}}


TEAM = "object.metadata.?labels.?team.orValue('') != ''"
USER = "request.userInfo.username"
DEVELOPERS = {"subjects": [{"kind": "Group", "name": "dev-*"}]}
ROBOT = {"subjects": [{"kind": "ServiceAccount", "namespace": "ci", "name": "robot"}]}
PRODUCTION = {"matchLabels": {"env": "prod"}}
OUTSIDE = {"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["test", "dev"]}]}
MATCH = {"resources": CONFIG_MAP}


def selecting(selector: JSONObject) -> JSONObject:
    """Return a match block with a namespaceSelector."""
    return {"resources": {**CONFIG_MAP, "namespaceSelector": selector}}


def guarded(expression: str) -> dict[str, Any]:
    """Return a match condition."""
    return {"matchConditions": [{"name": "users", "expression": expression}]}


PAIRS = {
    "an excluded group": (
        rule_policy(MATCH, LABELLED, exclude={"any": [DEVELOPERS]}),
        cel_policy(TEAM, **guarded("!request.userInfo.groups.exists(g, g.startsWith('dev-'))")),
        cel_policy(TEAM),
    ),
    "an excluded service account": (
        rule_policy(MATCH, LABELLED, exclude={"any": [ROBOT]}),
        cel_policy(TEAM, **guarded(f"{USER} != 'system:serviceaccount:ci:robot'")),
        cel_policy(TEAM, **guarded(f"{USER} != 'ci:robot'")),
    ),
    "a service account of another namespace": (
        rule_policy(MATCH, LABELLED, exclude={"any": [ROBOT]}),
        cel_policy(TEAM, **guarded(f"{USER} != 'system:serviceaccount:ci:robot'")),
        cel_policy(TEAM, **guarded(f"!{USER}.endsWith(':robot')")),
    ),
    "a condition on the user": (
        rule_policy(MATCH, deny("{{ request.userInfo.username }}", ["mallory"])),
        cel_policy(f"{USER} != 'mallory'"),
        cel_policy(f"!{USER}.startsWith('mallory')"),
    ),
    "labels of the namespace": (
        rule_policy(selecting(PRODUCTION), LABELLED),
        cel_policy(TEAM, constraints={"namespaceSelector": PRODUCTION}),
        cel_policy(TEAM),
    ),
    "labels that the namespace must not have": (
        rule_policy(selecting(OUTSIDE), LABELLED),
        cel_policy(TEAM, constraints={"namespaceSelector": OUTSIDE}),
        cel_policy(TEAM, **guarded("namespaceObject.metadata.?labels.?env.orValue('') != 'test'")),
    ),
    "ephemeral containers that are added": (
        rule_policy(
            {"resources": {"kinds": ["Pod"], "operations": ["UPDATE"]}},
            {"pattern": {"spec": {"=(ephemeralContainers)": [{"image": "!*:latest"}]}}},
        ),
        cel_policy(
            "object.spec.?ephemeralContainers.orValue([]).all(c, !c.image.endsWith(':latest'))",
            constraints={
                "resourceRules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["UPDATE"],
                        "resources": ["pods", "pods/ephemeralcontainers"],
                    }
                ]
            },
        ),
        cel_policy(
            "object.spec.?ephemeralContainers.orValue([]).all(c, !c.image.endsWith(':latest'))",
            "pods",
            operations=["UPDATE"],
        ),
    ),
    "the options of exec": (
        rule_policy(
            {"resources": {"kinds": ["Pod/exec"], "operations": ["CONNECT"]}},
            deny("{{ request.object.container || '' }}", ["secret"]),
        ),
        cel_policy("object.?container.orValue('') != 'secret'", "pods/exec", operations=["CONNECT"]),
        cel_policy("object.?container.orValue('') != 'secrets'", "pods/exec", operations=["CONNECT"]),
    ),
    "the number of a scale": (
        rule_policy(
            {"resources": {"kinds": ["Deployment/scale"], "operations": ["UPDATE"]}},
            {"pattern": {"spec": {"replicas": "<=5"}}},
        ),
        cel_policy("object.spec.?replicas.orValue(0) <= 5", "deployments/scale", "apps", operations=["UPDATE"]),
        cel_policy("object.spec.?replicas.orValue(0) < 5", "deployments/scale", "apps", operations=["UPDATE"]),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_a_right_twin_does_not_differ(name: str) -> None:
    """Nor is the comparison void: each side refuses some requests."""
    old, right, _ = PAIRS[name]
    found = tell_apart(old, right)
    assert None is found.counterexample
    assert [] == list(found.blind)


@pytest.mark.parametrize("name", PAIRS)
def test_a_twin_that_forgets_something_is_found(name: str) -> None:
    """Users, labels of namespaces, subresources."""
    old, _, wrong = PAIRS[name]
    assert tell_apart(old, wrong).counterexample is not None


def test_a_counterexample_names_only_what_it_needs() -> None:
    """The plain user where any would do."""
    old, _, wrong = PAIRS["labels of the namespace"]
    found = tell_apart(old, wrong).counterexample
    assert found is not None
    assert (ALICE, Operation.CREATE) == (found.case.user, found.operation)
    old, _, wrong = PAIRS["a condition on the user"]
    found = tell_apart(old, wrong).counterexample
    assert found is not None
    assert ({}, True) == (found.case.labels, found.case.user.username.startswith("mallory"))


def test_policies_that_look_at_no_user_get_one() -> None:
    """Requests by many users would only cost time."""
    found = circumstances_of([rule_policy(MATCH, LABELLED)])
    assert ((ALICE,), ({},)) == (found.users, found.namespaces)


def test_objects_before_admission_are_listed_apart() -> None:
    """A field that the API server fills in, or a form that it refuses, is no difference."""
    old = rule_policy(
        {"resources": {"kinds": ["Service"]}}, deny("{{ request.object.spec.type || 'x' }}", ["x", "NodePort"])
    )
    new = cel_policy("object.spec.type != 'NodePort'", "services")
    found = judge([old], [new], count=100)
    assert None is found.counterexample
    assert found.raw is not None
    assert 0 < found.raw_differences <= found.raw_judged
