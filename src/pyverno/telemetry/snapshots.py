"""Readings of several processes as one: what each counted is added up, what all of them count alike is counted once.

They go from one process to another as JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pyverno.telemetry.instruments import Departed, Labels, Reading, Spread

__all__ = ["combined", "joined", "packed", "unpacked", "without"]


def combined(processes: Iterable[Iterable[Reading]]) -> list[Reading]:
    """Return the readings of all processes together, by name, in the order in which names come first.

    Numbers are added up, except gauges and what is `is_common`: there the largest counts. Histograms whose buckets are
    other ones than those that came first (the ConfigMap was changed between two starts) are left out.

    >>> one, two = (Reading("a", "", "counter", ("x",), {("1",): number}) for number in (2, 3))
    >>> combined([[one], [two]])[0].numbers
    {('1',): 5}
    """
    found: dict[str, Reading] = {}
    for readings in processes:
        for reading in readings:
            known = found.get(reading.name)
            found[reading.name] = _copy(reading) if known is None else _added(known, reading)
    return list(found.values())


def joined(slices: Iterable[Reading]) -> list[Reading]:
    """Return the slices of each instrument as one reading."""
    found: dict[str, tuple[Reading, dict[Labels, float], dict[Labels, Spread]]] = {}
    for each in slices:
        _, numbers, spreads = found.setdefault(each.name, (each, {}, {}))
        numbers.update(each.numbers)
        spreads.update(each.spreads)
    return [_with(*each) for each in found.values()]


def without(readings: Iterable[Reading], departed: Iterable[Departed]) -> list[Reading]:
    """Return readings without the series of deleted objects."""
    gone = [dict(each) for each in departed]
    return [
        _with(
            reading,
            {labels: value for labels, value in reading.numbers.items() if not _is_gone(reading.labels, labels, gone)},
            {labels: value for labels, value in reading.spreads.items() if not _is_gone(reading.labels, labels, gone)},
        )
        for reading in readings
    ]


def _is_gone(names: Labels, values: Labels, gone: Iterable[Mapping[str, str]]) -> bool:
    if not names:
        return False
    known = dict(zip(names, values, strict=True))
    return any(each.items() <= known.items() for each in gone)


def packed(readings: Iterable[Reading]) -> list[dict[str, Any]]:
    """Return readings as JSON values."""
    return [
        {
            "name": each.name,
            "help": each.help,
            "kind": each.kind,
            "labels": each.labels,
            "isCommon": each.is_common,
            "numbers": [[labels, value] for labels, value in each.numbers.items()],
            "spreads": [[labels, spread.counts, spread.total] for labels, spread in each.spreads.items()],
            "bounds": list(each.bounds),
        }
        for each in readings
    ]


def unpacked(values: Iterable[Mapping[str, Any]]) -> list[Reading]:
    """Return what `packed` was given."""
    return [
        Reading(
            each["name"],
            each["help"],
            each["kind"],
            tuple(each["labels"]),
            {tuple(labels): value for labels, value in each["numbers"]},
            {tuple(labels): _spread(counts, total) for labels, counts, total in each["spreads"]},
            tuple(each["bounds"]),
            is_common=each["isCommon"],
        )
        for each in values
    ]


def _copy(reading: Reading) -> Reading:
    """Return a reading that can be added to."""
    spreads = {labels: spread.copy() for labels, spread in reading.spreads.items()}
    return _with(reading, dict(reading.numbers), spreads)


def _added(known: Reading, more: Reading) -> Reading:
    """Return both together; the first is used up."""
    if known.labels != more.labels or tuple(known.bounds) != tuple(more.bounds):
        return known
    is_largest = known.is_common or known.kind == "gauge"
    numbers = dict(known.numbers)
    for labels, value in more.numbers.items():
        before = numbers.get(labels, 0)
        numbers[labels] = max(before, value) if is_largest else before + value
    spreads = dict(known.spreads)
    for labels, spread in more.spreads.items():
        if labels in spreads:
            spreads[labels].merge(spread)
        else:
            spreads[labels] = spread.copy()
    return _with(known, numbers, spreads)


def _with(reading: Reading, numbers: Mapping[Labels, float], spreads: Mapping[Labels, Spread]) -> Reading:
    return Reading(
        reading.name,
        reading.help,
        reading.kind,
        reading.labels,
        numbers,
        spreads,
        reading.bounds,
        is_common=reading.is_common,
    )


def _spread(counts: list[int], total: float) -> Spread:
    made = Spread(0)
    made.counts, made.total = counts, total
    return made
