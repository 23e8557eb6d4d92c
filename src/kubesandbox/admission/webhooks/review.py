"""AdmissionReview: the request to a webhook, and its response, checked as by the API server.

Versions v1 and v1beta1 of `admission.k8s.io`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping

from kubesandbox.admission.webhooks.hooks import Invocation
from kubesandbox.attributes import Attributes
from kubesandbox.parsing.requests import go_quote
from pyverno.errors import DocumentError, PyvernoError
from pyverno.kube.gvk import GVK, GVR, parse_api_version
from pyverno.kube.json import JSON, JSONObject, decode
from pyverno.kube.status import StatusError
from pyverno.value import dataclass

__all__ = ["JSON_PATCH", "Answer", "BadAnswerError", "admission_review", "denial", "read_answer", "review_version"]

_GROUP = "admission.k8s.io"
_VERSIONS = ("v1", "v1beta1")
_FIRST_ERROR = 400
JSON_PATCH = "JSONPatch"
_BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/\r\n")
_JSON_NAMES: Mapping[type, str] = {
    str: "string",
    bool: "bool",
    int: "number",
    float: "number",
    list: "array",
    dict: "object",
}
_GO_PATCH: Mapping[type, str] = {list: "Patch", dict: "Operation"}
_FIELDS: Mapping[str, tuple[type, str]] = {
    "uid": (str, "types.UID"),
    "allowed": (bool, "bool"),
    "status": (dict, "v1.Status"),
    "patch": (str, "[]uint8"),
    "patchType": (str, "{version}.PatchType"),
    "auditAnnotations": (dict, "map[string]string"),
    "warnings": (list, "[]string"),
}
_STATUS_FIELDS: Mapping[str, tuple[type, str]] = {
    "message": (str, "string"),
    "reason": (str, "v1.StatusReason"),
    "status": (str, "string"),
    "code": (int, "int32"),
    "details": (dict, "v1.StatusDetails"),
}
"""Fields of a response: their type, and its name in Go."""


class BadAnswerError(PyvernoError):
    """An invalid response of a webhook; the text is the API server's."""

    code = "webhook-answer"


