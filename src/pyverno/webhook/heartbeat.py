"""The path that the heartbeat goes through: the API server asks it about the lease `kyverno-health`.

That its time stands in the lease shows that webhooks are called. This module must never look at another lease.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from pyverno.kube.admissionreview import AdmissionRequest, AdmissionResponse
from pyverno.webhook.server import Special

__all__ = ["HEALTH_LEASE", "HEARTBEAT_PATH", "LAST_REQUEST", "heartbeat_review"]

HEARTBEAT_PATH = "/verifymutate"
HEALTH_LEASE = "kyverno-health"
LAST_REQUEST = "kyverno.io/last-request-time"


def heartbeat_review(namespace: str, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> Special:
    """Return what answers about leases: that of the heartbeat gets the time, the others pass; `namespace` is ours."""

    async def review(admission_request: AdmissionRequest) -> AdmissionResponse:
        if (admission_request.namespace, admission_request.name) != (namespace, HEALTH_LEASE):
            return AdmissionResponse()
        path = f"/metadata/annotations/{LAST_REQUEST.replace('/', '~1')}"
        return AdmissionResponse(patch=[{"op": "replace", "path": path, "value": now().strftime("%Y-%m-%dT%H:%M:%SZ")}])

    return review
