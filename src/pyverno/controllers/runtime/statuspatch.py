"""The merge patch that brings the status of an object to what it should be."""

from __future__ import annotations

from pyverno.kube.json import JSONObject
from pyverno.kube.patch.mergepatch import create_merge_patch

__all__ = ["status_patch"]


def status_patch(found: JSONObject, wanted: JSONObject) -> JSONObject | None:
    """Return the merge patch that makes a status what it should be, None when it is; times of old transitions stay."""
    known = {each.get("type"): each for each in _conditions(found)}
    for condition in _conditions(wanted):
        before = known.get(condition["type"])
        if before is not None and before.get("status") == condition["status"]:
            condition["lastTransitionTime"] = before.get("lastTransitionTime", condition["lastTransitionTime"])
    changed = create_merge_patch({key: found[key] for key in wanted if key in found}, wanted)
    return {"status": changed} if changed else None


def _conditions(status: JSONObject) -> list[JSONObject]:
    found = status.get("conditions") or (status.get("conditionStatus") or {}).get("conditions") or ()
    return [each for each in found if isinstance(each, dict)]
