"""The store follows the reports of a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from kubesandbox import Sandbox
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.install.reportdefinitions import POLICY_REPORTS, report_definitions
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.ui.feed import ClusterFeed, StoreFeed
from pyverno.ui.live import LiveUpdates
from pyverno.ui.store.filters import NO_FILTER
from pyverno.ui.store.reader import Reader
from pyverno.ui.store.schema import create_tables
from pyverno.ui.store.writer import Report, Writer
from tests.unit.ui.store.samples import result

REPORTS = GVR("wgpolicyk8s.io", "v1alpha2", "policyreports")
CRDS = GVR("apiextensions.k8s.io", "v1", "customresourcedefinitions")


def body(name: str, status: str) -> JSONObject:
    """Return a report with one result."""
    return {
        "apiVersion": "wgpolicyk8s.io/v1alpha2",
        "kind": "PolicyReport",
        "metadata": {"name": name, "namespace": "default"},
        "scope": {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": name},
        "results": [{"policy": "p", "rule": "r", "result": status, "source": "kyverno"}],
    }


async def _until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not is_so():
            await asyncio.sleep(0.05)


def statuses(reader: Reader) -> list[tuple[str, str]]:
    """Return name and status of every open result."""
    found = [each.collected.finding for each in reader.each_result(NO_FILTER)]
    return sorted((each.resource.name, each.status) for each in found)


def test_reports_of_a_cluster_are_followed(tmp_path: Path) -> None:
    """Reports deleted before the start are resolved; then each creation, change and deletion shows."""
    path = str(tmp_path / "results.db")
    create_tables(path)

    async def play() -> None:
        writer, reader = Writer(path), Reader(path)
        writer.write([Report("here", "PolicyReport/default/gone", [result(name="gone")], {})], 1)
        writer.write([Report("elsewhere", "PolicyReport/default/kept", [result(name="kept")], {})], 1)
        with Sandbox() as sandbox:
            async with Client(load_kubeconfig(sandbox.kubeconfig, "", {}), qps=0) as client:
                for definition in report_definitions(POLICY_REPORTS):
                    await client.create(CRDS, definition)
                await client.create(REPORTS, body("a", "fail"), "default")
                feed = ClusterFeed("here", client, StoreFeed(writer, LiveUpdates()))
                running = asyncio.ensure_future(feed.run())
                await _until(lambda: [("a", "fail"), ("kept", "fail")] == statuses(reader))
                assert "" == feed.problem()
                await client.create(REPORTS, body("b", "warn"), "default")
                await _until(lambda: ("b", "warn") in statuses(reader))
                await client.delete(REPORTS, "a", "default")
                await _until(lambda: [("b", "warn"), ("kept", "fail")] == statuses(reader))
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
        writer.close()
        reader.close()

    asyncio.run(play())


def test_a_cluster_without_reports_is_an_error(tmp_path: Path) -> None:
    """An empty page would look like a clean cluster."""
    path = str(tmp_path / "results.db")
    create_tables(path)

    async def play() -> str:
        writer = Writer(path)
        with Sandbox() as sandbox:
            async with Client(load_kubeconfig(sandbox.kubeconfig, "", {}), qps=0) as client:
                feed = ClusterFeed("here", client, StoreFeed(writer, LiveUpdates()))
                running = asyncio.ensure_future(feed.run())
                await _until(lambda: bool(feed.problem()))
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
        writer.close()
        return feed.problem()

    assert "the cluster serves no reports" in asyncio.run(play())
