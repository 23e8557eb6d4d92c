"""Whole requests and responses in the log, for debugging; the contents of Secrets are removed.

Off unless a flag turns it on.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Final

from pyverno.kube.admissionreview import AdmissionRequest
from pyverno.kube.json import JSON, JSONObject
from pyverno.telemetry.observer import AdmissionOutcome

__all__ = ["PayloadLog", "redacted", "redacted_patch"]

_HIDDEN: Final = "**REDACTED**"
_SECRET_MAPS: Final = ("data", "stringData")
_ANNOTATIONS: Final = "annotations"
log = logging.getLogger("pyverno.webhook")


def redacted(value: JSON) -> JSON:
    """Return a Secret without its values; annotations go as well, because a copy of the object may be in them.

    >>> redacted({"kind": "Secret", "data": {"password": "YQ=="}})
    {'kind': 'Secret', 'data': {'password': '**REDACTED**'}}
    """
    if not isinstance(value, dict):
        return value
    found = {name: _empty(part) if name in _SECRET_MAPS else part for name, part in value.items()}
    metadata = found.get("metadata")
    if isinstance(metadata, dict) and metadata.get(_ANNOTATIONS):
        found["metadata"] = {**metadata, _ANNOTATIONS: _empty(metadata[_ANNOTATIONS])}
    return found


def redacted_patch(patch: Sequence[JSONObject]) -> list[JSONObject]:
    """Return the operations of a patch of a Secret without their values."""
    return [{**each, "value": _HIDDEN} if "value" in each else dict(each) for each in patch]


class PayloadLog:
    """An `Observer` of the webhook server that logs requests with their responses, patches, or both."""

    def __init__(self, *, payloads: bool = False, patches: bool = False) -> None:
        """Take what to log."""
        self._payloads = payloads
        self._patches = patches

    def answered(
        self, admission_request: AdmissionRequest, path: str, outcome: AdmissionOutcome, seconds: float
    ) -> None:
        """Log a request and its response."""
        hides = admission_request.is_secret
        patch = redacted_patch(outcome.answer.patch) if hides else list(outcome.answer.patch)
        if self._patches and patch:
            _log_event("generated patches", {"uid": admission_request.uid, "path": path, "patch": patch})
        if self._payloads:
            request = {**admission_request.request}
            if hides:
                request |= {name: redacted(request[name]) for name in ("object", "oldObject") if name in request}
            fields = {
                "path": path,
                "admission.request": request,
                "admission.response": _response(outcome, patch, hides),
            }
            _log_event("admission request dump", fields)

    def failed(self, path: str, error: BaseException) -> None:
        """Do nothing: the request may not even have been read."""


def _response(outcome: AdmissionOutcome, patch: list[JSONObject], hides: bool) -> JSONObject:
    answer = outcome.answer
    found: JSONObject = {"allowed": answer.allowed, "patch": patch}
    if hides:  # texts of rules may quote what they looked at
        return found
    return {**found, "message": answer.message, "warnings": list(answer.warnings)}


def _empty(value: JSON) -> JSON:
    return dict.fromkeys(value, _HIDDEN) if isinstance(value, Mapping) else _HIDDEN


def _log_event(event: str, fields: Mapping[str, object]) -> None:
    log.info(event, extra={"fields": dict(fields)})
