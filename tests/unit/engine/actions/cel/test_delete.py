"""Deletion in CEL: the objects that a DeletingPolicy selects."""

from __future__ import annotations

import pytest

from tests.support.celpolicies import CONFIG_MAP, CONSTRAINTS, ERROR, ask, conditions, kyverno, named, said


def deleting(*expressions, kind="DeletingPolicy", resource=None, **spec):
    policy = kyverno(kind, schedule="* * * * *", conditions=conditions(*expressions), **spec)
    return ask(policy, resource=resource, deleting=True)


@pytest.mark.parametrize(
    ("expressions", "expected"),
    [
        (["true", "object.metadata.name == 'settings'"], ("pass", "resource matched")),
        (["variables.mine"], ("pass", "resource matched")),
        (["true", "false"], ("fail", "resource did not match")),
        ([ERROR, "false"], ("fail", "resource did not match")),
        ([ERROR], ("error", "no such key: missing")),
        ([ERROR, "true", "object.gone == 1"], ("error", "no such key: missing; no such key: gone")),
        (["request.name == 'settings'"], ("error", None)),
        (["oldObject == null"], ("error", None)),
    ],
)
def test_an_object_goes_when_all_conditions_are_true(expressions, expected):
    """False conditions and errors keep the object, errors are reported; `request` and `oldObject` are unavailable."""
    review = deleting(*expressions, variables=named(mine="object.metadata.namespace == 'team'"))
    ((status, message),) = said(review)
    assert expected[0] == status
    assert expected[1] in (None, message)
    assert (expected[0] == "pass") == bool(review.effects)


def test_the_effect_names_the_object_and_how_it_goes():
    """The effect carries the policy's propagation policy for dependents."""
    (effect,) = deleting("true", deletionPropagationPolicy="Orphan").effects
    assert ("ConfigMap", "team", "settings", "Orphan") == (
        effect.target.kind,
        effect.target.namespace,
        effect.target.name,
        effect.propagation_policy,
    )


def test_excluded_objects_are_kept_whatever_the_operations_are():
    """A deletion has no admission operation, so the operations of an exclusion do not narrow it."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["configmaps"]}
    only = {"resourceRules": [rule]}
    assert [("pass", "resource matched")] == said(deleting("true", matchConstraints=only))
    assert [] == said(deleting("true", matchConstraints={**CONSTRAINTS, "excludeResourceRules": [rule]}))


@pytest.mark.parametrize(("namespace", "count"), [("team", 1), ("other", 0)])
def test_a_policy_of_a_namespace_deletes_in_it_only(namespace, count):
    """The namespace limits the policy even if its constraints match more."""
    resource = {**CONFIG_MAP, "metadata": {"name": "settings", "namespace": namespace}}
    assert count == len(deleting("true", kind="NamespacedDeletingPolicy", resource=resource).effects)
