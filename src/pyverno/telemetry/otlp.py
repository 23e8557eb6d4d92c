"""Traces and metrics sent to a collector of OpenTelemetry by gRPC; the extra `otel` of this package.

This module must never be imported where nothing is to be sent: OpenTelemetry takes half a second to load.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from types import TracebackType
from typing import Final, Protocol, Self

from pyverno.errors import UsageError
from pyverno.telemetry.instruments import Reading
from pyverno.telemetry.observer import Observer
from pyverno.threads import in_thread
from pyverno.value import dataclass
from pyverno.version import __version__

try:
    from grpc import ChannelCredentials, ssl_channel_credentials
    from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.metrics.export import (
        AggregationTemporality,
        Gauge,
        Histogram,
        HistogramDataPoint,
        Metric,
        MetricExporter,
        MetricsData,
        NumberDataPoint,
        ResourceMetrics,
        ScopeMetrics,
        Sum,
    )
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

    from pyverno.telemetry.traces import Traces
except ImportError as error:
    raise UsageError(f"OpenTelemetry is not installed ({error.name}): install pyverno with its extra `otel`") from None

__all__ = ["Collector", "Counted", "MetricsPush", "Tracing", "metrics_data"]

_PUSH_SECONDS: Final = 2.0
_LAST_MILLISECONDS: Final = 10_000
_SCOPE: Final = "kyverno"

log = logging.getLogger("pyverno.telemetry")


async def _no_authority() -> None:
    return None


@dataclass(frozen=True, slots=True)
class Collector:
    """A collector's address (`host:port`) and what returns the authority (PEM) of its certificate.

    `authority` is called once per connection; None means that the connection is not encrypted. It raises HostError when
    the authority cannot be read.
    """

    endpoint: str
    authority: Callable[[], Awaitable[bytes | None]] = _no_authority

    async def credentials(self) -> ChannelCredentials | None:
        """Return the credentials of an encrypted connection, None for one that is not; raises HostError."""
        authority = await self.authority()
        return None if authority is None else ssl_channel_credentials(authority)


class Tracing(AbstractAsyncContextManager["Tracing"]):
    """Context manager that sends the traces made by `observer`."""

    def __init__(self, name: str, collector: Collector, make: Callable[..., SpanExporter] = OTLPSpanExporter) -> None:
        """Take the name of the service, where traces go, and what makes the exporter."""
        self._provider = TracerProvider(resource=_resource(name), shutdown_on_exit=False)
        self._collector = collector
        self._make = make
        self.observer: Observer = Traces(self._provider.get_tracer("webhooks/handlers"))

    async def __aenter__(self) -> Self:
        credentials = await self._collector.credentials()
        exporter = self._make(endpoint=self._collector.endpoint, insecure=credentials is None, credentials=credentials)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await in_thread(self._provider.shutdown)


class Counted(Protocol):
    """Counts since a moment (`begun`, nanoseconds since 1970), by one process or several."""

    @property
    def begun(self) -> int:
        """Return the moment."""
        ...

    async def gather(self) -> Sequence[Reading]:
        """Return the current counts."""
        ...


class MetricsPush(AbstractAsyncContextManager["MetricsPush"]):
    """Pushes metrics every few seconds, and once more at the end."""

    def __init__(
        self,
        metrics: Counted,
        collector: Collector,
        make: Callable[..., MetricExporter] = OTLPMetricExporter,
    ) -> None:
        """Take what counts, where it goes, and what makes the exporter."""
        self._metrics = metrics
        self._collector = collector
        self._make = make
        self._resource = _resource(_SCOPE)
        self._exporter: MetricExporter | None = None
        self._task: asyncio.Task[None] | None = None
        self._failing = False

    async def __aenter__(self) -> Self:
        credentials = await self._collector.credentials()
        self._exporter = self._make(
            endpoint=self._collector.endpoint, insecure=credentials is None, credentials=credentials
        )
        self._task = asyncio.create_task(self._push_for_ever())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        if self._exporter is not None:
            await self._push(self._exporter)
            await in_thread(self._exporter.shutdown, _LAST_MILLISECONDS)

    async def _push_for_ever(self) -> None:
        while self._exporter is not None:
            await asyncio.sleep(_PUSH_SECONDS)
            await self._push(self._exporter)

    async def _push(self, exporter: MetricExporter) -> None:
        """Send the metrics; what goes wrong is logged, and the next ones are sent all the same."""
        try:
            readings = await self._metrics.gather()
            data = await in_thread(metrics_data, readings, self._resource, self._metrics.begun, time.time_ns())
            result = await in_thread(exporter.export, data, _LAST_MILLISECONDS)
            failing = result.name != "SUCCESS"
        except Exception:
            failing = True
            if not self._failing:
                log.exception("the sending of metrics ran into a bug")
        if failing and not self._failing:  # logged once, not every two seconds
            log.warning("metrics cannot be sent", extra={"fields": {"collector": self._collector.endpoint}})
        self._failing = failing


def metrics_data(readings: Iterable[Reading], resource: Resource, begun: int, now: int) -> MetricsData:
    """Return readings in OpenTelemetry's form; moments are nanoseconds since 1970."""
    scope = ScopeMetrics(
        scope=InstrumentationScope(_SCOPE, __version__),
        metrics=[_metric(reading, begun, now) for reading in readings],
        schema_url="",
    )
    return MetricsData(resource_metrics=[ResourceMetrics(resource=resource, scope_metrics=[scope], schema_url="")])


def _metric(reading: Reading, begun: int, now: int) -> Metric:
    cumulative = AggregationTemporality.CUMULATIVE
    data: Sum | Gauge | Histogram
    match reading.kind:
        case "counter":
            data = Sum(list(_numbers(reading, begun, now)), cumulative, is_monotonic=True)
        case "gauge":
            data = Gauge(list(_numbers(reading, begun, now)))
        case "histogram":
            data = Histogram(list(_spreads(reading, begun, now)), cumulative)
    return Metric(name=reading.name, description=reading.help, unit="", data=data)


def _numbers(reading: Reading, begun: int, now: int) -> Iterator[NumberDataPoint]:
    for labels, value in reading.numbers.items():
        yield NumberDataPoint(dict(zip(reading.labels, labels, strict=True)), begun, now, value)


def _spreads(reading: Reading, begun: int, now: int) -> Iterator[HistogramDataPoint]:
    for labels, spread in reading.spreads.items():
        yield HistogramDataPoint(
            attributes=dict(zip(reading.labels, labels, strict=True)),
            start_time_unix_nano=begun,
            time_unix_nano=now,
            count=sum(spread.counts),
            sum=spread.total,
            bucket_counts=tuple(spread.counts),
            explicit_bounds=tuple(reading.bounds),
            min=None,  # type: ignore[arg-type]  # unknown; None is not sent
            max=None,  # type: ignore[arg-type]
        )


def _resource(name: str) -> Resource:
    return Resource.create({"service.name": name, "service.version": __version__})
