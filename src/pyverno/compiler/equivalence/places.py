"""Places of an object and the values that go there: what a steered object differs in."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from pyverno.kube.json import JSON, JSONObject, deep_copy
from pyverno.value import dataclass

__all__ = ["NOTHING", "Edit", "Site", "Steps", "put"]

Steps = tuple[str | int, ...]
Edit = tuple[bool, tuple[tuple[Steps, object], ...]]
"""Values by their places; the flag says that they go into the object that has all sites set."""

NOTHING: Final = object()
"""The value of a field that is left out."""


@dataclass(frozen=True, slots=True)
class Site:
    """A field of a kind and the values that it should have, the `own` ones that policies mention first."""

    steps: Steps
    values: tuple[object, ...]
    own: int = 2


def put(body: JSONObject, steps: Steps, value: object) -> JSONObject:
    """Return a copy with a value at a place, or without the place; maps and lists on the way are made.

    >>> put({"spec": {}}, ("spec", "ports", 0, "port"), 80)
    {'spec': {'ports': [{'port': 80}]}}
    """
    copy = deep_copy(body)
    holder: JSON = copy
    for step, following in pairwise(steps):
        fresh: JSON = [] if isinstance(following, int) else {}
        if isinstance(step, int):
            while len(holder) <= step:
                holder.append(fresh)
            if not isinstance(holder[step], (dict, list)):
                holder[step] = fresh
        elif not isinstance(holder.get(step), (dict, list)):
            holder[step] = fresh
        holder = holder[step]
    last = steps[-1]
    if value is NOTHING:
        if isinstance(last, str) and isinstance(holder, dict):
            holder.pop(last, None)
    elif isinstance(last, int):
        holder[last:] = [deep_copy(value)]
    else:
        holder[last] = deep_copy(value)
    return copy
