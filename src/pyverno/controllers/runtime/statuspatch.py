"""Merge patches for the status of an object, which keep conditions of other controllers."""

from __future__ import annotations

from typing import Final

from pyverno.kube.json import JSONObject
from pyverno.kube.patch.mergepatch import create_merge_patch

__all__ = ["BACKGROUND_CONDITION", "conditions_of", "status_patch", "with_background_condition"]

BACKGROUND_CONDITION: Final = "BackgroundWorkDone"
"""The condition of policies that the background controller writes; all others are the admission controller's."""


def status_patch(found: JSONObject, wanted: JSONObject) -> JSONObject | None:
    """Return the merge patch that makes a status what it should be, None when it is; times of old transitions stay."""
    wanted = _with_conditions(wanted, _with_old_times(conditions_of(wanted), conditions_of(found)))
    changed = create_merge_patch({key: found[key] for key in wanted if key in found}, wanted)
    return {"status": changed} if changed else None


def with_background_condition(wanted: JSONObject, condition: JSONObject | None) -> JSONObject:
    """Return the status of a policy with a condition of the background controller; None leaves it out.

    >>> ready = {"type": "Ready", "status": "True"}
    >>> with_background_condition({"conditions": [ready]}, {"type": BACKGROUND_CONDITION})["conditions"]
    [{'type': 'Ready', 'status': 'True'}, {'type': 'BackgroundWorkDone'}]
    """
    kept = [each for each in conditions_of(wanted) if each.get("type") != BACKGROUND_CONDITION]
    return _with_conditions(wanted, kept if condition is None else [*kept, condition])


def conditions_of(status: JSONObject) -> list[JSONObject]:
    """Return the conditions of a status, at either place."""
    found = status.get("conditions") or (status.get("conditionStatus") or {}).get("conditions") or ()
    return [each for each in found if isinstance(each, dict)]


def _with_conditions(status: JSONObject, conditions: list[JSONObject]) -> JSONObject:
    """Return a status with these conditions, at the place where it holds them."""
    if "conditionStatus" in status:
        return {**status, "conditionStatus": {**status["conditionStatus"], "conditions": conditions}}
    return {**status, "conditions": conditions} if conditions or "conditions" in status else status


def _with_old_times(conditions: list[JSONObject], before: list[JSONObject]) -> list[JSONObject]:
    """Return conditions; one whose status did not change keeps the time of its last transition."""
    times = {(each.get("type"), each.get("status")): each.get("lastTransitionTime") for each in before}
    found = []
    for each in conditions:
        time = times.get((each["type"], each["status"]))
        found.append(each if time is None else {**each, "lastTransitionTime": time})
    return found
