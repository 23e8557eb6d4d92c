"""Instruments: counters, gauges and histograms by the settings of the ConfigMap, and their readings.

Series are plain numbers in dictionaries, because a request must not pay for more; how they are shown is decided
elsewhere (`exposition`, OpenTelemetry). What finds no room counts in a series of its instrument whose labels are all
`_other`, so that sums stay right; series of what was deleted go a while later. All of it belongs to one thread.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, Literal, TypeVar

from pyverno.telemetry.metric import Metric
from pyverno.telemetry.metricsettings import Exposure, MetricSettings

__all__ = [
    "DEFAULT_BUCKETS",
    "OTHER",
    "Counter",
    "Departed",
    "Gauge",
    "Histogram",
    "Instruments",
    "Look",
    "Reading",
    "Spread",
]

DEFAULT_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 20, 25, 30)
MAX_SERIES: Final = 20_000
"""Beyond this many sets of labels no new ones are made, so that names in requests cannot fill the memory."""

_MAX_DEPARTED: Final = 10_000
OTHER: Final = "_other"
"""The value of every label of a series that stands for all that found no room."""
GRACE_SECONDS: Final = 120.0
"""How long the series of deleted objects are still exported, so that scrapes see their last values."""
SLICE: Final = 100
"""Series that are read at a time: about a millisecond."""

Labels = tuple[str, ...]
Departed = tuple[tuple[str, str], ...]
"""Labels and their values that all series of something deleted have."""
Look = Callable[[], Iterable[tuple[Labels, float]]]
"""Looks up the series of a gauge when metrics are read."""
_Instrument = TypeVar("_Instrument", bound="_Series")


class Spread:
    """The distribution of values: how many fell into each bucket (the last is for all beyond), and their sum."""

    __slots__ = ("counts", "total")

    def __init__(self, buckets: int) -> None:
        self.counts = [0] * (buckets + 1)
        self.total = 0.0

    def add(self, bounds: Sequence[float], value: float) -> None:
        """Count one value; a bound belongs to the bucket below it."""
        self.counts[bisect_left(bounds, value)] += 1
        self.total += value

    def copy(self) -> Spread:
        """Return the current counts."""
        made = Spread(0)
        made.counts, made.total = self.counts[:], self.total
        return made

    def merge(self, other: Spread, times: int = 1) -> None:
        """Count what another one of the same buckets has counted."""
        for position, count in enumerate(other.counts):
            self.counts[position] += count * times
        self.total += other.total * times


@dataclass(frozen=True, slots=True)
class Reading:
    """All series of one instrument at one moment; `bounds` are the upper limits of a histogram's buckets.

    What `is_common` all processes of a replica count alike, because each of them sees it happen.
    """

    name: str
    help: str
    kind: Literal["counter", "gauge", "histogram"]
    labels: Labels
    numbers: Mapping[Labels, float] = field(default_factory=dict)
    spreads: Mapping[Labels, Spread] = field(default_factory=dict)
    bounds: Sequence[float] = ()
    is_common: bool = False


class _Room:
    """The number of series that may still be added, the number rejected, and the callback when there is no room."""

    __slots__ = ("left", "make_room", "refused")

    def __init__(self, most: int, make_room: Callable[[], None]) -> None:
        self.left = most
        self.refused = 0
        self.make_room = make_room

    def take(self) -> bool:
        if self.left <= 0:
            self.make_room()
        if self.left <= 0:
            self.refused += 1
            return False
        self.left -= 1
        return True


class _Series(ABC):
    """The common part of all instruments: a name, and labels after the settings are applied."""

    def __init__(self, metric: Metric, room: _Room) -> None:
        self.name = metric.name
        self._metric = metric
        self._labels = metric.labels
        self._room = room
        self.is_enabled = True
        self._register: tuple[int, ...] | None = None

    @property
    def labels(self) -> Labels:
        """The labels that the series have."""
        return self._labels if self._register is None else tuple(self._labels[each] for each in self._register)

    def expose(self, exposure: Exposure, bounds: Sequence[float]) -> None:
        """Reset the series and apply the settings."""
        self.is_enabled = exposure.enabled
        kept = tuple(place for place, label in enumerate(self._labels) if label not in exposure.disabled_labels)
        self._register = None if len(kept) == len(self._labels) else kept

    @abstractmethod
    def read(self) -> Reading:
        """Return all series."""

    def slices(self) -> Iterator[Reading]:
        """Yield all series, some at a time, which other work may change in between; one reading at least."""
        yield self.read()

    @abstractmethod
    def forget(self, departed: Mapping[Labels, Collection[Labels]]) -> None:
        """Drop the series that have these values of these labels."""

    def _departed(self, series: Iterable[Labels], departed: Mapping[Labels, Collection[Labels]]) -> Iterator[Labels]:
        names = self.labels
        wanted = [
            (tuple(names.index(label) for label in labels), values)
            for labels, values in departed.items()
            if set(labels) <= set(names)
        ]
        for found in series if wanted else ():
            if any(tuple([found[place] for place in places]) in values for places, values in wanted):
                yield found

    def _other(self) -> Labels:
        return (OTHER,) * len(self.labels)

    def _keep_labels(self, labels: Labels) -> Labels:
        return labels if self._register is None else tuple(labels[each] for each in self._register)


class Counter(_Series):
    """Only grows; `add` takes the values of all labels in their order."""

    def __init__(self, metric: Metric, room: _Room) -> None:
        super().__init__(metric, room)
        self._series: dict[Labels, float] = {}

    def add(self, labels: Labels = (), by: float = 1) -> None:
        """Count."""
        if not self.is_enabled:
            return
        shown = labels if self._register is None else self._keep_labels(labels)
        before = self._series.get(shown)
        if before is None and not self._room.take():
            shown = self._other()
            before = self._series.get(shown)
        self._series[shown] = (before or 0) + by

    def expose(self, exposure: Exposure, bounds: Sequence[float]) -> None:
        """Reset the series and apply the settings."""
        super().expose(exposure, bounds)
        self._series = {}

    def read(self) -> Reading:
        """Return all series."""
        return self._read_series(dict(self._series))

    def slices(self) -> Iterator[Reading]:
        """Yield all series, some at a time."""
        for part in _parts(self._series):
            yield self._read_series({labels: self._series[labels] for labels in part if labels in self._series})

    def forget(self, departed: Mapping[Labels, Collection[Labels]]) -> None:
        """Drop the series that have these values of these labels."""
        for labels in list(self._departed(self._series, departed)):
            del self._series[labels]
            self._room.left += 1

    def _read_series(self, numbers: Mapping[Labels, float]) -> Reading:
        return Reading(self.name, self._metric.help, "counter", self.labels, numbers, is_common=self._metric.is_common)


class Gauge(_Series):
    """A gauge whose values are looked up when metrics are read."""

    def __init__(self, metric: Metric, room: _Room, look: Look) -> None:
        super().__init__(metric, room)
        self._look = look

    def forget(self, departed: Mapping[Labels, Collection[Labels]]) -> None:
        """Keep nothing to drop: a gauge is computed whenever it is read."""

    def read(self) -> Reading:
        """Return all series as they are now."""
        found = {self._keep_labels(labels): value for labels, value in self._look()}
        return self._read_series(found)

    def slices(self) -> Iterator[Reading]:
        """Yield all series, some at a time, looked up one after the other."""
        looked, seen = iter(self._look()), set[Labels]()
        while True:
            part = {self._keep_labels(labels): value for labels, value in islice(looked, SLICE)}
            if not part and seen:
                return
            yield self._read_series({labels: value for labels, value in part.items() if labels not in seen})
            if not part:
                return
            seen |= part.keys()

    def _read_series(self, numbers: Mapping[Labels, float]) -> Reading:
        return Reading(self.name, self._metric.help, "gauge", self.labels, numbers)


class Histogram(_Series):
    """Counts values by size."""

    def __init__(self, metric: Metric, room: _Room) -> None:
        super().__init__(metric, room)
        self.bounds: tuple[float, ...] = DEFAULT_BUCKETS
        self._series: dict[Labels, Spread] = {}

    def observe(self, labels: Labels, value: float) -> None:
        """Count one value."""
        spread = self._spread(labels)
        if spread is not None:
            spread.add(self.bounds, value)

    def merge(self, labels: Labels, other: Spread, times: int = 1) -> None:
        """Count what a spread over the same bounds has counted."""
        spread = self._spread(labels)
        if spread is not None:
            spread.merge(other, times)

    def expose(self, exposure: Exposure, bounds: Sequence[float]) -> None:
        """Reset the series and apply the settings."""
        super().expose(exposure, bounds)
        self.bounds = tuple(sorted(set(exposure.buckets or bounds)))
        self._series = {}

    def read(self) -> Reading:
        """Return all series."""
        return self._read_series({labels: spread.copy() for labels, spread in self._series.items()})

    def slices(self) -> Iterator[Reading]:
        """Yield all series, some at a time."""
        for part in _parts(self._series):
            yield self._read_series({labels: self._series[labels].copy() for labels in part if labels in self._series})

    def forget(self, departed: Mapping[Labels, Collection[Labels]]) -> None:
        """Drop the series that have these values of these labels."""
        for labels in list(self._departed(self._series, departed)):
            del self._series[labels]
            self._room.left += 1

    def _read_series(self, spreads: Mapping[Labels, Spread]) -> Reading:
        return Reading(self.name, self._metric.help, "histogram", self.labels, {}, spreads, self.bounds)

    def _spread(self, labels: Labels) -> Spread | None:
        if not self.is_enabled:
            return None
        shown = labels if self._register is None else self._keep_labels(labels)
        found = self._series.get(shown)
        if found is None and not self._room.take():
            shown = self._other()
            found = self._series.get(shown)
        if found is None:
            found = self._series[shown] = Spread(len(self.bounds))
        return found


def _parts(series: Iterable[Labels]) -> Iterator[list[Labels]]:
    """Yield labels, some at a time; one part at least, which may be empty."""
    known = list(series)
    for start in range(0, max(len(known), 1), SLICE):
        yield known[start : start + SLICE]


class Instruments:
    """Makes instruments, and reads them all.

    >>> instruments = Instruments()
    >>> requests = instruments.counter(Metric("counter", "requests", "Requests.", ("verb",)))
    >>> requests.add(("get",))
    >>> next(instruments.read()).numbers
    {('get',): 1}
    """

    def __init__(
        self,
        max_series: int = MAX_SERIES,
        on_full: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start empty; `on_full` is called when the first series is rejected."""
        self._max_series = max_series
        self._on_full = on_full
        self._clock = clock
        self._is_full = False
        self._leaving: dict[Departed, float] = {}
        self.departed: list[Departed] = []
        """Dropped series, for readers that keep readings; the reader empties it."""
        self._room = _Room(max_series, self._make_room)
        self._all: dict[str, _Series] = {}
        self._settings = MetricSettings()

    @property
    def refused(self) -> int:
        """The number of values counted as `_other` because there were too many series."""
        return self._room.refused

    def counter(self, metric: Metric) -> Counter:
        """Return a new counter."""
        return self._register(Counter(metric, self._room))

    def gauge(self, metric: Metric, look: Look) -> Gauge:
        """Return a new gauge."""
        return self._register(Gauge(metric, self._room, look))

    def histogram(self, metric: Metric) -> Histogram:
        """Return a new histogram, with the buckets of the settings."""
        return self._register(Histogram(metric, self._room))

    def begin(self, settings: MetricSettings) -> None:
        """Reset all series, and apply the settings of metrics, labels and buckets."""
        self._settings = settings
        self._room.left = self._max_series
        self._is_full = False
        for instrument in self._all.values():
            self._expose(instrument)

    def depart(self, departed: Departed) -> None:
        """Drop the series with these label values after a while: their object was deleted."""
        self._leaving.setdefault(departed, self._clock())

    def stay(self, departed: Departed) -> None:
        """Keep the series after all: their object exists again."""
        self._leaving.pop(departed, None)

    def sweep(self) -> None:
        """Drop the series of objects deleted a while ago."""
        before = self._clock() - GRACE_SECONDS
        due = [each for each, since in self._leaving.items() if since <= before]
        if not due:
            return
        values: dict[Labels, set[Labels]] = {}
        for each in due:
            del self._leaving[each]
            values.setdefault(tuple(label for label, _ in each), set()).add(tuple(value for _, value in each))
        for instrument in self._all.values():
            instrument.forget(values)
        self.departed = [*self.departed, *due][-_MAX_DEPARTED:]

    def read(self) -> Iterator[Reading]:
        """Yield what every instrument that is shown has counted."""
        self.sweep()
        for instrument in self._all.values():
            if instrument.is_enabled:
                yield instrument.read()

    def slices(self) -> Iterator[Reading]:
        """Yield the same, a few series at a time: other work may run in between."""
        self.sweep()
        for instrument in tuple(self._all.values()):
            if instrument.is_enabled:
                yield from instrument.slices()

    def _make_room(self) -> None:
        self.sweep()
        if self._room.left <= 0 and not self._is_full:
            self._is_full = True
            self._on_full()

    def _register(self, instrument: _Instrument) -> _Instrument:
        if instrument.name in self._all:
            raise ValueError(f"there are two instruments of the name {instrument.name}")
        self._all[instrument.name] = instrument
        self._expose(instrument)
        return instrument

    def _expose(self, instrument: _Series) -> None:
        exposure = self._settings.exposures.get(instrument.name) or Exposure()
        instrument.expose(exposure, self._settings.buckets or DEFAULT_BUCKETS)
