"""Instruments: series beyond the limit, and series of deleted objects."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import pytest

from pyverno.telemetry import instruments as module
from pyverno.telemetry.exposition import Exposition, render_text
from pyverno.telemetry.instruments import GRACE_SECONDS, OTHER, SLICE, Instruments
from pyverno.telemetry.metric import Metric
from pyverno.telemetry.metrics import Metrics
from pyverno.telemetry.snapshots import combined, joined, without


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_what_finds_no_room_counts_as_other_so_that_sums_stay_right() -> None:
    """The limit covers counters and histograms, and its first excess is reported once."""
    told: list[bool] = []
    made = Instruments(max_series=2, on_full=lambda: told.append(True))
    requests, times = (
        made.counter(Metric("counter", "a", "", ("x", "y"))),
        made.histogram(Metric("histogram", "b", "", ("x",))),
    )
    for word in ("1", "1", "2", "3"):
        requests.add((word, "y"))
        times.observe((word,), 1)
    assert {("1", "y"): 2, (OTHER, OTHER): 2} == requests.read().numbers
    assert {("1",): 2, (OTHER,): 2} == {labels: sum(spread.counts) for labels, spread in times.read().spreads.items()}
    assert (4, [True]) == (made.refused, told)


def test_too_many_series_are_one_line_and_a_gauge(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The sum over all namespaces stays correct."""
    monkeypatch.setattr(module, "MAX_SERIES", 10)
    metrics = Metrics()
    metrics.instruments._max_series = metrics.instruments._room.left = 10
    with caplog.at_level(logging.WARNING):
        for number in range(500):
            metrics.queried("get", "pods", f"namespace-{number}")
    found = {reading.name: reading for reading in metrics.read()}
    assert 500 == sum(found["kyverno_client_queries"].numbers.values())
    assert {(): 490} == found["kyverno_metrics_series_refused"].numbers
    assert ["there are too many series of metrics: new ones are counted as _other"] == caplog.messages


def test_series_of_what_was_deleted_go_a_while_later() -> None:
    """They are exposed for a grace period, then free their place; a returning object keeps its series."""
    clock = Clock()
    made = Instruments(max_series=5, clock=clock)
    results = made.counter(Metric("counter", "results", "", ("policy", "rule", "namespace")))
    times = made.histogram(Metric("histogram", "times", "", ("policy",)))
    other = made.counter(Metric("counter", "other", "", ("controller",)))
    results.add(("p", "a", "n"))
    results.add(("p", "b", "n"))
    results.add(("q", "a", "m"))
    times.observe(("p",), 1)
    other.add(("p",))
    made.depart((("policy", "p"), ("rule", "a")))
    made.depart((("policy", "q"),))
    made.stay((("policy", "q"),))
    clock.now = GRACE_SECONDS - 1
    assert 3 == len(next(made.read()).numbers)
    clock.now += 1
    assert {("p", "b", "n"), ("q", "a", "m")} == next(made.read()).numbers.keys()
    made.depart((("policy", "p"),))
    made.depart((("namespace", "m"),))
    clock.now += GRACE_SECONDS
    results.add(("r", "a", "n"))
    assert [{("r", "a", "n"): 1}, {}, {("p",): 1}] == [
        dict(each.numbers) or dict.fromkeys(each.spreads, 1) for each in made.read()
    ]
    assert 3 == made._room.left
    assert 3 == len(made.departed)


def test_departed_series_make_room_when_there_is_none() -> None:
    """The limit triggers the removal, without a scrape."""
    clock = Clock()
    made = Instruments(max_series=1, clock=clock)
    counter = made.counter(Metric("counter", "a", "", ("namespace",)))
    for number in range(50):
        counter.add((f"n{number}",))
        made.depart((("namespace", f"n{number}"),))
        clock.now += GRACE_SECONDS
    assert 0 == made.refused


def test_slices_are_small_and_together_are_everything() -> None:
    """Slices cover counters, histograms and gauges; their text equals that of a whole reading."""
    made = Instruments()
    counter, histogram = (
        made.counter(Metric("counter", "a", "A.", ("x",))),
        made.histogram(Metric("histogram", "b", "B.", ("x",))),
    )
    made.gauge(Metric("gauge", "g", "G.", ("x",)), lambda: [((str(number),), number) for number in range(250)])
    made.counter(Metric("counter", "nothing", "N.", ("x",)))
    for number in range(250):
        counter.add((str(number),), number)
        histogram.observe((str(number),), number)
    parts = list(made.slices())
    assert SLICE == max(len(part.numbers) + len(part.spreads) for part in parts)
    assert render_text(made.read()) == render_text(joined(parts))
    process = Exposition()
    text = b"".join(process.pieces(made.slices())).decode()
    assert text.startswith(render_text(made.read()))


def test_series_that_change_while_slices_are_read_do_no_harm() -> None:
    """Series may be added and removed between slices."""
    clock = Clock()
    made = Instruments(clock=clock)
    counter = made.counter(Metric("counter", "a", "A.", ("x",)))
    for number in range(3 * SLICE):
        counter.add((str(number),))
    slices: Iterator[module.Reading] = made.slices()
    next(slices)
    counter.add(("new",))
    made.depart((("x", str(2 * SLICE)),))
    clock.now = GRACE_SECONDS
    made.sweep()
    assert 2 * SLICE - 1 == sum(len(each.numbers) for each in slices)


def test_concurrent_scrapes_share_one_reading() -> None:
    """A cancelled scrape does not end the shared one; the next scrape starts anew."""

    async def run() -> None:
        metrics = Metrics()
        for number in range(5 * SLICE):
            metrics.queried("get", "pods", str(number))
        turns = 0

        async def turn() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        turning = asyncio.create_task(turn())
        asked = [asyncio.create_task(metrics.scrape()) for _ in range(4)]
        await asyncio.sleep(0)
        asked.pop().cancel()
        found = await asyncio.gather(*asked)
        turning.cancel()
        assert found[0] is found[1] is found[2]
        assert turns > 5
        assert found[0] is not await metrics.scrape()

    asyncio.run(run())


def test_ended_processes_do_not_restore_deleted_series() -> None:
    """Their last readings lose the series of deleted objects."""
    made = Instruments()
    made.counter(Metric("counter", "a", "A.", ("policy", "x"))).add(("p", "1"), 3)
    made.counter(Metric("counter", "a2", "A.", ("x",))).add(("1",), 3)
    made.histogram(Metric("histogram", "b", "B.", ("policy",))).observe(("p",), 1)
    made.counter(Metric("counter", "c", "C.")).add()
    gone = without(combined([made.read()]), [(("policy", "p"),), (("policy", "q"), ("x", "1"))])
    assert [{}, {("1",): 3}, {}, {(): 1}] == [dict(each.numbers) for each in gone]
    assert [{}] * 4 == [dict(each.spreads) for each in gone]
