"""The routes of Policy Reporter's API, with its names of fields."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.support.uiserver import UiServer, serve_ui
from tests.unit.ui.store.samples import report, result

REPORT = report(
    result("p", "r", name="a", namespace="shop", message="no", properties={"k": "v"}),
    result("p", "r", "pass", name="b", namespace="data", severity=""),
    result("q", "s", "warn", name="shop", namespace="", kind="Namespace", severity="low"),
    result("*", "s", "error", name="", namespace="", kind="", severity=""),
    labels={"team": "blue"},
)


def read(tmp_path: Path, *paths: str, status: int = 200) -> list[Any]:
    """Return what paths give over a store with one report."""

    async def play() -> list[Any]:
        async with serve_ui(tmp_path) as ui:
            await ui.feed.write([REPORT])
            return [await read_one(ui, path) for path in paths]

    async def read_one(ui: UiServer, path: str) -> Any:
        return await ui.get(f"/v2/{path}", status=status)

    return asyncio.run(play())


def test_results_have_the_fields_of_policy_reporter(tmp_path: Path) -> None:
    """Those with a namespace and those of the cluster are two lists."""
    named, cluster = read(tmp_path, "namespace-scoped/results", "cluster-scoped/results")
    assert {
        "id": "1",
        "namespace": "shop",
        "kind": "Pod",
        "apiVersion": "v1",
        "name": "a",
        "resourceId": "1",
        "message": "no",
        "category": "Best Practices",
        "policy": "p",
        "rule": "r",
        "status": "fail",
        "source": "kyverno",
        "severity": "high",
        "timestamp": 1_000_000,
        "properties": {"k": "v"},
    } == named["items"][0]
    assert (2, 2) == (named["count"], cluster["count"])
    assert {"q", "*"} == {each["policy"] for each in cluster["items"]}


def test_filters_are_exact_and_pages_follow_each_other(tmp_path: Path) -> None:
    """A star is literal; a namespace filter on the list of cluster-scoped results selects nothing."""
    starred, second, none, labelled, both = read(
        tmp_path,
        "cluster-scoped/results?policies=*",
        "namespace-scoped/results?page=2&offset=1",
        "cluster-scoped/results?namespaces=shop",
        "namespace-scoped/results?labels=team:red",
        "namespace-scoped/results?namespaces=shop&namespaces=data&status=pass",
    )
    assert ["*"] == [each["policy"] for each in starred["items"]]
    assert (["b"], 2) == ([each["name"] for each in second["items"]], second["count"])
    assert (0, 0) == (none["count"], labelled["count"])
    assert ["b"] == [each["name"] for each in both["items"]]


def test_counts_and_lists(tmp_path: Path) -> None:
    """Sources with categories, policies, findings, kinds, namespaces, objects."""
    sources, categories, namespaces, kinds, policies, findings, by_namespace, cluster, severities, objects, orphans = (
        read(
            tmp_path,
            "sources",
            "sources/categories",
            "namespaces",
            "namespace-scoped/kinds",
            "policies?status=fail&status=pass",
            "findings",
            "namespace-scoped/kyverno/status-counts",
            "cluster-scoped/kyverno/status-counts",
            "cluster-scoped/kyverno/severity-counts",
            "namespace-scoped/resource-results",
            "results-without-resources",
        )
    )
    assert ["kyverno"] == sources
    counts = {"fail": 1, "error": 1, "warn": 1, "skip": 0, "pass": 1}
    levels = {"info": 0, "low": 1, "medium": 0, "high": 1, "critical": 0, "unknown": 2}
    category = {"name": "Best Practices", "status": counts, "severities": levels}
    assert [{"name": "kyverno", "categories": [category]}] == categories
    assert (["data", "shop"], ["Pod"]) == (namespaces, kinds)
    assert [("p", {"fail": 1, "pass": 1})] == [(each["policy"], each["results"]) for each in policies]
    assert (4, {"fail": 1, "error": 1, "warn": 1, "pass": 1}) == (findings["total"], findings["perResult"])
    assert (1, 1) == (by_namespace["shop"]["fail"], by_namespace["data"]["pass"])
    assert (1, 1, 0) == (cluster["warn"], cluster["error"], cluster["fail"])
    assert (1, 1) == (severities["low"], severities["unknown"])
    assert (2, ["a", "b"]) == (objects["count"], [each["name"] for each in objects["items"]])
    assert (1, 1) == (objects["items"][0]["status"]["fail"], objects["items"][0]["severities"]["high"])
    assert ["*"] == [each["policy"] for each in orphans["items"]]


def test_one_object_has_routes_of_its_own(tmp_path: Path) -> None:
    """They serve its reference, its results, and its counts by source."""
    described, results, none, by_source, statuses, severities, categories = read(
        tmp_path,
        "resource/1",
        "resource/1/results",
        "resource/1/results?status=pass",
        "resource/1/resource-results",
        "resource/1/status-counts",
        "resource/1/severity-counts",
        "resource/1/source-categories",
    )
    assert {"id": "1", "name": "a", "kind": "Pod", "apiVersion": "v1", "namespace": "shop"} == described
    assert (["p"], 1, 0) == ([each["policy"] for each in results["items"]], results["count"], none["count"])
    counts = {"fail": 1, "error": 0, "warn": 0, "skip": 0, "pass": 0}
    levels = {"info": 0, "low": 0, "medium": 0, "high": 1, "critical": 0, "unknown": 0}
    assert [{"uid": "", **described, "source": "kyverno", "status": counts, "severities": levels}] == by_source
    assert ([{"source": "kyverno", **counts}], [{"source": "kyverno", **levels}]) == (statuses, severities)
    assert ["Best Practices"] == [each["name"] for each in categories[0]["categories"]]
    for found in read(tmp_path, "resource/99", "resource/x/results", status=404):
        assert "there is no such resource" == found["error"]


def test_kinds_of_a_source_are_left_out(tmp_path: Path) -> None:
    """`exclude` hides kinds of one source, and of no other; in lists, counts and objects."""
    results, other, objects, findings = read(
        tmp_path,
        "namespace-scoped/results?exclude=kyverno:Pod,Job",
        "namespace-scoped/results?exclude=falco:Pod",
        "namespace-scoped/resource-results?exclude=kyverno:Pod",
        "findings?exclude=kyverno:Pod&exclude=kyverno:Namespace",
    )
    assert (0, 2, 0) == (results["count"], other["count"], objects["count"])
    assert {"error": 1} == findings["perResult"]


def test_results_are_sorted_by_the_requested_field(tmp_path: Path) -> None:
    """Columns sort in either direction, across pages."""
    up, down, second = read(
        tmp_path,
        "namespace-scoped/results?sortBy=resource_namespace&sortBy=resource_name&direction=asc",
        "namespace-scoped/results?sortBy=resource_namespace&direction=desc",
        "namespace-scoped/results?sortBy=resource_namespace&direction=asc&offset=1&page=2",
    )
    assert ["data", "shop"] == [each["namespace"] for each in up["items"]]
    assert ["shop", "data"] == [each["namespace"] for each in down["items"]]
    assert ["shop"] == [each["namespace"] for each in second["items"]]


def test_totals_of_a_source_are_counted(tmp_path: Path) -> None:
    """Totals are by status and severity, those of findings by severity."""
    statuses, severities, findings = read(
        tmp_path, "sources/kyverno/status-counts", "sources/kyverno/severity-counts", "severity-findings"
    )
    assert {"fail": 1, "error": 1, "warn": 1, "skip": 0, "pass": 1} == statuses
    assert {"info": 0, "low": 1, "medium": 0, "high": 1, "critical": 0, "unknown": 2} == severities
    assert (4, {"low": 1, "high": 1, "unknown": 2}) == (findings["total"], findings["perResult"])


def test_a_filter_that_is_not_known_is_an_error(tmp_path: Path) -> None:
    """A list that hides nothing would be taken for one that hides something."""
    for found in read(tmp_path, "sources?excluded=kyverno:Pod", "namespace-scoped/results?page=x", status=400):
        assert found["error"]


def test_values_of_a_property_are_listed_by_namespace(tmp_path: Path) -> None:
    """Each once, of the selected results; none for a property that no result has."""

    async def play() -> list[object]:
        async with serve_ui(tmp_path) as ui:
            results = [
                result(name=name, namespace=namespace, properties={"team x": team})
                for name, namespace, team in (("a", "shop", "t1"), ("b", "shop", "t1"), ("c", "data", "t2"))
            ]
            await ui.feed.write([report(*results, result(name="d", message="{broken"))])
            paths = ("properties/team%20x", "properties/team%20x?namespaces=data", "properties/none")
            return [await ui.get(f"/v2/{path}") for path in paths]

    data, shop = {"namespace": "data", "property": "t2"}, {"namespace": "shop", "property": "t1"}
    assert [[data, shop], [data], []] == asyncio.run(play())