@dataclass(frozen=True, slots=True)
class Answer:
    """The response of a webhook; `patch` is in base64, empty without a change."""

    allowed: bool
    status: JSONObject
    patch: str = ""
    patch_type: str = JSON_PATCH
    warnings: tuple[str, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()

    def operations(self) -> JSON:
        """Return the operations of the patch, none without a patch; raises BadAnswerError."""
        if not self.patch:
            return []
        try:
            found = decode(base64.b64decode(self.patch))
        except DocumentError as error:
            raise BadAnswerError(f"received undecodable patch in webhook response: {error.message}") from None
        for value, wanted in ((found, list), *((each, dict) for each in found if isinstance(found, list))):
            if value is not None and not isinstance(value, wanted):
                what = f"{_JSON_NAMES[type(value)]} into Go value of type jsonpatch.{_GO_PATCH[wanted]}"
                raise BadAnswerError(f"received undecodable patch in webhook response: json: cannot unmarshal {what}")
        if found and self.patch_type != JSON_PATCH:
            raise BadAnswerError(f"unsupported patch type {go_quote(self.patch_type)}")
        return found or []


def review_version(versions: tuple[str, ...]) -> str:
    """Return the first of the webhook's versions that this server can write, empty without one."""
    return next((version for version in versions if version in _VERSIONS), "")


def admission_review(
    invocation: Invocation, attributes: Attributes, object: JSON, old: JSON, *, uid: str, version: str
) -> JSONObject:
    """Return the AdmissionReview of a request; `object` and `old` are in the webhook's version."""
    request: JSONObject = {
        "uid": uid,
        "kind": _kind(invocation.kind),
        "resource": _resource(invocation.type.gvr),
        "subResource": attributes.subresource,
        "requestKind": _kind(attributes.kind),
        "requestResource": _resource(attributes.type.gvr),
        "requestSubResource": attributes.subresource,
        "name": attributes.name,
        "namespace": attributes.namespace,
        "operation": attributes.operation.value,
        "userInfo": attributes.user.to_json(),
    }
    request = {key: value for key, value in request.items() if value != ""}
    request |= {"object": object, "oldObject": old, "dryRun": attributes.dry_run, "options": attributes.options}
    return {"kind": "AdmissionReview", "apiVersion": f"{_GROUP}/{version}", "request": request}


def read_answer(body: JSONObject, *, uid: str, version: str, is_mutating: bool) -> Answer:
    """Read the AdmissionReview that a webhook sent back; raises BadAnswerError."""
    response = body.get("response")
    if response is None:
        raise _invalid("webhook response was absent")
    _check_types(response, version)
    if version == "v1":
        _check_v1(body, response, uid)
        _check_patch(response, is_mutating=is_mutating)
    status = response.get("status")
    annotations = response.get("auditAnnotations")
    return Answer(
        allowed=response.get("allowed") is True,
        status=status if isinstance(status, dict) else {},
        patch=str(response.get("patch") or "") if is_mutating else "",
        patch_type=str(response.get("patchType") or "") if version == "v1" else JSON_PATCH,
        warnings=tuple(each for each in response.get("warnings") or () if isinstance(each, str)),
        annotations=tuple(annotations.items()) if isinstance(annotations, dict) else (),
    )


def denial(name: str, status: JSONObject) -> StatusError:
    """Return the refusal of a webhook: its own status, with a text that names the webhook.

    >>> print(denial("a.b.c", {"message": "no", "code": 200}), denial("a.b.c", {}).status)
    admission webhook "a.b.c" denied the request: no 400
    """
    refusal = f"admission webhook {go_quote(name)} denied the request"
    said = status.get("message") or status.get("reason")
    code = status.get("code")
    is_error = isinstance(code, int) and code >= _FIRST_ERROR
    return StatusError.from_json(
        {
            **status,
            "message": f"{refusal}: {said}" if said else f"{refusal} without explanation",
            "code": code if is_error else _FIRST_ERROR,
        }
    )


def _check_types(response: JSON, version: str) -> None:
    """Raise the error of Go's decoder for fields of a wrong type, naming the first of them."""
    if not isinstance(response, dict):
        raise _not_into(response, "AdmissionReview.response", f"{version}.AdmissionResponse")
    for field, value in response.items():
        wanted, name = _FIELDS.get(field, (object, ""))
        if value is not None and type(value) is not wanted and wanted is not object:
            raise _not_into(value, f"AdmissionResponse.response.{field}", name.format(version=version))
    for field in ("auditAnnotations", "warnings"):
        found = response.get(field) or ()
        for value in found.values() if isinstance(found, dict) else found:
            if value is not None and not isinstance(value, str):
                raise _not_into(value, f"AdmissionResponse.response.{field}", "string")
    status = response.get("status") or {}
    for field, value in status.items():
        wanted, name = _STATUS_FIELDS.get(field, (object, ""))
        if value is not None and type(value) is not wanted and wanted is not object:
            raise _not_into(value, f"Status.response.status.{field}", name)
    try:
        base64.b64decode(response.get("patch") or "", validate=True)
    except binascii.Error:
        place = _first_bad(response["patch"])
        raise BadAnswerError(f"failed to call webhook: illegal base64 data at input byte {place}") from None


def _not_into(value: JSON, field: str, kind: str) -> BadAnswerError:
    what = f"{_JSON_NAMES[type(value)]} into Go struct field {field} of type {kind}"
    return BadAnswerError(f"failed to call webhook: json: cannot unmarshal {what}")


def _first_bad(text: str) -> int:
    """Return the offset of the first invalid base64 character, else of the first incomplete group."""
    strange = (index for index, letter in enumerate(text.rstrip("=")) if letter not in _BASE64)
    return next(strange, len(text) - len(text) % 4)


def _check_v1(body: JSONObject, response: JSONObject, uid: str) -> None:
    group, version = parse_api_version(str(body.get("apiVersion") or ""))
    if group == _GROUP and version != "v1":
        # Kubernetes: the decoder fails before the response is evaluated
        why = f"converting ({version}.AdmissionReview) to (v1.AdmissionReview): unknown conversion"
        raise BadAnswerError(f"failed to call webhook: {why}")
    said = response.get("uid", "")
    if said != uid:
        raise _invalid(f"expected response.uid={go_quote(uid)}, got {go_quote(str(said))}")
    kind = str(body.get("kind") or "")
    if (group, version, kind) != (_GROUP, "v1", "AdmissionReview"):
        wanted = f"{_GROUP}/v1, Kind=AdmissionReview"
        raise _invalid(f"expected webhook response of {wanted}, got {group}/{version}, Kind={kind}")


def _check_patch(response: JSONObject, *, is_mutating: bool) -> None:
    text, kind = response.get("patch"), response.get("patchType")
    if not is_mutating:
        if text:
            raise _invalid("validating webhook may not return response.patch")
        if kind is not None:
            raise _invalid("validating webhook may not return response.patchType")
    elif text and kind is None:
        raise _invalid("webhook returned response.patch but not response.patchType")
    elif not text and kind is not None:
        raise _invalid("webhook returned response.patchType but not response.patch")
    elif kind == "":
        raise _invalid('webhook returned invalid response.patchType of ""')


def _invalid(why: str) -> BadAnswerError:
    return BadAnswerError(f"received invalid webhook response: {why}")


def _kind(gvk: GVK) -> JSONObject:
    return {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}


def _resource(gvr: GVR) -> JSONObject:
    return {"group": gvr.group, "version": gvr.version, "resource": gvr.resource}
