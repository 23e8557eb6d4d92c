"""What counts: counters, gauges and histograms, made to the settings of the ConfigMap, and what they read.

Series are plain numbers in dictionaries, because a request must not pay for more; how they are shown is somebody else's
affair (`exposition`, OpenTelemetry). All of it belongs to one thread. This module must never know what is counted.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeVar

from pyverno.webhook.metricsettings import Exposure, MetricSettings

__all__ = ["DEFAULT_BUCKETS", "Counter", "Gauge", "Histogram", "Instruments", "Look", "Reading", "Spread"]

DEFAULT_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 20, 25, 30)
MOST_SERIES: Final = 20_000
"""Beyond this many sets of labels no new ones are made, so that names in requests can not fill the memory."""

Labels = tuple[str, ...]
Look = Callable[[], Iterable[tuple[Labels, float]]]
"""Looks up the series of a gauge at the moment somebody asks."""
_Instrument = TypeVar("_Instrument", bound="_Series")


class Spread:
    """How values are spread: how many fell into each bucket (the last is for all beyond), and their sum."""

    __slots__ = ("counts", "total")

    def __init__(self, buckets: int) -> None:
        self.counts = [0] * (buckets + 1)
        self.total = 0.0

    def add(self, bounds: Sequence[float], value: float) -> None:
        """Count one value; a bound belongs to the bucket below it."""
        self.counts[bisect_left(bounds, value)] += 1
        self.total += value

    def copy(self) -> Spread:
        """Return what was counted until now."""
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
    """How many series there may still be, and how often there was no room for one more."""

    __slots__ = ("left", "refused")

    def __init__(self, most: int) -> None:
        self.left = most
        self.refused = 0

    def take(self) -> bool:
        if self.left <= 0:
            self.refused += 1
            return False
        self.left -= 1
        return True


class _Series:
    """What all instruments have: a name, labels, and what the settings make of these."""

    def __init__(self, name: str, help: str, labels: Sequence[str], room: _Room) -> None:
        self.name = name
        self.help = help
        self._labels = tuple(labels)
        self._room = room
        self.is_enabled = True
        self._kept: tuple[int, ...] | None = None

    @property
    def labels(self) -> Labels:
        """The labels that the series have."""
        return self._labels if self._kept is None else tuple(self._labels[each] for each in self._kept)

    def expose(self, exposure: Exposure, bounds: Sequence[float]) -> None:
        """Begin anew as the settings say."""
        self.is_enabled = exposure.enabled
        kept = tuple(place for place, label in enumerate(self._labels) if label not in exposure.disabled_labels)
        self._kept = None if len(kept) == len(self._labels) else kept

    def read(self) -> Reading:
        """Return all series."""
        raise NotImplementedError

    def _shown(self, labels: Labels) -> Labels:
        return labels if self._kept is None else tuple(labels[each] for each in self._kept)


class Counter(_Series):
    """Only grows; `add` takes the values of all labels in their order."""

    def __init__(self, name: str, help: str, labels: Sequence[str], room: _Room, *, is_common: bool = False) -> None:
        super().__init__(name, help, labels, room)
        self._is_common = is_common
        self._series: dict[Labels, float] = {}

    def add(self, labels: Labels = (), by: float = 1) -> None:
        """Count."""
        if not self.is_enabled:
            return
        shown = labels if self._kept is None else self._shown(labels)
        before = self._series.get(shown)
        if before is not None or self._room.take():
            self._series[shown] = (before or 0) + by

    def expose(self, exposure: Exposure, bounds: Sequence[float]) -> None:
        """Begin anew as the settings say."""
        super().expose(exposure, bounds)
        self._series = {}

    def read(self) -> Reading:
        """Return all series."""
        return Reading(self.name, self.help, "counter", self.labels, dict(self._series), is_common=self._is_common)


class Gauge(_Series):
    """Is looked up when somebody asks."""

    def __init__(self, name: str, help: str, labels: Sequence[str], room: _Room, look: Look) -> None:
        super().__init__(name, help, labels, room)
        self._look = look

    def read(self) -> Reading:
        """Return all series as they are now."""
        found = {self._shown(labels): value for labels, value in self._look()}
        return Reading(self.name, self.help, "gauge", self.labels, found)


class Histogram(_Series):
    """Counts values by size."""

    def __init__(self, name: str, help: str, labels: Sequence[str], room: _Room) -> None:
        super().__init__(name, help, labels, room)
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
        """Begin anew as the settings say."""
        super().expose(exposure, bounds)
        self.bounds = tuple(sorted(set(exposure.buckets or bounds)))
        self._series = {}

    def read(self) -> Reading:
        """Return all series."""
        return Reading(self.name, self.help, "histogram", self.labels, {}, self._copied(), self.bounds)

    def _copied(self) -> dict[Labels, Spread]:
        return {labels: spread.copy() for labels, spread in self._series.items()}

    def _spread(self, labels: Labels) -> Spread | None:
        if not self.is_enabled:
            return None
        shown = labels if self._kept is None else self._shown(labels)
        found = self._series.get(shown)
        if found is None and self._room.take():
            found = self._series[shown] = Spread(len(self.bounds))
        return found


class Instruments:
    """Makes instruments, and reads them all.

    >>> instruments = Instruments()
    >>> requests = instruments.counter("requests", "Requests.", ("verb",))
    >>> requests.add(("get",))
    >>> next(instruments.read()).numbers
    {('get',): 1}
    """

    def __init__(self, most_series: int = MOST_SERIES) -> None:
        """Begin with none."""
        self._most_series = most_series
        self._room = _Room(most_series)
        self._all: dict[str, _Series] = {}
        self._settings = MetricSettings()

    @property
    def refused(self) -> int:
        """How often something was not counted because there were too many series."""
        return self._room.refused

    def counter(self, name: str, help: str, labels: Sequence[str] = (), *, is_common: bool = False) -> Counter:
        """Return a new counter; its name goes without `_total`."""
        return self._kept(Counter(name, help, labels, self._room, is_common=is_common))

    def gauge(self, name: str, help: str, labels: Sequence[str], look: Look) -> Gauge:
        """Return a new gauge."""
        return self._kept(Gauge(name, help, labels, self._room, look))

    def histogram(self, name: str, help: str, labels: Sequence[str] = ()) -> Histogram:
        """Return a new histogram, with the buckets of the settings."""
        return self._kept(Histogram(name, help, labels, self._room))

    def begin(self, settings: MetricSettings) -> None:
        """Forget all series, and show what the settings say: metrics, labels, buckets."""
        self._settings = settings
        self._room.left = self._most_series
        for instrument in self._all.values():
            self._expose(instrument)

    def read(self) -> Iterator[Reading]:
        """Yield what every instrument that is shown has counted."""
        for instrument in self._all.values():
            if instrument.is_enabled:
                yield instrument.read()

    def _kept(self, instrument: _Instrument) -> _Instrument:
        if instrument.name in self._all:
            raise ValueError(f"there are two instruments of the name {instrument.name}")
        self._all[instrument.name] = instrument
        self._expose(instrument)
        return instrument

    def _expose(self, instrument: _Series) -> None:
        exposure = self._settings.exposures.get(instrument.name) or Exposure()
        instrument.expose(exposure, self._settings.buckets or DEFAULT_BUCKETS)
