"""AdmissionReview as bytes: what is read, what is refused, and what is written back."""

from __future__ import annotations

import base64

import orjson
import pytest

from pyverno.kube.admissionreview import AdmissionRequest, AdmissionResponse, BadReviewError, read_admission_review
from pyverno.kube.gvk import GVK

REQUEST = {
    "uid": "u-1",
    "operation": "UPDATE",
    "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
    "namespace": "default",
    "name": "web",
    "subResource": "status",
    "object": {"kind": "Deployment"},
    "oldObject": {"kind": "Deployment", "x": 1},
    "dryRun": True,
}


def review(**changes: object) -> bytes:
    """Return a review whose request is changed."""
    return orjson.dumps({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": REQUEST | changes})


def test_a_question_shows_the_request() -> None:
    """Every field that routes and filters look at."""
    admission_request = read_admission_review(review())
    assert ("u-1", GVK("apps", "v1", "Deployment"), "UPDATE") == (
        admission_request.uid,
        admission_request.kind,
        admission_request.operation,
    )
    assert ("default", "web", "status", True) == (
        admission_request.namespace,
        admission_request.name,
        admission_request.subresource,
        admission_request.is_dry_run,
    )
    assert ({"kind": "Deployment"}, {"kind": "Deployment", "x": 1}) == (
        admission_request.object,
        admission_request.old_object,
    )


REFUSED = [
    (b"", "application/json", 400, "empty body"),
    (b"{}", "text/plain", 415, "invalid Content-Type"),
    (b"{}", "application/json; charset=utf-8", 415, "invalid Content-Type"),
    (b"{}", "application/json", 400, "the admission review holds no request"),
    (b'{"request": null}', "application/json", 400, "the admission review holds no request"),
    (b'{"request": []}', "application/json", 400, "`request` must be an object"),
    (b'{"kind": "Pod", "request": {}}', "application/json", 417, "it is no AdmissionReview object"),
    (b"[]", "application/json", 417, "it is no AdmissionReview object"),
    (b"{", "application/json", 417, "failed to decode body as admission review"),
    (b"\xff\xfe", "application/json", 417, "failed to decode body as admission review"),
    (b"[" * 20_000, "application/json", 417, "failed to decode body as admission review"),
    (review(uid=""), "application/json", 400, "`request.uid` must be a text that is not empty"),
    (review(uid=7), "application/json", 400, "`request.uid` must be a text that is not empty"),
    (review(operation="PATCH"), "application/json", 400, "`request.operation` must be one of"),
    (review(operation=["CREATE"]), "application/json", 400, "`request.operation` must be one of"),
    (review(kind="Pod"), "application/json", 400, "`request.kind` must be an object"),
    (review(userInfo=[]), "application/json", 400, "`request.userInfo` must be an object"),
    (review(object=[1]), "application/json", 400, "`request.object` must be an object or null"),
    (review(oldObject="x"), "application/json", 400, "`request.oldObject` must be an object or null"),
    (review(userInfo={"groups": "a"}), "application/json", 400, "`request.userInfo.groups` must be a list of texts"),
    (review(userInfo={"extra": {"a": 1}}), "application/json", 400, "`request.userInfo.extra` must be a map of lists"),
    (review(namespace=1), "application/json", 400, "`request.namespace` must be a text"),
]


@pytest.mark.parametrize(("body", "content_type", "status", "text"), REFUSED)
def test_what_is_no_review_is_refused(body: bytes, content_type: str, status: int, text: str) -> None:
    """Each malformed review gets a specific status code before any policy is evaluated."""
    with pytest.raises(BadReviewError) as refused:
        read_admission_review(body, content_type)
    assert status == refused.value.status
    assert text in str(refused.value)


def test_an_answer_carries_everything_that_the_api_server_reads() -> None:
    """Patch in base64 with its type, warnings, audit annotations, and the uid of the question."""
    patch = [{"op": "add", "path": "/metadata/labels", "value": {"a": "<b>"}}]
    answer = AdmissionResponse(warnings=["careful"], patch=patch, audit_annotations={"k": "v"})
    written = orjson.loads(answer.to_bytes(AdmissionRequest("admission.k8s.io/v1beta1", "u-2", {})))
    assert "admission.k8s.io/v1beta1" == written["apiVersion"]
    response = written["response"]
    assert patch == orjson.loads(base64.b64decode(response.pop("patch")))
    assert {
        "uid": "u-2",
        "allowed": True,
        "patchType": "JSONPatch",
        "warnings": ["careful"],
        "auditAnnotations": {"k": "v"},
    } == response


def test_a_denial_has_a_message_and_no_patch() -> None:
    """Kyverno's denials have neither code nor reason; a patch next to one would be refused."""
    answer = AdmissionResponse(allowed=False, message="no \ud800 way", patch=[{"op": "remove", "path": "/a"}])
    response = orjson.loads(answer.to_bytes(AdmissionRequest("admission.k8s.io/v1", "u", {})))["response"]
    assert {"metadata": {}, "status": "Failure", "message": "no \ufffd way"} == response["status"]
    assert "patch" not in response
