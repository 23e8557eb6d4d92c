"""Constraints become matchers: those of Kubernetes' own policies differ from Kyverno's."""

from __future__ import annotations

import pytest

from pyverno.engine.request import Operation
from tests.support.celpolicies import ask, binding, kyverno, native, said, validations


def rules(resources="configmaps", groups="", versions="v1", operations="CREATE", **more):
    parts = {"apiGroups": groups, "apiVersions": versions, "operations": operations, "resources": resources}
    return [{**{key: value.split(",") for key, value in parts.items()}, **more}]


SCALER = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "a", "namespace": "x"},
}


@pytest.mark.parametrize(
    ("constraints", "how", "expected"),
    [
        ({"resourceRules": rules()}, {}, True),
        ({"resourceRules": rules("secrets")}, {}, False),
        ({"resourceRules": rules()}, {"operation": Operation.UPDATE}, False),
        ({"resourceRules": rules(resourceNames=["settings"])}, {}, True),
        ({"resourceRules": rules(resourceNames=["other"])}, {}, False),
        ({"resourceRules": rules(scope="Cluster")}, {}, False),
        ({"resourceRules": rules(), "excludeResourceRules": rules()}, {}, False),
        ({"resourceRules": rules(), "excludeResourceRules": rules(operations="UPDATE")}, {}, True),
        ({"resourceRules": rules(), "objectSelector": {}}, {}, True),
        ({"resourceRules": rules(), "objectSelector": {"matchLabels": {"a": "b"}}}, {}, False),
        ({"resourceRules": rules(), "namespaceSelector": {"matchLabels": {"a": "b"}}}, {}, False),
        (
            {"resourceRules": rules(), "namespaceSelector": {"matchLabels": {"a": "b"}}},
            {"namespace_labels": {"a": "b"}},
            True,
        ),
    ],
)
@pytest.mark.parametrize("kind", [kyverno, native])
def test_both_families_match_alike(kind, constraints, how, expected):
    """Rules, exclusions, names, scopes and selectors mean the same everywhere."""
    policy = kind(matchConstraints=constraints, validations=validations("true"))
    assert expected is bool(said(ask(policy, **how)))


@pytest.mark.parametrize(
    ("policy", "match_policy", "expected"),
    [(native, None, True), (native, "Equivalent", True), (native, "Exact", False), (kyverno, None, False)],
)
def test_only_kubernetes_matches_equivalent_resources(policy, match_policy, expected):
    """Another version of the same resource matches unless `matchPolicy` is Exact."""
    constraints = {"resourceRules": rules("horizontalpodautoscalers", "autoscaling", "v1")}
    if match_policy is not None:
        constraints["matchPolicy"] = match_policy
    found = ask(policy(matchConstraints=constraints, validations=validations("true")), resource=SCALER)
    assert expected is bool(said(found))


def test_a_binding_without_rules_narrows_by_selectors_alone():
    """A policy without rules matches nothing, a binding without rules matches everything."""
    policy = native(validations=validations("true"))
    chosen = binding(matchResources={"namespaceSelector": {"matchLabels": {"a": "b"}}})
    assert [] == said(ask(policy, chosen))
    assert [("pass", "")] == said(ask(policy, chosen, namespace_labels={"a": "b"}))


def test_admission_policies_are_not_about_themselves():
    """Kubernetes never shows them to each other; Kyverno's see them."""
    resource = native(validations=validations("true"))
    assert [] == said(ask(native(validations=validations("true")), resource=resource))
    assert [("pass", "success")] == said(ask(kyverno(validations=validations("true")), resource=resource))
