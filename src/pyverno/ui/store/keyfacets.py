"""Facets of properties of results and of labels of reports: their keys, and values with counts.

Unlike columns of series these are texts of JSON, so only a bounded number of results is read, as for all counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import orjson

from pyverno.ui.store.filters import Filter
from pyverno.ui.store.selection import BY_RESULT, MOST_COUNTED, Selector

__all__ = ["count_key", "is_key_facet", "list_keys"]

_PROPERTY: Final = "property."
_LABEL: Final = "label."
_SOURCES: Final = {
    _PROPERTY: "SELECT t.text, count(*) FROM ({}) x JOIN texts t ON t.id = x.properties GROUP BY t.text",
    _LABEL: "SELECT t.labels, count(*) FROM ({}) x JOIN reports t ON t.id = x.report GROUP BY t.labels",
}
_MOST_KEYS: Final = 200
_MOST_LOOKED_AT: Final = 5_000
"""Results whose keys are listed: the worst of those selected."""


def is_key_facet(name: str) -> bool:
    """Return whether a facet is that of a property or label: `property.KEY`, `label.KEY`."""
    return name.startswith((_PROPERTY, _LABEL))


def list_keys(selector: Selector, selected: Filter) -> Sequence[str]:
    """Return the facets of the keys that selected results have, the most frequent first."""
    found: list[str] = []
    for prefix in _SOURCES:
        counts = Counter[str]()
        for values, number in _texts(selector, selected, prefix, _MOST_LOOKED_AT):
            counts.update(dict.fromkeys(values, number))
        # lists of facets are written with commas
        found += [f"{prefix}{key}" for key, _ in counts.most_common(_MOST_KEYS) if "," not in key]
    return found


def count_key(selector: Selector, selected: Filter, name: str) -> Mapping[str, int]:
    """Return the values of a property or label with the number of selected results."""
    prefix = _PROPERTY if name.startswith(_PROPERTY) else _LABEL
    key = name.removeprefix(prefix)
    counts = Counter[str]()
    for values, number in _texts(selector, selected, prefix):
        if key in values:
            counts[str(values[key])] += number
    return counts


def _texts(
    selector: Selector, selected: Filter, prefix: str, most: int = MOST_COUNTED
) -> Iterator[tuple[Mapping[str, str], int]]:
    chosen = selector.choose(selected)
    where = chosen.sample or chosen.where
    tables = BY_RESULT if chosen.sample is not None else chosen.tables("worst")
    inner = f"SELECT r.properties, r.report FROM {tables} WHERE {where.sql} LIMIT {most}"
    for text, number in selector.all(_SOURCES[prefix].format(inner), where.values):
        yield (orjson.loads(text) if text else {}), number
