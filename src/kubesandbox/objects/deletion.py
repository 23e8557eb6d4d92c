"""Deletion of an object: gone at once, or marked and waiting for its finalizers or its grace period."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from kubesandbox.objects.metadata import metadata_of, timestamp, with_metadata
from kubesandbox.parsing.requests import DeleteOptions
from kubesandbox.types.resources import ResourceType
from kubesandbox.types.strategies import RETURNED_WHEN_DELETED
from pyverno.kube.json import JSONObject
from pyverno.kube.status import conflict

__all__ = ["CRD_FINALIZER", "FOREGROUND", "ORPHAN", "Deletion", "check_preconditions", "deleted", "gone", "is_finished"]

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
CRD_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"

_DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
_POD_GRACE = 30
_ORPHANING = frozenset({"replicationcontrollers"})
"""Resources whose dependents stay unless the deletion says otherwise."""
_FINISHED_PHASES = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True)
class Deletion:
    """The outcome: `body` is the object after it, `is_gone` whether it is taken away, `is_new` whether it changed."""

    body: JSONObject
    is_gone: bool
    is_new: bool = True


def check_preconditions(type: ResourceType, body: JSONObject, options: DeleteOptions) -> None:
    """Raise 409 when the object is not the one that is to be deleted."""
    metadata = metadata_of(body)
    name, uid, version = metadata.get("name", ""), metadata.get("uid"), metadata.get("resourceVersion")
    pairs = (
        ("UID", options.uid, uid, "deleted and then recreated"),
        ("ResourceVersion", options.resource_version, version, "modified"),
    )
    for what, wanted, found, why in pairs:
        if wanted and wanted != found:
            text = f"the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). "
            # upstream names the kind here, not the resource
            raise conflict(type.group, type.kind, name, f"{text}The object might have been {why}")


def deleted(type: ResourceType, body: JSONObject, options: DeleteOptions, now: datetime) -> Deletion:
    """Return the state of an object after a delete request.

    >>> from kubesandbox.types.resources import builtin_table
    >>> secrets = builtin_table("1.35").find("", "v1", "secrets")
    >>> deleted(secrets, {"metadata": {"name": "a"}}, DeleteOptions(), datetime(2026, 1, 1)).is_gone
    True
    """
    metadata = metadata_of(body)
    finalizers = _finalizers(type, metadata, options)
    grace = _grace(type, body, options)
    if metadata.get("deletionTimestamp"):
        return _again(type, body, grace, finalizers)
    after = with_metadata(body, finalizers=finalizers or None)
    if type.key == "namespaces":
        return _namespace(after, now)
    if type.key == _DEFINITIONS:
        return Deletion(with_metadata(_terminating(after, now), deletionTimestamp=timestamp(now)), is_gone=False)
    if not finalizers and not grace:
        return Deletion(after, is_gone=True)
    until = timestamp(now + timedelta(seconds=grace))
    changes: JSONObject = {"deletionTimestamp": until, "deletionGracePeriodSeconds": grace}
    if metadata.get("generation"):
        changes["generation"] = metadata["generation"] + 1
    return Deletion(with_metadata(after, **changes), is_gone=False)


def _again(type: ResourceType, body: JSONObject, grace: int, finalizers: list[str]) -> Deletion:
    """Delete an object that is already being deleted: the grace period can only become shorter."""
    metadata = metadata_of(body)
    left = metadata.get("deletionGracePeriodSeconds") or 0
    after = with_metadata(body, finalizers=finalizers or None)
    if type.key == "namespaces":
        return Deletion(body, is_gone=_is_empty_namespace(body) and not finalizers, is_new=False)
    if grace < left:
        moment = datetime.strptime(metadata["deletionTimestamp"], "%Y-%m-%dT%H:%M:%SZ")  # both are in UTC
        sooner = timestamp(moment - timedelta(seconds=left - grace))
        after = with_metadata(after, deletionTimestamp=sooner, deletionGracePeriodSeconds=grace)
        left = grace
    return Deletion(after, is_gone=not finalizers and not left, is_new=after != body)


def _terminating(crd: JSONObject, now: datetime) -> JSONObject:
    status: JSONObject = crd.get("status") or {}
    condition = {
        "type": "Terminating",
        "status": "True",
        "lastTransitionTime": timestamp(now),
        "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    }
    return {**crd, "status": {**status, "conditions": [*(status.get("conditions") or ()), condition]}}


def _namespace(body: JSONObject, now: datetime) -> Deletion:
    status = {**(body.get("status") or {}), "phase": "Terminating"}
    marked = {**with_metadata(body, deletionTimestamp=timestamp(now)), "status": status}
    return Deletion(marked, is_gone=_is_empty_namespace(body) and not metadata_of(body).get("finalizers"))


def _is_empty_namespace(body: JSONObject) -> bool:
    return not (body.get("spec") or {}).get("finalizers")


def gone(type: ResourceType, body: JSONObject) -> JSONObject:
    """Return the answer to a deletion: a Status of success, or the object, depending on its kind."""
    if type.key in RETURNED_WHEN_DELETED:
        return body
    metadata = metadata_of(body)
    details = {"name": metadata.get("name"), "group": type.group, "kind": type.plural, "uid": metadata.get("uid")}
    status: JSONObject = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return {**status, "details": {key: value for key, value in details.items() if value}}


def is_finished(type: ResourceType, body: JSONObject) -> bool:
    """Return whether an object that is being deleted has nothing left to wait for."""
    metadata = metadata_of(body)
    if not metadata.get("deletionTimestamp") or metadata.get("finalizers"):
        return False
    if type.key == "namespaces":
        return _is_empty_namespace(body)
    return not metadata.get("deletionGracePeriodSeconds")


def _finalizers(type: ResourceType, metadata: JSONObject, options: DeleteOptions) -> list[str]:
    """Return the finalizers as the propagation policy wants them; without one those that the object has count."""
    present: list[str] = metadata.get("finalizers") or []
    if options.orphan is not None:
        policy = "Orphan" if options.orphan else "Background"
    elif options.propagation:
        policy = options.propagation
    elif type.key in _ORPHANING and not {ORPHAN, FOREGROUND} & set(present):
        policy = "Orphan"
    else:
        policy = ""
    kept = [name for name in present if name not in (ORPHAN, FOREGROUND)] if policy else list(present)
    added = {"Orphan": [ORPHAN], "Foreground": [FOREGROUND]}.get(policy, [])
    if type.key == _DEFINITIONS and CRD_FINALIZER not in kept and not metadata.get("deletionTimestamp"):
        added = [CRD_FINALIZER, *added]
    return [*kept, *added]


def _grace(type: ResourceType, body: JSONObject, options: DeleteOptions) -> int:
    """Return for how long (seconds) an object is left to end by itself: only pods that run somewhere are."""
    if type.key != "pods":
        return 0
    spec: JSONObject = body.get("spec") or {}
    phase = (body.get("status") or {}).get("phase")
    if not spec.get("nodeName") or phase in _FINISHED_PHASES:
        return 0
    grace = options.grace
    if grace is None:
        grace = spec.get("terminationGracePeriodSeconds", _POD_GRACE)
    # upstream: a negative period is one second
    return int(grace) if grace >= 0 else 1
