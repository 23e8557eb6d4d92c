"""Results become reports."""

from __future__ import annotations

import json

import pytest
import yaml

from pyverno.engine.effects import CreateEffect, PatchEffect
from pyverno.engine.result import CelDetail, FailureAction, PodSecurityDetail, ResourceRef, RuleResult, RuleType, Status
from pyverno.kube.json import JSONObject
from pyverno.report.formats.mergedreports import merged_reports
from pyverno.report.policyreport import ReportEntry, result_object
from pyverno.report.summary import Summary, reported_status
from tests.unit.report.results import POD, result

CONFIG_MAP: JSONObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"}}


def entry(said: RuleResult, resource: ResourceRef = POD) -> ReportEntry:
    """The result about a Pod, at a fixed time."""
    return ReportEntry(said, resource, 1700000000, "uid-1")


def test_a_result_has_all_its_fields() -> None:
    """The fields are those that Kyverno writes."""
    annotations = {"policies.kyverno.io/category": "C", "policies.kyverno.io/severity": "high"}
    assert {
        "source": "kyverno",
        "policy": "p",
        "rule": "r",
        "result": "fail",
        "message": "m",
        "scored": True,
        "category": "C",
        "severity": "high",
        "timestamp": {"seconds": 1700000000, "nanos": 0},
        "properties": {"process": "background scan"},
        "resources": [{"apiVersion": "v1", "kind": "Pod", "name": "a", "namespace": "shop", "uid": "uid-1"}],
    } == result_object(entry(result(annotations=annotations)))


@pytest.mark.parametrize(
    ("said", "key", "expected"),
    [
        (result(background=False), "process", "admission review"),
        (result(type=RuleType.DELETION), "process", None),
        (result(exceptions=("ns/a", "ns/b")), "exceptions", "a,b"),
        (
            result(
                detail=PodSecurityDetail(
                    "baseline",
                    "latest",
                    ({"id": "x", "name": "X", "images": ["nginx"]}, {"id": "a", "name": "A", "images": []}),
                )
            ),
            "controls",
            "a,x",
        ),
        (
            result(detail=PodSecurityDetail("baseline", "latest", ({"id": "x", "name": "X", "images": []},))),
            "controlsJSON",
            '[{"ID":"x","Name":"X","Images":null}]',
        ),
        (result(detail=PodSecurityDetail("baseline", "latest")), "standard", None),
        (
            result(
                Status.PASS,
                target=ResourceRef("apps/v1", "Deployment", "n", "d"),
                effects=(PatchEffect(ResourceRef("apps/v1", "Deployment", "n", "d"), {}, {}),),
            ),
            "patched-target",
            "apps/v1, Kind=Deployment Name=d Namespace=n",
        ),
        (
            result(Status.PASS, effects=(CreateEffect(CONFIG_MAP), CreateEffect(CONFIG_MAP))),
            "generated-resources",
            "/v1, Kind=ConfigMap Name=c Namespace=n; /v1, Kind=ConfigMap Name=c Namespace=n",
        ),
        (result(properties={"team": "a"}), "team", "a"),
        (result(properties={"failMessage": "x"}), "failMessage", "x"),
        (result(kind="ValidatingPolicy", detail=CelDetail(1)), "cel.validationIndex", "1"),
        (result(kind="ValidatingPolicy", detail=CelDetail(1), status=Status.ERROR), "cel.validationIndex", "1"),
        (result(kind="NamespacedValidatingPolicy", detail=CelDetail(1)), "cel.validationIndex", "1"),
        (result(kind="ImageValidatingPolicy", detail=CelDetail(1)), "cel.validationIndex", None),
        (result(detail=CelDetail(1)), "cel.validationIndex", None),
        (result(kind="ValidatingAdmissionPolicy", detail=CelDetail(0, "bound", ("Deny",))), "binding", "bound"),
        (
            result(Status.PASS, kind="MutatingAdmissionPolicy", detail=CelDetail(binding="bound")),
            "mapBinding",
            "bound",
        ),
        (
            result(Status.PASS, kind="ValidatingAdmissionPolicy", detail=CelDetail(binding="bound")),
            "binding",
            "bound",
        ),
    ],
)
def test_properties(said: RuleResult, key: str, expected: str | None) -> None:
    """Process, exceptions, pod security, targets, generated objects, own ones."""
    assert expected == result_object(entry(said)).get("properties", {}).get(key)


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"failMessage": "x", "message": "y"}, "x"),
        ({"passMessage": "x", "message": "y"}, "y"),
        ({"passMessage": "x"}, "m"),
    ],
)
def test_properties_may_replace_the_message(properties: dict[str, str], expected: str) -> None:
    """The message property for the status precedes the one for all statuses."""
    assert expected == result_object(entry(result(properties=properties)))["message"]


