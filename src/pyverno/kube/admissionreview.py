"""AdmissionReview as bytes: decoded into an `AdmissionRequest`, and encoded with its response.

A malformed review is refused with an HTTP status before any policy sees it.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import orjson

from pyverno.errors import DocumentError, PyvernoError, UsageError
from pyverno.kube.gvk import GVK
from pyverno.kube.json import JSON, JSONObject, decode, encode
from pyverno.kube.jsonscan import has_more_values

__all__ = [
    "MAX_MESSAGE_BYTES",
    "MAX_VALUES",
    "AdmissionRequest",
    "AdmissionResponse",
    "BadReviewError",
    "check_request",
    "check_user",
    "read_admission_review",
    "request_of",
    "shortened",
]

MAX_VALUES: Final = 1_000_000
"""JSON values that one AdmissionReview may have: each becomes an object in memory many times its size."""

MAX_MESSAGE_BYTES: Final = 8 * 1024
"""Longest text of a denial, in UTF-8; what policies quote of an object could be as long as the object."""

_CONTENT_TYPE = "application/json"
_OPERATIONS = ("CREATE", "UPDATE", "DELETE", "CONNECT")
_MAPS = ("kind", "resource", "userInfo")


class BadReviewError(PyvernoError):
    """A body that is no AdmissionReview; `status` is the HTTP code of the refusal."""

    code = "bad-review"

    def __init__(self, status: int, message: str) -> None:
        """Take the HTTP code and the text for the caller."""
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """An AdmissionReview with a request: API version, uid, the `request` as it came, and its size in bytes."""

    api_version: str
    uid: str
    request: JSONObject
    size: int = 0
    kind: GVK = field(init=False, repr=False, compare=False)
    """Group, version and kind of the object, after a conversion that the API server made to fit a rule."""
    operation: str = field(init=False, repr=False, compare=False)
    """CREATE, UPDATE, DELETE or CONNECT."""
    subresource: str = field(init=False, repr=False, compare=False)
    """The subresource that is written, or the empty text."""
    namespace: str = field(init=False, repr=False, compare=False)
    """The namespace of the request, empty for cluster-scoped resources."""
    name: str = field(init=False, repr=False, compare=False)
    """The name of the object; on CREATE that of the object itself, which may still be missing."""

    def __post_init__(self) -> None:
        """Read once what every part of a review asks for."""
        request, put = self.request, object.__setattr__
        kind = request.get("kind") or {}
        put(self, "kind", GVK(_read_text(kind, "group"), _read_text(kind, "version"), _read_text(kind, "kind")))
        put(self, "operation", _read_text(request, "operation"))
        put(self, "subresource", _read_text(request, "subResource"))
        put(self, "namespace", _read_text(request, "namespace"))
        put(self, "name", _read_text(request, "name"))

    @property
    def object(self) -> JSON:
        """The new object, None on DELETE."""
        return self.request.get("object")

    @property
    def old_object(self) -> JSON:
        """The object as it was, None on CREATE."""
        return self.request.get("oldObject")

    @property
    def is_dry_run(self) -> bool:
        """Return whether nothing may be done for this request."""
        return self.request.get("dryRun") is True

    @property
    def is_secret(self) -> bool:
        """Return whether the request concerns a Secret, by the kind of the request or of the object in any group."""
        kinds = [self.kind.kind]
        kinds += [str(each.get("kind")) for each in (self.object, self.old_object) if isinstance(each, dict)]
        return any(kind.lower() == "secret" for kind in kinds)


@dataclass(frozen=True, slots=True)
class AdmissionResponse:
    """The response to a request: the verdict, the text of a denial, warnings, the RFC 6902 patch, audit annotations."""

    allowed: bool = True
    message: str = ""
    warnings: Sequence[str] = ()
    patch: Sequence[JSONObject] = ()
    audit_annotations: Mapping[str, str] = field(default_factory=dict)

    def to_bytes(self, admission_request: AdmissionRequest) -> bytes:
        """Write the AdmissionReview that answers a request.

        >>> request = AdmissionRequest("admission.k8s.io/v1", "1", {})
        >>> AdmissionResponse(allowed=False, message="no").to_bytes(request).decode()
        '{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"1","allowed":false,\
"status":{"metadata":{},"status":"Failure","message":"no"}}}'
        """
        response: JSONObject = {"uid": admission_request.uid, "allowed": self.allowed}
        if not self.allowed:
            response["status"] = {"metadata": {}, "status": "Failure", "message": shortened(self.message)}
        if self.patch and self.allowed:
            response["patchType"] = "JSONPatch"
            response["patch"] = base64.b64encode(encode(list(self.patch)).encode()).decode()
        if self.warnings:
            response["warnings"] = list(self.warnings)
        if self.audit_annotations:
            response["auditAnnotations"] = dict(self.audit_annotations)
        review = {"kind": "AdmissionReview", "apiVersion": admission_request.api_version, "response": response}
        try:
            return orjson.dumps(review)
        except TypeError:  # a lone surrogate in a text, or something else that only the exact writer can write
            return encode(review).encode()


def shortened(message: str) -> str:
    """Return the text of a denial as a response carries it; a text that is too long is cut and marked.

    >>> shortened("no"), len(shortened("n" * 9000)), shortened("n" * 9000)[-23:]
    ('no', 8192, 'n (cut off, 9000 bytes)')
    """
    raw = message.encode("utf-8", "surrogatepass")
    if len(raw) <= MAX_MESSAGE_BYTES:
        return message
    end = f" (cut off, {len(raw)} bytes)"
    return raw[: MAX_MESSAGE_BYTES - len(end)].decode("utf-8", "ignore") + end


def read_admission_review(body: bytes, content_type: str = _CONTENT_TYPE) -> AdmissionRequest:
    """Read an AdmissionReview of version v1 (or v1beta1, which has the same form).

    Raises BadReviewError: 415 for another content type, 400 for an empty body or one without a request, 417 for what
    is not JSON (the codes are Kyverno's), 413 for too many values.

    >>> body = b'{"kind": "AdmissionReview", "request": {"uid": "1", "operation": "CREATE", "kind": {"kind": "Pod"}}}'
    >>> read_admission_review(body).kind.kind
    'Pod'
    """
    if content_type != _CONTENT_TYPE:
        raise BadReviewError(415, "invalid Content-Type")
    if not body:
        raise BadReviewError(400, "empty body")
    if has_more_values(body, MAX_VALUES):
        raise BadReviewError(413, f"the admission review has more than {MAX_VALUES} values")
    try:
        review = decode(body)
    except DocumentError as error:
        raise BadReviewError(417, f"failed to decode body as admission review: {error.message}") from None
    if not isinstance(review, dict) or review.get("kind", "AdmissionReview") != "AdmissionReview":
        raise BadReviewError(417, "failed to decode body as admission review: it is no AdmissionReview object")
    request = review.get("request")
    if request is None:
        raise BadReviewError(400, "the admission review holds no request")
    try:
        _check(request)
    except UsageError as error:
        raise BadReviewError(400, error.message) from None
    return AdmissionRequest(
        _read_text(review, "apiVersion") or "admission.k8s.io/v1", request["uid"], request, len(body)
    )


def request_of(review: JSON) -> JSONObject:
    """Return the `request` of a decoded AdmissionReview, or the value itself, which may be a bare AdmissionRequest.

    Raises UsageError for a value that is no object.

    >>> request_of({"request": {"operation": "CREATE"}}) == request_of({"operation": "CREATE"})
    True
    """
    request = review.get("request", review) if isinstance(review, dict) else review
    if not isinstance(request, dict):
        raise UsageError("`request` must be an object")
    return request


def check_request(request: JSON) -> None:
    """Raise UsageError for a request with parts of a type that the API does not have; nothing is guessed later."""
    if not isinstance(request, dict):
        raise UsageError("`request` must be an object")
    if request.get("operation") not in _OPERATIONS:
        raise UsageError("`request.operation` must be one of CREATE, UPDATE, DELETE, CONNECT")
    for name in _MAPS:
        if not isinstance(request.get(name, {}), dict):
            raise UsageError(f"`request.{name}` must be an object")
    for name in ("name", "namespace", "subResource"):
        if not isinstance(request.get(name, ""), str):
            raise UsageError(f"`request.{name}` must be a text")
    for name in ("object", "oldObject"):
        if not isinstance(request.get(name), dict | None):
            raise UsageError(f"`request.{name}` must be an object or null")
    check_user(request.get("userInfo", {}))


def _check(request: JSON) -> None:
    """Raise UsageError for a request that cannot be answered: also its uid is needed for that."""
    check_request(request)
    if not isinstance(request.get("uid"), str) or not request["uid"]:
        raise UsageError("`request.uid` must be a text that is not empty")


def check_user(info: JSON) -> None:
    """Raise UsageError for a user whose groups could be misread, since roles and exclusions depend on them.

    >>> check_user({"username": "alice", "groups": ["devs"]})
    """
    if not isinstance(info, dict):
        raise UsageError("`request.userInfo` must be an object")
    if not _are_texts(info.get("groups")):
        raise UsageError("`request.userInfo.groups` must be a list of texts")
    extra = info.get("extra")
    if extra is not None and not (isinstance(extra, dict) and all(_are_texts(values) for values in extra.values())):
        raise UsageError("`request.userInfo.extra` must be a map of lists of texts")


def _are_texts(value: JSON) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(item, str) for item in value))


def _read_text(source: Mapping[str, JSON], key: str) -> str:
    found = source.get(key)
    return found if isinstance(found, str) else ""
