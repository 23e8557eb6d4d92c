"""The scan plan: its policies, its kinds, and the evaluations that a policy change invalidates."""

from __future__ import annotations

from pyverno.controllers.reports.plan import ScanPlan, make_plan
from pyverno.engine.match import IndexKey
from pyverno.kube.gvk import GVK
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import BUILTIN_KINDS
from tests.unit.controllers.reports.policies import compiled, exception, policy, validating

POD = IndexKey(GVK("", "v1", "Pod"), "", "CREATE", "team", background=True)
DEPLOYMENT = IndexKey(GVK("apps", "v1", "Deployment"), "", "CREATE", "team", background=True)


def plan(*bodies: JSONObject) -> ScanPlan:
    """Return the plan for documents in a cluster of built-in kinds."""
    found = compiled(*bodies)
    return make_plan(found.policies, found.exceptions, BUILTIN_KINDS)


def kinds(found: ScanPlan) -> set[str]:
    """Return the kinds in a plan."""
    return {info.kind for info in found.kinds}


def test_kinds_come_from_rules_with_those_of_autogen() -> None:
    """Each kind has one version, the one that the cluster prefers."""
    found = plan(policy("a"))
    expected = {
        "Pod",
        "DaemonSet",
        "Deployment",
        "Job",
        "ReplicaSet",
        "ReplicationController",
        "StatefulSet",
        "CronJob",
    }
    assert expected == kinds(found)
    assert len(expected) == len(found.kinds)


def test_kinds_come_from_constraints() -> None:
    """The constraints of every kind of CEL policy name resources."""
    assert {"ConfigMap", "Secret"} <= kinds(plan(validating("a", "configmaps", "secrets")))


def test_a_wildcard_covers_everything_that_may_be_reported() -> None:
    """Events are excluded, because they have no reports."""
    body = validating("a", "*")
    body["spec"]["matchConstraints"]["resourceRules"][0].update(apiGroups=["*"], apiVersions=["*"])
    found = kinds(plan(body))
    assert {"Pod", "Node", "Ingress"} <= found
    assert "Event" not in found


def test_policies_that_are_not_scanned_are_left_out() -> None:
    """Admission-only policies and policies with reports disabled are excluded."""
    found = plan(
        policy("admission", background=False),
        policy("hidden", labels={"reports.kyverno.io/disabled": ""}),
        policy("seen"),
    )
    assert ["seen"] == [each.info.name for each in found.policies]


def test_exceptions_that_are_not_for_background_scans_are_left_out() -> None:
    """Objects that they exempt at admission are reported."""
    assert 1 == len(plan(policy("a"), exception("a")).exceptions)
    assert () == plan(policy("a"), exception("a", background=False)).exceptions


def test_a_change_concerns_the_policies_that_came_or_went() -> None:
    """A compiled policy stays equal until its document changes."""
    one, two = compiled(policy("a")).policies, compiled(policy("b", "ConfigMap")).policies
    before = make_plan(one, (), BUILTIN_KINDS)
    after = make_plan((*one, *two), (), BUILTIN_KINDS)
    changed = after.changes(before)
    assert ["b"] == [each.info.name for each in changed]
    assert (False, False) == tuple(after.matches(changed[0], key) for key in (POD, DEPLOYMENT))
    assert () == after.changes(after)


def test_a_change_of_an_exception_concerns_the_policies_that_it_names() -> None:
    """Other policies stay unchanged."""
    policies = compiled(policy("a"), policy("b")).policies
    before = make_plan(policies, (), BUILTIN_KINDS)
    exempting = compiled(exception("a")).exceptions
    after = make_plan(policies, exempting, BUILTIN_KINDS)
    assert ["a"] == [each.info.name for each in after.changes(before)]
    assert ["a"] == [each.info.name for each in before.changes(after)]


def item(name: str, rule: str = "tag", source: str = "kyverno") -> JSONObject:
    """Return a result of a report."""
    return {"source": source, "policy": name, "rule": rule}


def test_the_scan_decides_about_the_policies_that_it_evaluates() -> None:
    """It leaves admission-only policies and unknown policies alone."""
    found = plan(policy("a"), policy("admission", background=False), validating("v", "pods"))
    info = BUILTIN_KINDS.by_kind("Pod")[0]
    decided = [found.decides(each, info, "team") for each in (item("a"), item("admission"), item("other"))]
    assert [True, False, False] == decided
    assert found.decides(item("v", "", "KyvernoValidatingPolicy"), info, "team")


def test_the_scan_does_not_decide_about_rules_for_other_operations() -> None:
    """It evaluates creations only, so the result of an update stays until the next update."""
    found = plan(
        policy("updated", resources={"operations": ["UPDATE"]}), validating("v", "pods", operations=("UPDATE",))
    )
    info = BUILTIN_KINDS.by_kind("Pod")[0]
    assert not found.decides(item("updated"), info, "team")
    assert not found.decides(item("v", "", "KyvernoValidatingPolicy"), info, "team")


def test_the_scan_decides_that_a_policy_no_longer_matches_a_kind() -> None:
    """The result dates from before the policy changed."""
    found = plan(policy("a", "ConfigMap"))
    assert found.decides(item("a"), BUILTIN_KINDS.by_kind("Pod")[0], "team")
