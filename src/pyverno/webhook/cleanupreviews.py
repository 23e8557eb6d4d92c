"""Validation of cleanup policies and of the TTL label.

The server that mounts the reviews chooses their paths, because two controllers can serve them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from pyverno.engine.request import User
from pyverno.errors import HostError, ValueSyntaxError
from pyverno.kube.admissionreview import AdmissionRequest, AdmissionResponse
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSON
from pyverno.kube.status import StatusError
from pyverno.kube.time.gotime import GoTime
from pyverno.kube.time.ttl import parse_ttl
from pyverno.webhook.server import Special

# trust rows: time-to-live

__all__ = ["TTL_LABEL", "TTL_PATH", "cleanup_paths", "review_ttl"]

TTL_LABEL = "cleanup.kyverno.io/ttl"
TTL_PATH = "/verifyttl"


MayDelete = Callable[[User, GVR, str, str], Awaitable[bool]]
"""Returns whether a user may delete an object of a resource, by namespace and name; raises HostError, StatusError."""


def cleanup_paths(
    policy_path: str, review_policy: Special, may_delete: MayDelete | None = None
) -> Mapping[str, Special]:
    """Return the reviews by path; `review_policy` compiles CleanupPolicies (see `DocumentReviews.review`).

    With `may_delete`, the label is a deletion: who may not delete an object may not give it a time to live.
    """

    async def review(admission_request: AdmissionRequest) -> AdmissionResponse:
        denial = await _deny_deletion(admission_request, may_delete) if may_delete is not None else ""
        if denial:  # guard: a time to live is a deletion
            return AdmissionResponse(allowed=False, message=denial)
        return await review_ttl(admission_request)

    return {policy_path: review_policy, TTL_PATH: review}


async def _deny_deletion(admission_request: AdmissionRequest, may_delete: MayDelete) -> str:
    """Return why a user may not set the label, "" if that is allowed: an own, new object is anybody's to limit."""
    label = _label(admission_request.object)
    if admission_request.operation != "UPDATE" or label in (None, _label(admission_request.old_object)):
        return ""
    written, info = admission_request.request.get("resource"), admission_request.request.get("userInfo")
    resource = written if isinstance(written, dict) else {}
    gvr = GVR(*(str(resource.get(key) or "") for key in ("group", "version", "resource")))
    user = User.from_json(info if isinstance(info, dict) else {})
    try:
        if await may_delete(user, gvr, admission_request.namespace, admission_request.name):
            return ""
    except (HostError, StatusError) as error:
        return f"whether user `{user.username}` may delete the object cannot be checked at the moment: {error.message}"
    where = f" in namespace `{admission_request.namespace}`" if admission_request.namespace else ""
    return (
        f"user `{user.username}` cannot delete {gvr.resource} `{admission_request.name}`{where}, "
        f"so cannot set label {TTL_LABEL}, which deletes it"
    )


def _label(body: JSON) -> object:
    metadata = body.get("metadata") if isinstance(body, dict) else None
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    return labels.get(TTL_LABEL) if isinstance(labels, dict) else None


async def review_ttl(admission_request: AdmissionRequest) -> AdmissionResponse:
    """Warn about a TTL label without a valid time, whose object is never deleted. Nothing is rejected."""
    text = _label(admission_request.object)
    if not isinstance(text, str):
        return AdmissionResponse()
    try:
        parse_ttl(text, GoTime(0))
    except ValueSyntaxError as error:
        problem = f"{TTL_LABEL} label value cannot be parsed as any recognizable format ({error.message})"
        return AdmissionResponse(warnings=(problem,))
    return AdmissionResponse()
