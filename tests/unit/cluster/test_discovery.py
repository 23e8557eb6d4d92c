"""Discovery: aggregated, plain, and with an unavailable aggregated API."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kubesandbox import Sandbox
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.cluster.discovery import Served, discover, find_served
from pyverno.kube.gvk import GVK, GVR
from pyverno.kube.kinds import KindInfo, KindTable
from pyverno.kube.status import StatusError
from tests.support.apiserver import Script, serving, status

VERBS = ["watch", "get", "list"]
PODS = {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "shortNames": ["po"], "verbs": VERBS}
LOG = {"name": "pods/log", "namespaced": True, "kind": "Pod", "verbs": []}
EVENTS = {"name": "events", "singularName": "event", "namespaced": True, "kind": "Event", "verbs": []}


def _groups(*groups: tuple[str, str, tuple[str, ...]]) -> dict[str, Any]:
    return {
        "kind": "APIGroupList",
        "groups": [
            {
                "name": name,
                "versions": [{"groupVersion": f"{name}/{version}", "version": version} for version in versions],
                "preferredVersion": {"groupVersion": f"{name}/{preferred}", "version": preferred},
            }
            for name, preferred, versions in groups
        ],
    }


def _found(arrange: Callable[[Script], None]) -> KindTable:
    async def run() -> KindTable:
        async with serving() as (script, client):
            arrange(script)
            return await discover(client)

    return asyncio.run(run())


def _arrange_core(script: Script) -> None:
    script.on("GET /api", {"kind": "APIVersions", "versions": ["v1"]})
    script.on("GET /api/v1", {"groupVersion": "v1", "resources": [PODS, LOG, EVENTS]})


def test_plain_discovery_requests_every_version() -> None:
    """Subresources belong to their resource; the preferred version comes first."""

    def arrange(script: Script) -> None:
        _arrange_core(script)
        script.on("GET /apis", _groups(("events.k8s.io", "v1", ("v1beta1", "v1"))))
        for version in ("v1", "v1beta1"):
            listed = {"groupVersion": f"events.k8s.io/{version}", "resources": [EVENTS]}
            script.on(f"GET /apis/events.k8s.io/{version}", listed)

    kinds = _found(arrange)
    pod = kinds.by_resource(GVR("", "v1", "pods"))
    assert pod is not None
    assert (GVK("", "v1", "Pod"), True, ("log",), ("po",)) == (
        pod.gvk,
        pod.namespaced,
        pod.subresources,
        pod.short_names,
    )
    assert ("get", "list", "watch") == pod.verbs
    events = [info.version for info in kinds if info.group == "events.k8s.io"]
    assert ["v1", "v1beta1"] == events


def test_a_group_whose_server_is_away_is_left_out() -> None:
    """One broken aggregated API must not stop everything; the core group is required."""

    def arrange(script: Script) -> None:
        _arrange_core(script)
        script.on("GET /apis", _groups(("metrics.k8s.io", "v1", ("v1",))))
        script.on("GET /apis/metrics.k8s.io/v1", status(503, "ServiceUnavailable"))

    assert _found(arrange).by_resource(GVR("", "v1", "pods")) is not None

    def broken(script: Script) -> None:
        arrange(script)
        script.on("GET /api/v1", status(500, "InternalError"))

    with pytest.raises(StatusError, match="InternalError"):
        _found(broken)


def test_aggregated_discovery_takes_two_requests() -> None:
    """Stale versions are left out, because they may have been removed."""
    resource = {
        "resource": "widgets",
        "responseKind": {"group": "x.io", "version": "v1", "kind": "Widget"},
        "scope": "Cluster",
        "singularResource": "widget",
        "subresources": [{"subresource": "status"}],
    }

    def answer(freshness: str) -> dict[str, Any]:
        versions = [{"version": "v1", "freshness": freshness, "resources": [resource]}]
        return {"kind": "APIGroupDiscoveryList", "items": [{"metadata": {"name": "x.io"}, "versions": versions}]}

    def arrange(script: Script, freshness: str = "Current") -> None:
        script.on("GET /api", {"kind": "APIGroupDiscoveryList", "items": []})
        script.on("GET /apis", answer(freshness))

    widget = _found(arrange).by_resource(GVR("x.io", "v1", "widgets"))
    assert widget is not None
    assert (False, ("status",)) == (widget.namespaced, widget.subresources)
    assert _found(lambda script: arrange(script, "Stale")).by_resource(GVR("x.io", "v1", "widgets")) is None


def test_a_late_group_is_not_removed() -> None:
    """Stale versions are listed as silent, so that their known kinds are kept."""
    resource = {"resource": "widgets", "responseKind": {"kind": "Widget"}, "scope": "Cluster"}
    versions = [
        {"version": "v1", "freshness": "Stale", "resources": [resource]},
        {"version": "v2", "freshness": "Stale"},
        {"version": "v3", "freshness": "Current", "resources": [resource]},
    ]

    def arrange(script: Script) -> None:
        script.on("GET /api", {"kind": "APIGroupDiscoveryList", "items": []})
        items = [{"metadata": {"name": "x.io"}, "versions": versions}]
        script.on("GET /apis", {"kind": "APIGroupDiscoveryList", "items": items})

    async def run() -> Served:
        async with serving() as (script, client):
            arrange(script)
            return await find_served(client)

    served = asyncio.run(run())
    assert {("x.io", "v1"), ("x.io", "v2")} == served.silent
    assert ["v3"] == [info.version for info in served.kinds]
    before = KindTable([_widget("v2"), _widget("v4")])
    assert {"v1", "v2", "v3"} == {info.version for info in served.completed(before)}


def _widget(version: str) -> KindInfo:
    return KindInfo("x.io", version, "Widget", "widgets", "widget")


def test_both_ways_find_the_same_in_a_real_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sandbox supports both protocols."""

    async def ask(ask_kinds: Callable[[Client], Awaitable[KindTable]], kubeconfig: str) -> set[str]:
        async with Client(load_kubeconfig(kubeconfig), qps=0) as client:
            return {f"{info.gvr} {info.kind} {info.namespaced}" for info in await ask_kinds(client)}

    with Sandbox(controllers=False) as sandbox:
        aggregated = asyncio.run(ask(discover, sandbox.kubeconfig))
        monkeypatch.setattr("pyverno.cluster.discovery._ACCEPT", "application/json")
        plain = asyncio.run(ask(discover, sandbox.kubeconfig))
    assert len(aggregated) > 50
    assert aggregated == plain
