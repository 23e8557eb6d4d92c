"""Conditions in the status of objects: read, set, taken away."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from kubesandbox.controllers.clock import stamp
from pyverno.kube.json import JSONObject

__all__ = ["condition", "find_condition", "has_condition", "set_condition", "without_condition"]


def condition(kind: str, status: str, now: datetime, *, reason: str = "", message: str = "") -> JSONObject:
    """Return a condition that changes now."""
    found: JSONObject = {"type": kind, "status": status, "lastTransitionTime": stamp(now)}
    if reason:
        found["reason"] = reason
    if message or reason:
        found["message"] = message
    return found


def find_condition(conditions: Sequence[JSONObject], kind: str) -> JSONObject | None:
    """Return the condition of a type."""
    return next((item for item in conditions if item.get("type") == kind), None)


def has_condition(conditions: Sequence[JSONObject], kind: str, status: str = "True") -> bool:
    """Return whether the condition of a type has a status."""
    found = find_condition(conditions, kind)
    return found is not None and found.get("status") == status


def set_condition(conditions: Sequence[JSONObject], new: JSONObject) -> list[JSONObject]:
    """Return the conditions with one set; it keeps its place, and its time of transition while its status stays.

    >>> old = {"type": "Ready", "status": "True", "lastTransitionTime": "2030-01-01T00:00:00Z"}
    >>> set_condition([old], {**old, "lastTransitionTime": "2031-01-01T00:00:00Z", "reason": "Fine"})
    [{'type': 'Ready', 'status': 'True', 'lastTransitionTime': '2030-01-01T00:00:00Z', 'reason': 'Fine'}]
    """
    old = find_condition(conditions, new["type"])
    if old is None:
        return [*conditions, new]
    if old.get("status") == new["status"] and "lastTransitionTime" in old:
        new = {**new, "lastTransitionTime": old["lastTransitionTime"]}
    return [new if item is old else item for item in conditions]


def without_condition(conditions: Sequence[JSONObject], kind: str) -> list[JSONObject]:
    """Return the conditions without one type."""
    return [item for item in conditions if item.get("type") != kind]
