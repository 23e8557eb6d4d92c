"""Lists of several items: all values that a policy lists together, and items of which one has what another lacks.

A list with one item shows neither a value that is missing from an enumeration nor a check of the first item alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, zip_longest
from typing import Final

from pyverno.compiler.equivalence.places import NOTHING, Edit, Site, Steps, put
from pyverno.engine.explain.samples import samples
from pyverno.kube.json import JSON, JSONObject

__all__ = ["item_edits", "list_of_all"]

_LONGEST: Final = 40
_MOST_LISTS: Final = 12


def list_of_all(steps: Steps, constants: Sequence[JSON]) -> tuple[Steps, list[JSON]]:
    """Return the place of the innermost list on a path, and one item for each constant.

    >>> list_of_all(("spec", "ports", 0, "name"), ("web", "metrics-*"))
    (('spec', 'ports'), [{'name': 'web'}, {'name': 'metrics-'}])
    """
    at = max(number for number, step in enumerate(steps) if isinstance(step, int))
    inner = steps[at + 1 :]
    values = [next(samples(each), each) for each in constants[:_LONGEST]]
    return steps[:at], [put({}, inner, each) if inner else each for each in values]


def item_edits(sites: Sequence[Site]) -> Iterator[Edit]:
    """Yield lists whose items differ: a whole one beside an empty one, one with a field beside one without it.

    Each list in turn, the outer ones first; in the plain object, and in the one with all other sites set.
    """
    fields: dict[Steps, list[Site]] = {}
    for site in sites:
        for number, step in enumerate(site.steps[:-1]):
            if isinstance(step, int):
                fields.setdefault(site.steps[:number], []).append(Site(site.steps[number + 1 :], site.values))
    series = [
        [(place, items) for items in _lists(fields[place])] for place in islice(sorted(fields, key=len), _MOST_LISTS)
    ]
    for found in zip_longest(*series):
        for each in found:
            if each is not None:
                yield False, (each,)
                yield True, (each,)


def _lists(fields: Sequence[Site]) -> Iterator[list[JSON]]:
    first, second = (_item(fields, number) for number in range(2))
    singles = [put({}, each.steps, each.values[0]) for each in fields]
    yield from ([first, {}], [{}, first], [first, second], [second, first], singles[:_LONGEST])
    for each, single in zip(fields, singles, strict=True):
        without = put(first, each.steps, NOTHING)
        yield from ([single, {}], [{}, single], [without, first], [first, without])


def _item(fields: Sequence[Site], number: int) -> JSONObject:
    item: JSONObject = {}
    for each in fields:
        item = put(item, each.steps, each.values[number % len(each.values)])
    return item