def test_a_failure_that_is_not_scored_keeps_the_message_of_failures() -> None:
    """It is reported as a warning, without `scored`, as Kyverno writes it."""
    said = result(annotations={"policies.kyverno.io/scored": "false"}, properties={"failMessage": "x"})
    item = result_object(entry(said))
    assert ("warn", "x", None) == (item["result"], item["message"], item.get("scored"))


@pytest.mark.parametrize(
    ("said", "audit_warn", "expected"),
    [
        (result(), False, Status.FAIL),
        (result(), True, Status.WARN),
        (result(action=FailureAction.ENFORCE), True, Status.FAIL),
        (result(annotations={"policies.kyverno.io/scored": "false"}), False, Status.WARN),
        (result(Status.ERROR), True, Status.ERROR),
    ],
)
def test_failures_may_be_warnings(said: RuleResult, audit_warn: bool, expected: Status) -> None:
    """Failures of unscored policies are warnings, and those of Audit rules when that option is set."""
    assert expected is reported_status(said, audit_warn=audit_warn)


def reports_of(said: list[ReportEntry], form: str = "yaml") -> list[JSONObject]:
    """Return the merged reports as they are read back."""
    text = "".join(merged_reports(said, form=form))
    documents = text.split("---\n")
    return [json.loads(each) if form == "json" else yaml.safe_load(each) for each in documents if each]


def test_results_stand_in_order_and_are_counted() -> None:
    """Results are sorted by policy, rule and object."""
    said = [
        entry(result(policy="q")),
        entry(result(Status.PASS, rule="s")),
        entry(result(Status.SKIP), ResourceRef("v1", "Pod", "shop", "z")),
        entry(result(Status.ERROR)),
    ]
    (report,) = reports_of(said)
    order = [(item["policy"], item["rule"], item["resources"][0]["name"]) for item in report["results"]]
    assert [("p", "r", "a"), ("p", "r", "z"), ("p", "s", "a"), ("q", "r", "a")] == order
    assert {"pass": 1, "fail": 1, "skip": 1, "error": 1, "warn": 0} == report["summary"]
    assert ("openreports.io/v1alpha1", {"name": "merged"}) == (report["apiVersion"], report["metadata"])
    assert report["source"] == ""
    assert [report] == reports_of(said, "json")


def test_namespaced_policies_have_reports_of_their_own() -> None:
    """Results of cluster policies go into the merged report, which exists even without results."""

    def kinds(*said: RuleResult) -> list[tuple[str, str]]:
        reports = reports_of([entry(each) for each in said])
        return [(report["kind"], report["metadata"]["name"]) for report in reports]

    assert [("ClusterReport", "merged")] == kinds()
    assert [("ClusterReport", "merged"), ("PolicyReport", "x")] == kinds(result(), result(policy="x", namespace="n"))
    assert [("PolicyReport", "x")] == kinds(result(policy="x", namespace="n"))


def test_summary_counts_every_status() -> None:
    """The counts are in Kyverno's order."""
    said = [result(status) for status in Status]
    assert "pass: 1, fail: 1, warn: 1, error: 1, skip: 1" == str(Summary.of(said))
