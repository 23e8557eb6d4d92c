"""Validation of cleanup policies and of the TTL label.

The server that mounts the reviews chooses their paths, because two controllers can serve them.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyverno.errors import ValueSyntaxError
from pyverno.kube.admissionreview import AdmissionRequest, AdmissionResponse
from pyverno.kube.time.gotime import GoTime
from pyverno.kube.time.ttl import parse_ttl
from pyverno.webhook.server import Special

__all__ = ["TTL_LABEL", "TTL_PATH", "cleanup_paths", "review_ttl"]

TTL_LABEL = "cleanup.kyverno.io/ttl"
TTL_PATH = "/verifyttl"


def cleanup_paths(policy_path: str, review_policy: Special) -> Mapping[str, Special]:
    """Return the reviews by path; `review_policy` compiles CleanupPolicies (see `DocumentReviews.review`)."""
    return {policy_path: review_policy, TTL_PATH: review_ttl}


async def review_ttl(admission_request: AdmissionRequest) -> AdmissionResponse:
    """Warn about a TTL label without a valid time, whose object is never deleted. Nothing is rejected."""
    found = admission_request.object if isinstance(admission_request.object, dict) else {}
    text = ((found.get("metadata") or {}).get("labels") or {}).get(TTL_LABEL)
    if not isinstance(text, str):
        return AdmissionResponse()
    try:
        parse_ttl(text, GoTime(0))
    except ValueSyntaxError as error:
        problem = f"{TTL_LABEL} label value cannot be parsed as any recognizable format ({error.message})"
        return AdmissionResponse(warnings=(problem,))
    return AdmissionResponse()
