"""What the webhook says to those who write cleanup policies, and to those who give an object a time to live.

Whoever serves the paths gives them their names, because two controllers can. This module must never delete anything.
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
    """Return what answers which path; `review_policy` compiles CleanupPolicies (see `DocumentReviews.review`)."""
    return {policy_path: review_policy, TTL_PATH: review_ttl}


async def review_ttl(admission_request: AdmissionRequest) -> AdmissionResponse:
    """Warn about a label that says no time: its object will stay. Nothing is refused."""
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
