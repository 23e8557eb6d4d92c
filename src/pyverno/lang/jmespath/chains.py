"""Chains of fields and items, the way that nearly every expression begins, as closures.

A chain indexes straight on and takes care only when that fails.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyverno.kube.json import JSON
from pyverno.lang.jmespath.values import Missing, PlaceholderValues, Run
from pyverno.lang.runtime import Runtime

__all__ = ["chain", "item_at", "sequence", "walk_fields"]


def walk_fields(value: JSON, names: tuple[str, ...], *, is_data: bool = False) -> JSON:
    """Follow fields with all the care: a map must have the key, anything else gives null.

    `is_data` means that the names came out of values, so that no error shows them.
    """
    for name in names:
        if not isinstance(value, dict):
            return None
        try:
            value = value[name]
        except KeyError:
            return Missing(name, is_data)
    return value


def _walk_quietly(value: JSON, names: tuple[str, ...]) -> JSON:
    for name in names:
        if value.__class__ is dict:
            value = value.get(name)  # a document that loads lazily is of a subclass
            continue
        if not isinstance(value, dict):
            return None
        try:
            value = value[name]
        except KeyError:
            return None
    return value


def chain(names: tuple[str, ...], *, quiet: bool = False) -> Run:
    """Compile a chain of fields: indexing straight on, and the careful walk when that fails."""
    if quiet and len(names) == 1:
        return _quiet_field(names)
    walk = _walk_quietly if quiet else walk_fields
    make = _CHAINS.get(len(names))
    if make is not None:
        return make(names, walk)

    def follow(value: JSON, _runtime: Runtime, _placeholders: PlaceholderValues) -> JSON:
        return walk(value, names)

    return follow


def _quiet_field(names: tuple[str, ...]) -> Run:
    """Compile the most frequent chain, a single field that may well be missing."""
    (name,) = names

    def field(value: JSON, _runtime: Runtime, _placeholders: PlaceholderValues) -> JSON:
        return value.get(name) if value.__class__ is dict else _walk_quietly(value, names)

    return field


_Walk = Callable[[JSON, tuple[str, ...]], JSON]


def _chain_of_1(names: tuple[str, ...], walk: _Walk) -> Run:
    (first,) = names

    def follow(value: JSON, _runtime: Runtime, _placeholders: PlaceholderValues) -> JSON:
        try:
            return value[first]
        except (KeyError, TypeError):
            return walk(value, names)

    return follow


def _chain_of_2(names: tuple[str, ...], walk: _Walk) -> Run:
    first, second = names

    def follow(value: JSON, _runtime: Runtime, _placeholders: PlaceholderValues) -> JSON:
        try:
            return value[first][second]
        except (KeyError, TypeError):
            return walk(value, names)

    return follow


def _chain_of_3(names: tuple[str, ...], walk: _Walk) -> Run:
    first, second, third = names

    def follow(value: JSON, _runtime: Runtime, _placeholders: PlaceholderValues) -> JSON:
        try:
            return value[first][second][third]
        except (KeyError, TypeError):
            return walk(value, names)

    return follow


def _chain_of_4(names: tuple[str, ...], walk: _Walk) -> Run:
    first, second, third, fourth = names

    def follow(value: JSON, _runtime: Runtime, _placeholders: PlaceholderValues) -> JSON:
        try:
            return value[first][second][third][fourth]
        except (KeyError, TypeError):
            return walk(value, names)

    return follow


_CHAINS: Final = {1: _chain_of_1, 2: _chain_of_2, 3: _chain_of_3, 4: _chain_of_4}


def sequence(runs: tuple[Run, ...]) -> Run:
    """Run closures one after the other, each on the value of the one before; an unknown key ends it."""
    if len(runs) == 1:
        return runs[0]
    if len(runs) == 2:
        first, second = runs

        def pair(value: JSON, runtime: Runtime, placeholders: PlaceholderValues) -> JSON:
            value = first(value, runtime, placeholders)
            return value if value.__class__ is Missing else second(value, runtime, placeholders)

        return pair

    def each_in_turn(value: JSON, runtime: Runtime, placeholders: PlaceholderValues) -> JSON:
        for run in runs:
            value = run(value, runtime, placeholders)
            if value.__class__ is Missing:
                break
        return value

    return each_in_turn


def item_at(value: JSON, index: int) -> JSON:
    """Return an item of a list, counted from its end when negative; null where there is none.

    >>> item_at([1, 2], -1), item_at([1, 2], 2), item_at("ab", 0)
    (2, None, None)
    """
    if isinstance(value, list) and -len(value) <= index < len(value):
        return value[index]
    return None
