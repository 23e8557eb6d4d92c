"""Shrinks an object to the smallest one with the same property, part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from pyverno.kube.json import JSON, JSONObject, deep_copy, encode, equal

__all__ = ["Admit", "bare", "smallest", "without_parts"]

_MOST_STEPS: Final = 400
_IDENTITY: Final = (("metadata",), ("metadata", "name"))

Admit = Callable[[JSONObject], JSONObject | None]
"""Returns an object as an API server hands it to admission, decoded and with defaults; None for one that it refuses."""


def smallest(
    admit: Admit, body: JSONObject, shows: Callable[[JSONObject], bool], *, most: int = _MOST_STEPS
) -> JSONObject:
    """Return the object without every part that can be taken away while `shows` holds; a search of `most` steps."""
    steps, progress = 0, True
    while progress and steps < most:
        progress = False
        for path in _paths(body):
            stored = None if path in _IDENTITY else admit(_removed(body, path))
            if stored is None or len(encode(stored)) >= len(encode(body)):
                continue
            steps += 1
            if shows(stored):
                body, progress = stored, True
                break
            if steps >= most:
                break
    return body


def bare(admit: Admit, body: JSONObject) -> JSONObject:
    """Return an admitted object without the fields that an API server fills in: the shortest manifest of it."""
    progress = True
    while progress:
        progress = False
        for path in _paths(body):
            smaller = _removed(body, path)
            if path not in _IDENTITY and equal(admit(smaller), admit(body)):
                body, progress = smaller, True
                break
    return body


def without_parts(body: JSONObject) -> Iterator[JSONObject]:
    """Yield the object without each of its parts in turn, the largest first."""
    return (_removed(body, path) for path in _paths(body) if path not in _IDENTITY)


def _paths(value: JSON, above: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the places that could be taken away, the largest first."""
    items: Iterable[tuple[str | int, JSON]] = ()
    if isinstance(value, dict):
        items = ((key, below) for key, below in value.items() if above or key not in ("apiVersion", "kind"))
    elif isinstance(value, list):
        items = enumerate(value)
    waiting = [((*above, key), below) for key, below in items]
    yield from (path for path, _ in waiting)
    for path, below in waiting:
        yield from _paths(below, path)


def _removed(value: JSONObject, path: tuple[str | int, ...]) -> JSONObject:
    smaller = deep_copy(value)
    holder: JSON = smaller
    for step in path[:-1]:
        holder = holder[step]
    del holder[path[-1]]
    return smaller
