"""AdmissionReviews: answers that are taken at their word, and those that are not."""

from __future__ import annotations

import pytest

from kubesandbox.admission.webhooks.review import BadAnswerError, denial, read_answer, review_version


@pytest.mark.parametrize(
    ("versions", "expected"),
    [(("v1",), "v1"), (("v1beta1", "v1"), "v1beta1"), (("v2", "v1"), "v1"), (("v2",), ""), ((), "")],
)
def test_the_first_known_version_is_used(versions, expected):
    """The webhook's own order counts."""
    assert expected == review_version(versions)


def read(response, *, version="v1", is_mutating=True):
    body = {"apiVersion": f"admission.k8s.io/{version}", "kind": "AdmissionReview", "response": response}
    return read_answer(body, uid="u", version=version, is_mutating=is_mutating)


def test_allowed_must_be_true():
    """A missing `allowed` is a refusal."""
    for value in (False, None):
        assert read({"uid": "u", "allowed": value}).allowed is False
    assert read({"uid": "u"}).allowed is False
    assert read({"uid": "u", "allowed": True}).allowed is True


def test_an_answer_needs_a_response():
    """A review without a response is no answer."""
    with pytest.raises(BadAnswerError, match="webhook response was absent"):
        read(None)


FIELD = "into Go struct field AdmissionResponse.response"


@pytest.mark.parametrize(
    ("response", "text"),
    [
        ("text", "string into Go struct field AdmissionReview.response of type v1.AdmissionResponse"),
        ([], "array into Go struct field AdmissionReview.response of type v1.AdmissionResponse"),
        ({"allowed": "yes"}, f"string {FIELD}.allowed of type bool"),
        ({"allowed": 1}, f"number {FIELD}.allowed of type bool"),
        ({"uid": 1}, f"number {FIELD}.uid of type types.UID"),
        ({"patch": {}}, f"object {FIELD}.patch of type []uint8"),
        ({"patchType": True}, f"bool {FIELD}.patchType of type v1.PatchType"),
        ({"status": "no"}, f"string {FIELD}.status of type v1.Status"),
        ({"status": {"code": "403"}}, "string into Go struct field Status.response.status.code of type int32"),
        ({"warnings": "careful"}, f"string {FIELD}.warnings of type []string"),
        ({"warnings": [1]}, f"number {FIELD}.warnings of type string"),
        ({"auditAnnotations": {"a": 1}}, f"number {FIELD}.auditAnnotations of type string"),
    ],
)
def test_fields_of_another_type_have_the_error_texts_of_go(response, text):
    """The answer counts as a call that failed."""
    with pytest.raises(BadAnswerError) as refused:
        read(response)
    assert f"failed to call webhook: json: cannot unmarshal {text}" == refused.value.message


@pytest.mark.parametrize("patch", ["!!", "W10=!", "W10", "W10=W"])
def test_patches_that_are_no_base64_are_no_answer(patch):
    """The error comes before the patch is applied."""
    with pytest.raises(BadAnswerError, match="failed to call webhook: illegal base64 data at input byte"):
        read({"uid": "u", "patch": patch, "patchType": "JSONPatch"})


@pytest.mark.parametrize(
    ("patch", "text"),
    [
        ("e30=", "object into Go value of type jsonpatch.Patch"),
        ("IngiCg==", "string into Go value of type jsonpatch.Patch"),
        ("WzFd", "number into Go value of type jsonpatch.Operation"),
    ],
)
def test_patches_are_lists_of_operations(patch, text):
    """Another JSON value cannot be read."""
    answer = read({"uid": "u", "allowed": True, "patch": patch, "patchType": "JSONPatch"})
    with pytest.raises(BadAnswerError) as refused:
        answer.operations()
    assert f"received undecodable patch in webhook response: json: cannot unmarshal {text}" == refused.value.message


def test_a_patch_is_read_when_it_is_wanted():
    """Operations come out of base64 and JSON."""
    body = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": "u", "allowed": True, "patch": "W3sib3AiOiJhZGQifV0=", "patchType": "JSONPatch"},
    }
    answer = read_answer(body, uid="u", version="v1", is_mutating=True)
    assert [{"op": "add"}] == answer.operations()


def test_a_denial_keeps_the_details_of_the_webhook():
    """Reason, details and causes reach the client as they are."""
    status = {"message": "no", "reason": "Teapot", "details": {"name": "q", "causes": [{"message": "c", "field": "f"}]}}
    body = denial("a.b.c", status).to_json()
    assert {"name": "q", "causes": [{"message": "c", "field": "f"}]} == body["details"]
    assert ("Teapot", 400, "Failure") == (body["reason"], body["code"], body["status"])
