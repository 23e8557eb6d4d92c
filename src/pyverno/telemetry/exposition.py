"""Readings of instruments in Prometheus' text format, with what the process itself uses.

A large cluster has tens of thousands of lines, which are read again and again while requests wait: this is written for
speed, and yields piece by piece. This module must never open a port.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import Final

from prometheus_client import CollectorRegistry, Metric, ProcessCollector, generate_latest
from prometheus_client.registry import Collector

from pyverno.sinks.records import label_value
from pyverno.telemetry.instruments import Labels, Reading

__all__ = ["Exposition", "render_text"]

_TOTAL: Final = "_total"
_OF_ONE: Final = frozenset({"process_start_time_seconds", "process_max_fds"})
"""Metrics that are not added up over processes."""


class Exposition:
    """Writes readings and the metrics of the process as text."""

    def __init__(self, others: Callable[[], Iterable[int]] = tuple) -> None:
        """Take a function that returns the process ids whose resource use is added to that of this process.

        Nothing is read before the first scrape.
        """
        self._process = CollectorRegistry()
        self._process.register(_Together(others))

    def to_bytes(self, readings: Iterable[Reading]) -> bytes:
        """Return everything as text."""
        return b"".join(self.pieces(readings))

    def pieces(self, readings: Iterable[Reading]) -> Iterator[bytes]:
        """Yield the same piece by piece; readings of the same name follow each other."""
        name = ""
        for reading in readings:
            lines = "".join(_lines(reading, is_first=reading.name != name))
            name = reading.name
            yield lines.encode(errors="backslashreplace")
        yield generate_latest(self._process)


class _Together(Collector):
    """The use of the machine by this process and others: time, memory, files."""

    def __init__(self, others: Callable[[], Iterable[int]]) -> None:
        self._others = others

    def collect(self) -> Iterable[Metric]:
        """Return the metrics of this process, with what the others use added; one that is gone uses nothing."""
        found = list(ProcessCollector(registry=None).collect())
        more = [
            metric for pid in self._others() for metric in ProcessCollector(pid=_always(pid), registry=None).collect()
        ]
        for metric in found:
            same = sum(each.samples[0].value for each in more if each.name == metric.name)
            if metric.name not in _OF_ONE:
                metric.samples = [each._replace(value=each.value + same) for each in metric.samples]
        return found


def _always(pid: int) -> Callable[[], int]:
    return lambda: pid


def render_text(readings: Iterable[Reading]) -> str:
    """Return readings as text, labels in the order of their names.

    >>> print(render_text([Reading("a", "What.", "counter", ("y", "x"), {("1", 'b"'): 2})]), end="")
    # HELP a_total What.
    # TYPE a_total counter
    a_total{x="b\\"",y="1"} 2.0
    """
    return "".join(line for reading in readings for line in _lines(reading))


def _lines(reading: Reading, *, is_first: bool = True) -> Iterator[str]:
    name = reading.name.removesuffix(_TOTAL) + _TOTAL if reading.kind == "counter" else reading.name
    if is_first:
        yield f"# HELP {name} {reading.help}\n# TYPE {name} {reading.kind}\n"
    if reading.kind == "histogram":
        yield from _histogram(reading)
        return
    write = _writer(reading.labels)
    for labels, value in reading.numbers.items():
        shown = write(labels)
        yield f"{name}{{{shown}}} {float(value)}\n" if shown else f"{name} {float(value)}\n"


def _histogram(reading: Reading) -> Iterator[str]:
    name = reading.name
    before = tuple(label for label in reading.labels if label < "le")
    # the label of the bucket has its place among the others
    write_before, write_after = _writer(reading.labels, before), _writer(reading.labels, before, others=True)
    write = _writer(reading.labels)
    bounds = [f'le="{float(bound)}"' for bound in reading.bounds] + ['le="+Inf"']
    for labels, spread in reading.spreads.items():
        first, last, shown = write_before(labels), write_after(labels), write(labels)
        begin = f"{name}_bucket{{{first}," if first else f"{name}_bucket{{"
        end = f",{last}}}" if last else "}"
        counts = list(accumulate(spread.counts))
        for bound, count in zip(bounds, counts, strict=True):
            yield f"{begin}{bound}{end} {float(count)}\n"
        place = f"{{{shown}}}" if shown else ""
        yield f"{name}_count{place} {float(counts[-1])}\n{name}_sum{place} {float(spread.total)}\n"


def _writer(names: Labels, chosen: Labels | None = None, *, others: bool = False) -> Callable[[Labels], str]:
    """Return what writes the values of labels with their names, of those chosen or of the others only."""
    places = sorted(range(len(names)), key=names.__getitem__)
    if chosen is not None:
        places = [place for place in places if (names[place] in chosen) is not others]
    parts = [(place, f'{names[place]}="') for place in places]
    return lambda values: ",".join([f'{begin}{label_value(values[place])}"' for place, begin in parts])
