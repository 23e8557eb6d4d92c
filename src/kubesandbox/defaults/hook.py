"""Hooks: functions that fill in one value of one type in place.

A hook may change the dictionary that it receives; nested values are shared and must be copied before a change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from pyverno.kube.json import JSON, JSONObject

__all__ = ["Hook", "Hooks", "absent", "in_order", "zero"]

Hook: TypeAlias = Callable[[JSONObject], None]
Hooks: TypeAlias = Mapping[str, Hook]
"""Hooks by the names of the definitions that they are for."""


def absent(**values: JSON) -> Hook:
    """Return a hook that sets missing fields.

    >>> body = {"replicas": 0}
    >>> absent(replicas=1, paused=False)(body)
    >>> body
    {'replicas': 0, 'paused': False}
    """
    rows = tuple(values.items())

    def fill(body: JSONObject) -> None:
        for key, value in rows:
            if body.get(key) is None:
                body[key] = dict(value) if isinstance(value, dict) else value

    return fill


def zero(**values: JSON) -> Hook:
    """Return a hook that sets fields that are missing or have the zero value of their type.

    >>> body = {"type": ""}
    >>> zero(type="Opaque")(body)
    >>> body
    {'type': 'Opaque'}
    """
    rows = tuple(values.items())

    def fill(body: JSONObject) -> None:
        for key, value in rows:
            if not body.get(key):
                body[key] = value

    return fill


def in_order(*hooks: Hook) -> Hook:
    """Return one hook that runs several."""

    def fill(body: JSONObject) -> None:
        for hook in hooks:
            hook(body)

    return fill
