"""Admission policies with their bindings."""

from __future__ import annotations

from kubesandbox.admission.policies.bound import BoundPolicies
from tests.support.admissionstage import cluster, config_map, in_store, request
from tests.unit.kubesandbox.admission.policies.test_plugin import binding, policy


def test_policies_and_bindings_stand_in_order_of_their_names():
    """Policies without binding and bindings without policy are left out."""
    names = ("p2", "p1", "alone")
    bindings = (binding("b2", "p1"), binding("b1", "p1", ("Warn",)), binding("b3", "p2"), binding("b4", "none"))
    _, view = cluster(*(policy({"expression": "true"}, name=name) for name in names), *bindings)
    found = BoundPolicies("validatingadmission", view).current()
    assert [("p1", ["b1", "b2"]), ("p2", ["b3"])] == [
        (each.name, [one.name for one in each.bindings]) for each in found
    ]
    assert ("Warn",) == found[0].bindings[0].actions


def test_policies_are_compiled_when_something_changes():
    """Without a change the compiled policies are used again."""
    store, view = cluster(policy({"expression": "true"}), binding())
    policies = BoundPolicies("validatingadmission", view)
    first = policies.current()
    assert first is policies.current()
    in_store(store, binding("other"))
    assert ["b", "other"] == [each.name for each in policies.current()[0].bindings]


def test_policies_never_see_questions_about_access():
    """Nor the configuration of admission: a policy that denies everything would lock out every user."""
    everything = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}]
    _, view = cluster(policy({"expression": "false"}, matchConstraints={"resourceRules": everything}), binding())
    (found,) = BoundPolicies("validatingadmission", view).current()
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "metadata": {"name": ""}}
    assert found.matching_type(request(review), view) is None
    assert found.matching_type(request(config_map()), view) is not None


def test_only_policies_that_may_be_about_a_request_are_looked_at():
    """Names and selectors are checked later; a change of the served types counts at once."""
    named = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    rules = {
        "p1": {**named, "resourceNames": ["other"]},
        "p2": {**named, "operations": ["DELETE"]},
        "p3": {**named, "resources": ["pods"]},
        "p4": named,
    }
    bodies = [
        policy({"expression": "true"}, name=name, matchConstraints={"resourceRules": [rule]})
        for name, rule in rules.items()
    ]
    store, view = cluster(*bodies, *(binding(f"b-{name}", name) for name in rules))
    policies = BoundPolicies("validatingadmission", view)
    assert ["p1", "p4"] == [each.name for each in policies.about(request(config_map()))]
    assert policies.about(request(config_map())) is policies.about(request(config_map("d")))
    in_store(store, policy({"expression": "true"}, name="p4", matchConstraints={"resourceRules": [rules["p3"]]}))
    assert ["p1"] == [each.name for each in policies.about(request(config_map()))]
