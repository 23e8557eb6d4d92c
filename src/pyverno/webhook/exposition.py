"""Readings of instruments in Prometheus' text format, with what the process itself uses.

This module must never open a port.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.utils import floatToGoString

from pyverno.webhook.instruments import Reading

__all__ = ["CONTENT_TYPE", "Exposition"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Exposition:
    """Writes readings as text; a collector of prometheus_client."""

    def __init__(self, read: Callable[[], Iterable[Reading]]) -> None:
        """Take what gives the readings of a moment."""
        self._read = read
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def describe(self) -> Iterable[Metric]:
        """Name nothing beforehand: what there is depends on the settings."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield the readings as families."""
        return map(_family, self._read())

    def to_bytes(self) -> bytes:
        """Return everything as text."""
        return generate_latest(self._registry)


def _family(reading: Reading) -> Metric:
    match reading.kind:
        case "counter":
            counter = CounterMetricFamily(reading.name, reading.help, labels=reading.labels)
            for labels, value in reading.numbers.items():
                counter.add_metric(labels, value)
            return counter
        case "gauge":
            gauge = GaugeMetricFamily(reading.name, reading.help, labels=reading.labels)
            for labels, value in reading.numbers.items():
                gauge.add_metric(labels, value)
            return gauge
    histogram = HistogramMetricFamily(reading.name, reading.help, labels=reading.labels)
    bounds = [str(floatToGoString(bound)) for bound in (*reading.bounds, float("inf"))]  # type: ignore[no-untyped-call]  # it has no hints
    for labels, spread in reading.spreads.items():
        buckets = [(bound, float(count)) for bound, count in zip(bounds, accumulate(spread.counts), strict=True)]
        histogram.add_metric(labels, buckets, spread.total)
    return histogram
