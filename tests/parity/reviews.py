"""A request as the AdmissionReview that an API server sends."""

from __future__ import annotations

from pyverno.engine.request import Request
from pyverno.kube.gvk import GVK
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindTable

__all__ = ["review_of"]

_ID = "00000000-0000-0000-0000-000000000000"


def review_of(request: Request, kinds: KindTable) -> JSONObject:
    """Return the AdmissionReview of a request; it contains neither roles nor namespaces."""
    gvk, user = request.gvk, request.user
    info = kinds.find(gvk)
    body: JSONObject = {
        "uid": _ID,
        "kind": _kind(gvk),
        "resource": {
            "group": gvk.group,
            "version": gvk.version,
            "resource": info.plural if info is not None else f"{gvk.kind.lower()}s",
        },
        "subResource": request.subresource,
        "name": request.name,
        "namespace": request.namespace,
        "operation": request.operation.value,
        "object": request.object,
        "oldObject": request.old,
        "dryRun": request.dry_run,
        "userInfo": user.to_json() if not user.is_empty else {},
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": body}


def _kind(gvk: GVK) -> JSONObject:
    return {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}
