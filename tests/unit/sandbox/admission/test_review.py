"""AdmissionReviews: answers that are taken at their word, and those that are not."""

from __future__ import annotations

import pytest

from pyverno.sandbox.admission.review import BadAnswerError, denial, read_answer, review_version


@pytest.mark.parametrize(
    ("versions", "expected"),
    [(("v1",), "v1"), (("v1beta1", "v1"), "v1beta1"), (("v2", "v1"), "v1"), (("v2",), ""), ((), "")],
)
def test_the_first_known_version_is_used(versions, expected):
    """The webhook's own order counts."""
    assert expected == review_version(versions)


def test_allowed_must_be_true():
    """Anything but `true` is a refusal."""
    for value in (False, None, "true", 1):
        body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        answer = read_answer(
            {**body, "response": {"uid": "u", "allowed": value}}, uid="u", version="v1", is_mutating=False
        )
        assert answer.allowed is False


@pytest.mark.parametrize("response", [None, "text", []])
def test_an_answer_needs_a_response(response):
    """A review without a response is no answer."""
    with pytest.raises(BadAnswerError, match="webhook response was absent"):
        read_answer({"response": response}, uid="u", version="v1", is_mutating=True)


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
