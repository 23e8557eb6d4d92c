"""The webhook path of the heartbeat: it writes the current time into the lease `kyverno-health`.

A recent time in the lease shows that the API server calls the webhooks.
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
    """Return the review of leases: it sets the time of the heartbeat lease in our `namespace` and allows all others."""

    async def review(admission_request: AdmissionRequest) -> AdmissionResponse:
        if (admission_request.namespace, admission_request.name) != (namespace, HEALTH_LEASE):
            return AdmissionResponse()
        path = f"/metadata/annotations/{LAST_REQUEST.replace('/', '~1')}"
        return AdmissionResponse(patch=[{"op": "replace", "path": path, "value": now().strftime("%Y-%m-%dT%H:%M:%SZ")}])

    return review
