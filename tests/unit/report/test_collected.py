"""Results collected from the reports of any tool."""

from __future__ import annotations

from typing import Any

import pytest

from pyverno.engine.result import ResourceRef
from pyverno.report.collected import is_report, read_report, worst_first


def report(*results: dict[str, Any], **parts: Any) -> dict[str, Any]:
    """Return a report about one Pod."""
    return {
        "apiVersion": "wgpolicyk8s.io/v1alpha2",
        "kind": "PolicyReport",
        "metadata": {"name": "r", "namespace": "team"},
        "scope": {"apiVersion": "v1", "kind": "Pod", "name": "a"},
        "results": list(results),
        **parts,
    }


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"apiVersion": "wgpolicyk8s.io/v1alpha2", "kind": "PolicyReport"}, True),
        ({"apiVersion": "openreports.io/v1alpha1", "kind": "ClusterReport"}, True),
        ({"apiVersion": "example.com/v1", "kind": "Report"}, False),
        ({"apiVersion": "v1", "kind": "Pod"}, False),
        (None, False),
    ],
)
def test_a_report_is_known_by_group_and_kind(body: object, expected: bool) -> None:
    """Another group may have a kind of the same name."""
    assert expected is is_report(body)  # type: ignore[arg-type]


def test_the_scope_is_the_resource_of_results_without_one() -> None:
    """The scope of the report names the object; its namespace is that of the report."""
    (found,) = read_report(report({"policy": "p", "rule": "r", "result": "fail", "source": "kyverno"}))
    assert (ResourceRef("v1", "Pod", "team", "a"), "kyverno", "fail") == (
        found.finding.resource,
        found.source,
        found.finding.status,
    )


def test_a_report_of_a_namespace_shows_nothing_of_another_one() -> None:
    """A tenant that writes reports in its namespace names the objects of others in them: they stay its own."""
    for place in ("resources", "subjects"):
        named = [{"apiVersion": "v1", "kind": "Pod", "namespace": "victim", "name": "web"}]
        item = {"policy": "p", "result": "fail", "source": "kyverno", place: named}
        forged = {"kind": "PolicyReport", "metadata": {"namespace": "evil", "name": "x"}, "results": [item]}
        (found,) = read_report(forged)
        assert "evil" == found.finding.resource.namespace
        (found,) = read_report({**forged, "kind": "ClusterPolicyReport", "metadata": {"name": "x"}})
        assert "victim" == found.finding.resource.namespace


def test_a_result_without_an_object_is_of_the_namespace_of_its_report() -> None:
    """Otherwise a tenant's text would stand among the results of the cluster."""
    (found,) = read_report(report({"policy": "p", "result": "fail"}, scope=None))
    assert ResourceRef("", "", "team", "") == found.finding.resource
    wide = {**report({"policy": "p", "result": "fail"}, scope=None), "metadata": {"name": "r"}}
    assert ResourceRef("", "", "", "") == next(read_report(wide)).finding.resource


def test_a_result_about_several_resources_counts_for_each() -> None:
    """Reports of a policy list their objects in the result."""
    resources = [{"kind": "Pod", "name": name, "namespace": "x"} for name in "ab"]
    found = list(read_report(report({"policy": "p", "result": "pass", "resources": resources})))
    assert ["a", "b"] == [each.finding.resource.name for each in found]


def test_an_unknown_status_is_an_error_rather_than_a_pass() -> None:
    """An unknown status needs attention and must not be hidden."""
    (found,) = read_report(report({"policy": "p", "result": "splendid"}))
    assert "error" == found.finding.status


def test_parts_of_a_wrong_type_are_missing_parts() -> None:
    """Another tool's mistake does not end the reading of all reports."""
    wrong = report({"policy": 1, "result": ["fail"], "timestamp": 3, "properties": [], "resources": "x"}, scope=7)
    (found,) = read_report(wrong)
    assert ("", "error", 0) == (found.finding.policy, found.finding.status, found.seconds)
    assert [] == list(read_report(report(results={})))


def test_the_worst_results_come_first() -> None:
    """By status, then severity, then place."""
    items = [
        {"policy": "c", "result": "pass", "severity": "critical"},
        {"policy": "b", "result": "fail", "severity": "low"},
        {"policy": "a", "result": "fail", "severity": "high"},
        {"policy": "d", "result": "error"},
    ]
    assert ["a", "b", "d", "c"] == [each.finding.policy for each in worst_first(read_report(report(*items)))]
