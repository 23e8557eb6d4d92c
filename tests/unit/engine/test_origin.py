"""Labels of generated objects: written by rules, read by controllers."""

from __future__ import annotations

from pyverno.engine.origin import Origin, cel_labels, copy_labels, rule_labels
from pyverno.engine.request import Request
from pyverno.engine.result import ResourceRef
from pyverno.engine.rule import Family, PolicyInfo

TRIGGER = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop", "uid": "7"},
}
SOURCE = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pull", "namespace": "default", "uid": "8"}}
REQUEST = Request.from_manifest(TRIGGER)
POLICY = PolicyInfo("Policy", "kyverno.io/v1", "copy", Family.RULES, "shop")
CEL = PolicyInfo("NamespacedGeneratingPolicy", "policies.kyverno.io/v1", "copy", Family.CEL, "shop")


def test_what_a_rule_writes_is_what_a_controller_reads() -> None:
    """Policy, rule, trigger and source come back from the labels."""
    labels = {**rule_labels(POLICY, "secret", REQUEST), **copy_labels(SOURCE)}
    trigger = ResourceRef("apps/v1", "Deployment", "shop", "")
    assert Origin("copy", "shop", "secret", trigger, "7", "8") == Origin.of(labels)


def test_a_policy_in_cel_names_its_namespace_and_the_trigger() -> None:
    """The namespace distinguishes policies of the same name."""
    trigger = ResourceRef("apps/v1", "Deployment", "shop", "web")
    assert Origin("copy", "shop", "", trigger, "7") == Origin.of(cel_labels(CEL, REQUEST))


def test_a_name_that_no_label_may_hold_is_left_out() -> None:
    """The API server would reject such a label; the uid identifies the trigger instead."""
    role = {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "system:node", "uid": "9"}}
    found = Origin.of(cel_labels(CEL, Request.from_manifest(role)))
    assert found is not None
    assert ("", "9") == (found.trigger.name, found.trigger_uid)


def test_an_object_made_elsewhere_has_no_origin() -> None:
    """Labels that were copied without the mark of the controllers mean nothing."""
    labels = {**rule_labels(POLICY, "secret", REQUEST), "app.kubernetes.io/managed-by": "helm"}
    assert Origin.of(labels) is None
