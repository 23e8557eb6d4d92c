"""Ephemeral reports: names, labels and content."""

from __future__ import annotations

import pytest

from pyverno.engine.result import FailureAction, ResourceRef, RuleResult, RuleType, Status
from pyverno.engine.rule import Family, PolicyInfo, RuleInfo
from pyverno.kube.gvk import GVK, GVR
from pyverno.policy.kinds import POLICY_KINDS
from pyverno.report.ephemeral import Reported, ReportParts, admission_report, background_report, policy_label

POD = Reported(ResourceRef("v1", "Pod", "shop", "web"), "7", GVK("", "v1", "Pod"), GVR("", "v1", "pods"), "r-1")
NODE = Reported(ResourceRef("v1", "Node", "", "one"), "8", GVK("", "v1", "Node"), GVR("", "v1", "nodes"), "r-2")


def said(policy, rule, status=Status.PASS):
    info = RuleInfo(PolicyInfo("ClusterPolicy", "kyverno.io/v1", policy, Family.RULES), rule, RuleType.VALIDATION)
    return RuleResult(info, FailureAction.AUDIT, status, "text")


def test_a_report_is_found_by_its_object():
    """Labels hold uid, kind and resource of the object, and every policy with its version."""
    found = admission_report(POD, [said("b", "x"), said("a", "y")], 5, version_of=lambda policy: policy.name * 2)
    assert {
        "generateName": "r-1-",
        "namespace": "shop",
        "labels": {
            "app.kubernetes.io/managed-by": "kyverno",
            "audit.kyverno.io/resource.uid": "7",
            "audit.kyverno.io/resource.group": "",
            "audit.kyverno.io/resource.version": "v1",
            "audit.kyverno.io/resource.kind": "Pod",
            "audit.kyverno.io/resource.gvr": "pods.v1",
            "audit.kyverno.io/source": "admission",
            "cpol.kyverno.io/a": "aa",
            "cpol.kyverno.io/b": "bb",
        },
        "annotations": {"audit.kyverno.io/resource.namespace": "shop", "audit.kyverno.io/resource.name": "web"},
    } == found["metadata"]


def test_an_object_owns_the_report_on_what_was_done_in_the_background():
    """The report is named after the object's uid, and a label holds its source."""
    found = background_report(POD.resource, "7", [said("a", "y")], 5)["metadata"]
    assert [{"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "7"}] == found["ownerReferences"]
    assert ("7-", "shop") == (found["generateName"], found["namespace"])
    assert "background-scan" == found["labels"]["audit.kyverno.io/source"]
    assert "audit.kyverno.io/resource.gvr" not in found["labels"]


def test_results_are_in_order_and_do_not_name_the_object_again():
    """The object is in the scope of the report."""
    found = admission_report(POD, [said("b", "x", Status.FAIL), said("a", "y"), said("a", "x")], 5)
    spec = found["spec"]
    assert [("a", "x"), ("a", "y"), ("b", "x")] == [(each["policy"], each["rule"]) for each in spec["results"]]
    assert {"apiVersion": "", "kind": "", "name": "", "uid": ""} == spec["owner"]
    assert {"pass": 2, "fail": 1, "warn": 0, "error": 0, "skip": 0} == spec["summary"]
    assert all("resources" not in each for each in spec["results"])


def test_an_object_without_namespace_has_a_report_without_one():
    """It is a cluster-scoped report."""
    found = admission_report(NODE, [said("a", "x")], 5)
    assert ("ClusterEphemeralReport", False) == (found["kind"], "namespace" in found["metadata"])


def test_a_resource_whose_name_no_label_can_hold_is_named_by_its_parts():
    """Group and version have labels of their own already."""
    gvr = GVR("a-group-with-a-name-that-is-rather-long.example.com", "v1alpha1", "widgetsetting")
    about = Reported(POD.resource, "7", GVK(gvr.group, gvr.version, "Widget"), gvr, "r")
    labels = admission_report(about, [said("a", "x")], 5)["metadata"]["labels"]
    assert "widgetsetting" == labels["audit.kyverno.io/resource.name"]
    assert "audit.kyverno.io/resource.gvr" not in labels


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("ClusterPolicy", "cpol.kyverno.io/p"),
        ("Policy", "pol.kyverno.io/p"),
        ("ValidatingPolicy", "vpol.kyverno.io/p"),
        ("NamespacedValidatingPolicy", "validatingadmissionpolicy.apiserver.io/p"),
        ("MutatingPolicy", "mpol.kyverno.io/p"),
        ("NamespacedMutatingPolicy", "mpol.kyverno.io/p"),
        ("ImageValidatingPolicy", "ivpol.kyverno.io/p"),
        ("GeneratingPolicy", "gpol.kyverno.io/p"),
        ("MutatingAdmissionPolicy", "mutatingadmissionpolicy.apiserver.io/p"),
    ],
)
def test_every_kind_of_policy_has_its_label(kind, expected):
    """Namespaced CEL policies have the labels that Kyverno gives them."""
    group = next(row.group for row in POLICY_KINDS if row.kind == kind)
    assert expected == policy_label(PolicyInfo(kind, f"{group}/v1", "p", Family.CEL))


def test_a_policy_whose_name_is_too_long_has_no_label():
    """The API server would refuse the report."""
    assert "" == policy_label(PolicyInfo("ValidatingPolicy", "policies.kyverno.io/v1", "p" * 64, Family.CEL))


def test_parts_that_are_used_again_give_the_same_report() -> None:
    """Items, summary and labels are made once; time and versions are those of each report."""
    results = [said("b", "x", Status.FAIL), said("a", "y"), said("a", "x")]
    parts = ReportParts(results)
    for seconds in (5, 6):
        version = str(seconds)
        once = admission_report(POD, results, seconds, version_of=lambda _, version=version: version)
        again = admission_report(POD, parts, seconds, version_of=lambda _, version=version: version)
        assert once == again
