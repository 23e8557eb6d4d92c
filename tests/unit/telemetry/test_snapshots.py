"""Readings of several processes combined into one."""

from __future__ import annotations

import json

from pyverno.telemetry.instruments import Histogram, Instruments, Reading
from pyverno.telemetry.metric import Metric
from pyverno.telemetry.snapshots import combined, packed, unpacked


def read(
    *, asked: float, common: float, value: float, seconds: float, bounds: tuple[float, ...] = (1, 2)
) -> list[Reading]:
    """Return the readings of one process."""
    made = Instruments()
    made.counter(Metric("counter", "asked", "Asked.", ("who", "what"))).add(("a", "\ud800"), asked)
    made.counter(Metric("counter", "changed", "Changed.", is_common=True)).add((), common)
    made.gauge(Metric("gauge", "rules", "Rules.", ()), lambda: [((), value)])
    histogram: Histogram = made.histogram(Metric("histogram", "took", "Took.", ("who",)))
    histogram.bounds = bounds
    histogram.observe(("a",), seconds)
    return list(made.read())


def values(readings: list[Reading]) -> dict[str, object]:
    return {
        each.name: dict(each.numbers)
        or {labels: (spread.counts, spread.total) for labels, spread in each.spreads.items()}
        for each in readings
    }


def test_numbers_are_added_and_what_is_common_is_not() -> None:
    """Counters and histograms are added; gauges and events that every process counts are taken once."""
    one, two = read(asked=1, common=3, value=7, seconds=0.5), read(asked=2, common=4, value=6, seconds=9)
    expected = {
        "asked": {("a", "\ud800"): 3},
        "changed": {(): 4},
        "rules": {(): 7},
        "took": {("a",): ([1, 0, 1], 9.5)},
    }
    assert expected == values(combined([one, two]))
    assert 1 == one[0].numbers["a", "\ud800"], "what was given stays as it was"
    assert [1, 0, 0] == one[3].spreads["a",].counts


def test_series_that_only_one_process_has() -> None:
    """They are included unchanged."""
    empty = Instruments()
    empty.counter(Metric("counter", "asked", "Asked.", ("who", "what")))
    empty.histogram(Metric("histogram", "took", "Took.", ("who",))).bounds = (1, 2)
    one = read(asked=1, common=3, value=7, seconds=0.5)
    assert values(one) == values(combined([empty.read(), one]))
    assert [] == combined([])


def test_histograms_with_other_buckets_are_not_mixed() -> None:
    """The ConfigMap changed between the starts of two processes: the first one's readings are used."""
    one, two = (read(asked=1, common=1, value=1, seconds=1, bounds=bounds) for bounds in ((1, 2), (1, 3)))
    assert values(one)["took"] == values(combined([one, two]))["took"]


def test_readings_go_from_process_to_process_as_json() -> None:
    """The round trip is lossless, even for a lone surrogate."""
    readings = read(asked=1, common=3, value=7, seconds=0.5)
    back = unpacked(json.loads(json.dumps(packed(readings))))
    assert values(readings) == values(back)
    assert [(each.name, each.help, each.kind, each.labels, each.is_common) for each in readings] == [
        (each.name, each.help, each.kind, each.labels, each.is_common) for each in back
    ]
