"""The Prometheus text format: it equals the output of prometheus_client, which can parse it."""

from __future__ import annotations

import asyncio

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from pyverno.telemetry.exposition import render_text
from pyverno.telemetry.instruments import Instruments
from pyverno.telemetry.metric import Metric
from pyverno.telemetry.metrics import Metrics
from tests.unit.telemetry.test_observer import QUESTION, outcome

ODD = ["plain", 'quo"te', "back\\slash", "line\nbreak", "", "ü", "{,}=\t"]


def test_the_text_is_that_of_prometheus_client() -> None:
    """Labels sort before and after that of the bucket; as in Go, there are no creation timestamps."""
    registry = CollectorRegistry()
    counter = Counter("a", "A.", ("z", "b"), registry=registry)
    gauge = Gauge("g", "G.", registry=registry)
    histogram = Histogram("h", "H.", ("z", "b"), registry=registry, buckets=(0.1, 1, 2.5))
    made = Instruments()
    own_counter = made.counter(Metric("counter", "a", "A.", ("z", "b")))
    made.gauge(Metric("gauge", "g", "G.", ()), lambda: [((), 1.5)])
    own_histogram = made.histogram(Metric("histogram", "h", "H.", ("z", "b")))
    own_histogram.bounds = (0.1, 1, 2.5)
    gauge.set(1.5)
    for word in ODD:
        counter.labels(word, "x").inc(2)
        own_counter.add((word, "x"), 2)
        for value in (0.1, 0.5, 9):
            histogram.labels(word, "x").observe(value)
            own_histogram.observe((word, "x"), value)
    theirs = generate_latest(registry).decode().splitlines()
    assert [line for line in theirs if "_created" not in line] == render_text(made.read()).splitlines()


def test_everything_that_is_written_can_be_read() -> None:
    """Label values survive unchanged."""
    made = Instruments()
    counter = made.counter(Metric("counter", "a", "A.", ("b",)))
    for word in ODD:
        counter.add((word,))
    [family] = text_string_to_metric_families(render_text(made.read()))
    assert ODD == [sample.labels["b"] for sample in family.samples]


@pytest.mark.parametrize("text", ["half \ud800 of a character"])
def test_a_lone_surrogate_does_not_stop_the_metrics(text: str) -> None:
    """Names in requests may contain a lone surrogate."""
    metrics = Metrics()
    metrics.reconciled(text)
    assert b"half \\\\ud800 of" in metrics.exposition()


def test_a_scrape_in_pieces_is_the_same() -> None:
    """Metrics may change between the pieces."""
    metrics = Metrics()
    metrics.answered(QUESTION, "/validate/fail", outcome(), 0.02)

    def own(text: bytes) -> list[bytes]:
        return [line for line in text.splitlines() if line.startswith(b"kyverno_")]

    assert own(metrics.exposition()) == own(b"".join(asyncio.run(metrics.scrape())))
