"""What the status of a Job may say: counts, how it has ended, and that none of this is taken back."""

from __future__ import annotations

from typing import Final

from kubesandbox.objects.fielderrors import duplicate, invalid, required
from kubesandbox.validation.check import Errors, not_negative
from pyverno.kube.json import JSONObject
from pyverno.kube.status import FieldError

__all__ = ["job_status"]

_ENDS: Final = (("Complete", "SuccessCriteriaMet"), ("Failed", "FailureTarget"))


def job_status(body: JSONObject, old: JSONObject, errors: Errors) -> None:
    """Check the status of a Job."""
    status, before = body.get("status") or {}, old.get("status") or {}
    spec = body.get("spec") or {}
    _counts(status, errors)
    _noted(status, errors)
    _indexes(spec, status, errors)
    _ends(status, errors)
    is_indexed = spec.get("completionMode") == "Indexed"
    for field in ("succeeded",) * (not is_indexed) + ("failed",):
        count = status.get(field) or 0
        if count < (before.get(field) or 0):
            errors.append(invalid(f"status.{field}", count, f"cannot decrease the {field} counter"))
    _kept(status, before, errors)


def _counts(status: JSONObject, errors: Errors) -> None:
    for field in ("active", "succeeded", "failed", "ready", "terminating"):
        if status.get(field) is not None:
            not_negative(status[field], f"status.{field}", errors)
    ready = status.get("ready")
    if ready is not None and ready > (status.get("active") or 0):
        errors.append(invalid("status.ready", ready, "cannot set more ready pods than active"))


def _noted(status: JSONObject, errors: Errors) -> None:
    seen: set[str] = set()
    for kind in ("succeeded", "failed"):
        for index, uid in enumerate((status.get("uncountedTerminatedPods") or {}).get(kind) or ()):
            path = f"status.uncountedTerminatedPods.{kind}[{index}]"
            if not uid:
                errors.append(invalid(path, uid, "must not be empty"))
            elif uid in seen:
                errors.append(duplicate(path, uid))
            seen.add(uid)


def _indexes(spec: JSONObject, status: JSONObject, errors: Errors) -> None:
    done, lost = status.get("completedIndexes"), status.get("failedIndexes")
    if done and spec.get("completionMode") != "Indexed":
        what = "cannot set non-empty completedIndexes when non-indexed completion mode"
        errors.append(invalid("status.completedIndexes", done, what))
    if lost is not None and spec.get("backoffLimitPerIndex") is None:
        what = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        errors.append(invalid("status.failedIndexes", lost, what))


def _is_true(status: JSONObject, kind: str) -> bool:
    conditions = status.get("conditions") or ()
    return any(item.get("type") == kind and item.get("status") == "True" for item in conditions)


def _ends(status: JSONObject, errors: Errors) -> None:
    is_complete, has_failed = _is_true(status, "Complete"), _is_true(status, "Failed")
    if is_complete and has_failed:
        errors.append(_refused("cannot set Complete=True and Failed=true conditions"))
    ended = status.get("completionTime")
    if ended is not None and not is_complete:
        what = "cannot set completionTime when there is no Complete=True condition"
        errors.append(invalid("status.completionTime", ended, what))
    if is_complete and ended is None:
        errors.append(required("status.completionTime", "completionTime is required for Complete jobs"))
    for end, announced in reversed(_ENDS):
        if _is_true(status, end) and not _is_true(status, announced):
            errors.append(_refused(f"cannot set {end}=True condition without the {announced}=true condition"))
    if (is_complete or has_failed) and status.get("startTime") is None:
        errors.append(required("status.startTime", "startTime is required for finished job"))


def _refused(what: str) -> FieldError:
    return FieldError("status.conditions", "Invalid value", what)


def _kept(status: JSONObject, before: JSONObject, errors: Errors) -> None:
    """Check that how a Job has ended is not taken back."""
    for end, announced in _ENDS:
        for kind in (end, announced):
            if _is_true(before, kind) and not _is_true(status, kind):
                errors.append(_refused(f"cannot disable the terminal {kind}=True condition"))
