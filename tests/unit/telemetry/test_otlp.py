"""Traces and metrics arrive at a gRPC collector."""

from __future__ import annotations

import asyncio
import base64
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics_pb
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2_grpc as metrics_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as trace_pb
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as trace_grpc
from opentelemetry.sdk.metrics.export import MetricExportResult

from kubesandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.controllers.certificates.secrets import SECRETS
from pyverno.controllers.runtime.collectorauthority import collector_authority
from pyverno.errors import HostError
from pyverno.telemetry.metrics import Metrics
from pyverno.telemetry.otlp import Collector, MetricsPush, Tracing
from tests.support.webhookserver import make_certificate
from tests.unit.telemetry.test_observer import QUESTION, outcome


class Received(trace_grpc.TraceServiceServicer, metrics_grpc.MetricsServiceServicer):
    """A collector that keeps what it receives."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.metrics: dict[str, Any] = {}
        self.services: set[str] = set()

    def Export(self, request: Any, context: Any) -> Any:  # noqa: N802 - the name of both calls
        """Keep spans and metrics."""
        for found in getattr(request, "resource_spans", ()):
            self._note(found.resource)
            self.spans += [span for scope in found.scope_spans for span in scope.spans]
        for found in getattr(request, "resource_metrics", ()):
            self._note(found.resource)
            self.metrics |= {each.name: each for scope in found.scope_metrics for each in scope.metrics}
        is_trace = isinstance(request, trace_pb.ExportTraceServiceRequest)
        return trace_pb.ExportTraceServiceResponse() if is_trace else metrics_pb.ExportMetricsServiceResponse()

    def _note(self, resource: Any) -> None:
        self.services |= {each.value.string_value for each in resource.attributes if each.key == "service.name"}


@contextmanager
def collector(credentials: grpc.ServerCredentials | None = None) -> Iterator[tuple[Received, int]]:
    """Run a collector on a free port."""
    received = Received()
    with ThreadPoolExecutor(2) as pool:
        server = grpc.server(pool)
        trace_grpc.add_TraceServiceServicer_to_server(received, server)
        metrics_grpc.add_MetricsServiceServicer_to_server(received, server)
        address = "localhost:0"
        port = server.add_secure_port(address, credentials) if credentials else server.add_insecure_port(address)
        server.start()
        yield received, port
        server.stop(0).wait()


def test_traces_and_metrics_arrive() -> None:
    """The rest is sent at the end."""
    with collector() as (received, port):

        async def run() -> None:
            to = Collector(f"localhost:{port}")
            metrics = Metrics()
            tracing = Tracing("kyverno-admission-controller", to)
            async with tracing, MetricsPush(metrics, to):
                for observer in (tracing.observer, metrics):
                    observer.answered(QUESTION, "/validate/fail", outcome(), 0.3)

        asyncio.run(run())
    assert {"kyverno-admission-controller", "kyverno"} == received.services
    assert 4 == len(received.spans)
    count = received.metrics["kyverno_policy_results"].sum
    assert (True, 1) == (count.is_monotonic, count.data_points[0].as_double or count.data_points[0].as_int)
    [point] = received.metrics["kyverno_admission_review_duration_seconds"].histogram.data_points
    assert (1, 0.3, False) == (point.count, point.sum, point.HasField("min"))
    assert len(point.explicit_bounds) + 1 == len(point.bucket_counts)
    assert point.start_time_unix_nano < point.time_unix_nano
    assert "kyverno_info" in received.metrics


def test_a_push_that_breaks_ends_no_later_one(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What an exporter raises is logged once, and the next metrics are sent."""
    monkeypatch.setattr("pyverno.telemetry.otlp._PUSH_SECONDS", 0.001)
    sent: list[str] = []

    class Exporter:
        """Breaks twice, and then sends."""

        def export(self, data: object, milliseconds: int) -> MetricExportResult:
            sent.append("broken" if len(sent) < 2 else "sent")
            if sent[-1] == "broken":
                raise TypeError("canary-5c1e")
            return MetricExportResult.SUCCESS

        def shutdown(self, milliseconds: int) -> None:
            """Do nothing."""

    async def run() -> None:
        async with MetricsPush(Metrics(), Collector("localhost:1"), lambda **_: Exporter()):  # type: ignore[arg-type, return-value]
            async with asyncio.timeout(30):
                while "sent" not in sent:
                    await asyncio.sleep(0.001)

    asyncio.run(run())
    assert 1 == sum(each.getMessage() == "the sending of metrics ran into a bug" for each in caplog.records)


def test_a_collector_is_trusted_by_its_secret() -> None:
    """Kyverno's key holds the CA; without the Secret nothing is sent in clear text."""
    certificate = make_certificate()
    credentials = grpc.ssl_server_credentials([(certificate.key, certificate.certificate)])
    with collector(credentials) as (received, port):

        async def run() -> None:
            async with Sandbox(Settings(namespaces=("kyverno",))) as sandbox:
                access = load_kubeconfig(sandbox.kubeconfig)
                async with Client(access) as client:
                    for name, key in (("good", "ca.pem"), ("bad", "other")):
                        data = {key: base64.b64encode(certificate.certificate).decode()}
                        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data}
                        await client.create(SECRETS, body, "kyverno")
                authority = collector_authority(access, "good", "kyverno")
                async with MetricsPush(Metrics(), Collector(f"localhost:{port}", authority)):
                    pass
                for name in ("bad", "none"):
                    with pytest.raises(HostError, match=f"Secret `{name}`"):
                        await collector_authority(access, name, "kyverno")()

        asyncio.run(run())
    assert "kyverno_info" in received.metrics


def test_without_the_extra_the_error_names_it() -> None:
    """The test runs in a process where OpenTelemetry cannot be imported."""
    code = (
        "import sys; sys.modules['opentelemetry'] = None; sys.modules['grpc'] = None\n"
        "from pyverno.errors import UsageError\n"
        "try:\n    import pyverno.telemetry.otlp\n"
        "except UsageError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "install pyverno with its extra `otel`" in done.stdout


def test_a_controller_that_sends_nothing_does_not_load_it() -> None:
    """The import takes half a second."""
    code = (
        "import sys, pyverno.cli.controller.admission\n"
        "print([name for name in sys.modules if 'opentelemetry' in name or 'otlp' in name])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "[]\n" == done.stdout
