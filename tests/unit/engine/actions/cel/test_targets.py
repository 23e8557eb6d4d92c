"""Mutations in CEL of existing objects: which are found, what becomes of them, and that the trigger stays."""

from __future__ import annotations

import pytest

from pyverno.engine.effects import PatchEffect
from pyverno.engine.request import Operation
from pyverno.offline.host import OfflineHost
from pyverno.offline.objects import ObjectStore
from tests.support.celpolicies import CONFIG_MAP, ERROR, ask, conditions, kyverno

TRIGGER = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token", "namespace": "team"}}
OTHER = {**CONFIG_MAP, "metadata": {"name": "other", "namespace": "elsewhere"}}
LABELLED = "Object{metadata: Object.metadata{labels: Object.metadata.labels{seen: 'true'}}}"
SECRETS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["secrets"]}


def rule(*resources, **more):
    """Return constraints on core resources."""
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": list(resources), **more}]
    return {"resourceRules": rules}


def existing(
    targets,
    *,
    kind="MutatingPolicy",
    expression=LABELLED,
    objects=(CONFIG_MAP, OTHER),
    operations=("CREATE",),
    operation=Operation.CREATE,
    **spec,
):
    """Review a Secret that triggers a change of ConfigMaps."""
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}
    policy = kyverno(
        kind,
        mutations=[mutation],
        evaluation={"mutateExisting": {"enabled": True}},
        matchConstraints={"resourceRules": [{**SECRETS, "operations": list(operations)}]},
        targetMatchConstraints=targets,
        **spec,
    )
    host = OfflineHost(objects=ObjectStore(objects))
    return ask(policy, resource=TRIGGER, host=host, operation=operation)


def statuses_and_targets(review):
    """Return status and target of every result."""
    return [(result.status.value, str(result.target)) for result in review.results]


@pytest.mark.parametrize(
    ("kind", "targets", "names"),
    [
        ("MutatingPolicy", rule("configmaps"), ["settings", "other"]),
        ("MutatingPolicy", rule("configmaps", resourceNames=["other"]), ["other"]),
        ("MutatingPolicy", rule("services"), []),
        ("NamespacedMutatingPolicy", rule("configmaps"), ["settings"]),
        ("MutatingPolicy", {"expression": "resource.Get('v1', 'configmaps', 'team', 'settings')"}, ["settings"]),
        ("MutatingPolicy", {"expression": "resource.List('v1', 'configmaps', 'elsewhere')"}, ["other"]),
    ],
)
def test_targets_are_selected_by_rules_or_returned_by_an_expression(kind, targets, names):
    """Each gets a patch; the object of the request stays as it is."""
    review = existing(targets, kind=kind)
    assert [effect.target.name for effect in review.effects if isinstance(effect, PatchEffect)] == names
    assert all(effect.after["metadata"]["labels"] == {"seen": "true"} for effect in review.effects)
    assert review.resource == TRIGGER


def test_the_object_of_a_deletion_is_the_deleted_one():
    """An expression finds the targets by it."""
    expression = "resource.Get('v1', 'configmaps', object.metadata.namespace, 'settings')"
    review = existing({"expression": expression}, operations=["DELETE"], operation=Operation.DELETE)
    assert ["settings"] == [effect.target.name for effect in review.effects]


def test_conditions_leave_targets_out():
    """Conditions are evaluated for each target; an evaluation error is an error of that target."""
    out = existing(rule("configmaps"), targetMatchConditions=conditions("object.metadata.name == 'other'"))
    assert [effect.target.name for effect in out.effects] == ["other"]
    broken = existing(rule("configmaps"), targetMatchConditions=conditions(ERROR))
    assert [status for status, _ in statuses_and_targets(broken)] == ["error", "error"]
    assert broken.effects == ()


def test_a_target_that_fails_does_not_stop_the_others():
    """Each has its own verdict."""
    chosen = f"[{LABELLED}][object.metadata.name == 'settings' ? 1 : 0]"
    review = existing(rule("configmaps"), expression=chosen)
    assert [status for status, _ in statuses_and_targets(review)] == ["error", "pass"]


def test_a_kind_that_can_not_be_read_does_not_stop_the_others():
    """The unreadable kind gets its own error result."""
    both = {"resourceRules": [*rule("gadgets")["resourceRules"], *rule("configmaps")["resourceRules"]]}
    assert ["error", "pass", "pass"] == [status for status, _ in statuses_and_targets(existing(both))]


def test_an_object_is_changed_once_however_often_rules_select_it():
    """Two rules may overlap."""
    both = {"resourceRules": rule("configmaps")["resourceRules"] * 2}
    assert 2 == len(existing(both).effects)


def test_subresources_of_targets_are_changed_through_their_objects():
    """The rules name them, also for what an expression returns."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "worker"}}
    by_rules = existing(rule("nodes/status"), objects=[node])
    by_expression = {**rule("nodes/status"), "expression": "resource.Get('v1', 'nodes', '', 'worker')"}
    for review in (by_rules, existing(by_expression, objects=[node])):
        assert [("worker", "status")] == [(effect.target.name, effect.subresource) for effect in review.effects]


def test_what_an_expression_makes_up_is_read_again():
    """Only what is stored is changed, and a policy of a namespace changes nothing outside of it."""
    metadata = "dyn({'name': 'NAME', 'namespace': 'SPACE'})"
    made_up = f"{{'apiVersion': dyn('v1'), 'kind': dyn('ConfigMap'), 'metadata': {metadata}}}"

    def found(name, namespace, kind="MutatingPolicy"):
        expression = made_up.replace("NAME", name).replace("SPACE", namespace)
        return existing({"expression": expression}, kind=kind)

    assert [CONFIG_MAP] == [effect.before for effect in found("settings", "team").effects]
    assert ["error"] == [status for status, _ in statuses_and_targets(found("none", "team"))]
    outside = found("other", "elsewhere", kind="NamespacedMutatingPolicy")
    assert (["error"], ()) == ([status for status, _ in statuses_and_targets(outside)], outside.effects)


@pytest.mark.parametrize("targets", [rule("*"), rule("gadgets")])
def test_what_can_not_be_found_out_is_an_error(targets):
    """It is never "no target"."""
    assert [status for status, _ in statuses_and_targets(existing(targets))] == ["error"]
