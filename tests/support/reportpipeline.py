"""Results in the pipeline of reports while no controller aggregates them: stored, dropped, and finally reported.

Admission reports of `requests` reviews are written to a cluster without a reports controller, which then starts. Every
request is either stored as an ephemeral report or counted as dropped; the reports in the end are those of a scan.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import orjson

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.cluster.discovery import discover
from pyverno.compiler.compile import compile_documents
from pyverno.controllers.admission.reports import AdmissionReports, ReportSettings
from pyverno.controllers.reports.controller import ReportsController, ReportsSettings
from pyverno.engine.engine import Engine
from pyverno.engine.host import NO_HOST
from pyverno.engine.phases import VALIDATING
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Request
from pyverno.kube.admissionreview import AdmissionResponse, read_admission_review
from pyverno.kube.apipath import resource_path
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import Document
from pyverno.report.ephemeral import EPHEMERAL_REPORTS
from pyverno.telemetry.metrics import Metrics
from pyverno.telemetry.observer import AdmissionOutcome
from pyverno.testing import install_definitions
from tests.support.recordkeys import SEALS, SECRETS, key_secret
from tests.support.reportoracle import actual_reports, expected_reports

__all__ = ["BURST", "Flow", "send_through"]

_PODS = GVR("", "v1", "pods")
_NAMESPACES = GVR("", "v1", "namespaces")
_POLICIES = GVR("kyverno.io", "v1", "clusterpolicies")
_DROPS = frozenset({"kyverno_breaker_drops", "kyverno_controller_drop"})
BURST = 100
"""Reviews at a time; the count of reports may lag by this number."""

_PATH = "/validate/fail"
_SECONDS = 300.0


@dataclass(frozen=True)
class Flow:
    """The result of `requests`: the peak number of objects, those dropped and counted, and wrong reports."""

    requests: int
    results: int
    most_stored: int
    dropped: int
    left: int
    differences: int

    @property
    def is_metered(self) -> bool:
        """Return whether every request is stored or counted as dropped."""
        return self.most_stored + self.dropped == self.requests


async def send_through(policies: list[JSONObject], *, requests: int, cap: int, pods: int) -> Flow:
    """Report reviews of some Pods without a consumer, then start it; return what happened to them."""
    async with Sandbox(Settings(kubelet=False)) as sandbox:
        access = load_kubeconfig(sandbox.kubeconfig, environment={})
        async with Client(access, qps=0) as client:
            await install_definitions(client)
            for name in ("kyverno", "team"):
                await client.create(_NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
                await client.create(SECRETS, key_secret(), name)
            for body in policies:
                await client.create(_POLICIES, body)
            stored = [await client.create(_PODS, _pod(number), "team") for number in range(pods)]
            metrics = Metrics()
            sent, results = await _report(client, metrics, policies, stored, requests=requests, cap=cap)
            most = await _count(client)
            stop = asyncio.Event()
            settings = ReportsSettings(qps=0, settle_seconds=0.05)
            controller = ReportsController(access, settings, Metrics())
            running = asyncio.create_task(controller.run(stop))
            try:
                async with asyncio.timeout(_SECONDS):
                    while await _count(client) or not controller.is_idle:
                        await asyncio.sleep(0.1)
                left = await _count(client)
                wrong = await _differing(client)
            finally:
                stop.set()
                await running
            return Flow(sent, results, most, _dropped(metrics), left, wrong)


async def _report(
    client: Client, metrics: Metrics, policies: list[JSONObject], pods: list[JSONObject], *, requests: int, cap: int
) -> tuple[int, int]:
    """Report reviews as fast as they are written; return the number of reviews and of results."""
    kinds = await discover(client)
    settings = ReportSettings(most=cap, max_waiting=2 * BURST)
    reports = AdmissionReports(
        client, settings, kinds=lambda: kinds, version_of=lambda _: "1", seals=SEALS, metrics=metrics
    )
    engine = Engine(PolicySet(compile_documents([Document(body, "") for body in policies]).policies), NO_HOST)
    writing = asyncio.create_task(reports.run())
    sent = results = 0

    async def send(count: int) -> None:
        nonlocal sent, results
        for _ in range(count):
            asked = read_admission_review(_review(sent, pods[sent % len(pods)]), "application/json")
            review = engine.review(Request.from_admission_review(asked), VALIDATING)
            reports.answered(asked, _PATH, AdmissionOutcome(AdmissionResponse(), review), 0.0)
            sent, results = sent + 1, results + len(review.results)
        while not reports.is_idle:
            await asyncio.sleep(0.01)

    try:
        while not await _count(client):  # nothing is written before the existing reports are counted
            await send(1)
        while sent < requests:
            await send(min(BURST, requests - sent))
    finally:
        writing.cancel()
    return sent, results


async def _differing(client: Client) -> int:
    """Return the number of objects whose reports differ from the library's results."""
    expected, actual = await expected_reports(client), await actual_reports(client)
    return sum(expected.get(uid) != actual.get(uid) for uid in expected.keys() | actual.keys())


async def _count(client: Client) -> int:
    """Return the number of reports without reading them: thousands would keep the event loop from everything else."""
    found = await client.request("GET", resource_path(EPHEMERAL_REPORTS[0]), query={"limit": "1"})
    return len(found["items"]) + int(found["metadata"].get("remainingItemCount") or 0)


def _dropped(metrics: Metrics) -> int:
    readings = (each for each in metrics.instruments.slices() if each.name in _DROPS)
    return int(sum(sum(each.numbers.values()) for each in readings))


def _pod(number: int) -> JSONObject:
    metadata = {"name": f"web-{number}", "namespace": "team"}
    image = "nginx:latest" if number % 3 == 0 else "nginx:1"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [{"name": "c", "image": image}]},
    }


def _review(number: int, pod: JSONObject) -> bytes:
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    request = {
        "uid": f"request-{number}",
        "kind": kind,
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "name": pod["metadata"]["name"],
        "namespace": "team",
        "operation": "CREATE",
        "userInfo": {"username": "alice"},
        "object": {"apiVersion": "v1", "kind": "Pod", **pod},
    }
    return orjson.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
