"""The metrics of a controller during its run, against a sandbox."""

from __future__ import annotations

import asyncio

from kubesandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.controllers.runtime.metricslifecycle import begin_metrics, count_queries, refresh_metrics
from pyverno.kube.gvk import GVR
from pyverno.telemetry.metrics import Metrics

CONFIG_MAPS = GVR("", "v1", "configmaps")


def test_counting_begins_with_the_settings_of_the_config_map() -> None:
    """Without the ConfigMap defaults apply; every API request is counted."""

    async def work() -> Metrics:
        metrics = Metrics()
        async with (
            Sandbox(Settings(namespaces=("kyverno",))) as sandbox,
            Client(load_kubeconfig(sandbox.kubeconfig), on_request=count_queries(metrics)) as client,
        ):
            await begin_metrics(client, "kyverno-metrics", "kyverno", metrics)
            assert () == metrics.settings.buckets
            exposure = '{"kyverno_http_requests": {"enabled": false}}'
            body = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "kyverno-metrics"},
                "data": {"bucketBoundaries": "1", "metricsExposure": exposure, "namespaces": "x"},
            }
            await client.create(CONFIG_MAPS, body, "kyverno")
            await begin_metrics(client, "kyverno-metrics", "kyverno", metrics)
            await client.list(CONFIG_MAPS)
            await client.request("GET", "/version")
        return metrics

    metrics = asyncio.run(work())
    found = {reading.name: reading for reading in metrics.read()}
    assert (1.0,) == found["kyverno_admission_review_duration_seconds"].bounds
    assert "kyverno_http_requests" not in found
    assert {("list", "dynamic", "configmaps", ""): 1} == found["kyverno_client_queries"].numbers
    assert 1 == len(metrics.settings.problems)


def test_counters_begin_anew_after_the_interval() -> None:
    """The new counters use the settings of that moment."""

    async def work() -> None:
        begun = asyncio.Event()

        class Told(Metrics):
            def begin(self) -> None:
                super().begin()
                begun.set()

        metrics = Told()
        metrics.reconciled("x")
        running = asyncio.create_task(refresh_metrics(metrics, 0.001))
        async with asyncio.timeout(30):
            await begun.wait()
        running.cancel()
        assert {} == next(each for each in metrics.read() if each.name == "kyverno_controller_reconcile").numbers

    asyncio.run(work())
