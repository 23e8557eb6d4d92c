"""Requests without confidential values: Secrets, last-applied annotations, selected fields."""

from __future__ import annotations

import pytest

from pyverno.errors import UsageError
from pyverno.kube.admissionreview import AdmissionRequest
from pyverno.kube.json import JSON, encode
from pyverno.telemetry.redaction import HIDDEN, Redaction, parse_field
from tests.unit.telemetry.test_payloadlog import SECRET, WORD, request_on


@pytest.mark.parametrize(
    ("field", "body", "expected"),
    [
        ("spec.password", {"spec": {"password": "x", "user": "y"}}, {"spec": {"password": HIDDEN, "user": "y"}}),
        ("spec.password", {"spec": {"password": {"deep": [1]}}}, {"spec": {"password": HIDDEN}}),
        ("spec.*.token", {"spec": [{"token": 1}, {"token": 2}]}, {"spec": [{"token": HIDDEN}, {"token": HIDDEN}]}),
        ("data.*word", {"data": {"password": "x", "other": "y"}}, {"data": {"password": HIDDEN, "other": "y"}}),
        ("a.example?com/b", {"a": {"example.com/b": "x"}}, {"a": {"example.com/b": HIDDEN}}),
        ("**.value", {"value": 1, "x": [{"value": 2}]}, {"value": HIDDEN, "x": [{"value": HIDDEN}]}),
        ("spec.missing", {"spec": {"a": None}}, {"spec": {"a": None}}),
        ("spec.a.b", {"spec": {"a": "text"}}, {"spec": {"a": "text"}}),
    ],
)
def test_a_field_is_found_by_names_wildcards_and_depth(field: str, body: JSON, expected: JSON) -> None:
    """The value at the path is replaced as a whole."""
    assert expected == Redaction([parse_field(field)]).document(body)


@pytest.mark.parametrize("field", ["", "a..b", "spec.**"])
def test_a_field_without_names_is_refused(field: str) -> None:
    """The error appears when the controller starts."""
    with pytest.raises(UsageError, match="invalid field"):
        parse_field(field)


def test_a_secret_keeps_nothing_of_its_values() -> None:
    """Values are removed from the object, the old object and the last-applied annotation."""
    request, is_redacted = Redaction().request(request_on(SECRET, SECRET))
    assert is_redacted
    assert WORD not in encode(request)
    assert "db" == request["object"]["metadata"]["name"]


def test_the_copy_of_an_applied_manifest_is_removed_from_every_kind() -> None:
    """It repeats the selected fields."""
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "kept": "yes"}
    request = request_on({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "annotations": annotations}})
    body, is_redacted = Redaction().request(request)
    assert is_redacted
    assert {**annotations, "kubectl.kubernetes.io/last-applied-configuration": HIDDEN} == (
        body["object"]["metadata"]["annotations"]
    )


def test_a_request_without_confidential_values_is_left_alone() -> None:
    """It is not marked as redacted."""
    request = request_on({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}})
    assert (request.request, False) == Redaction().request(AdmissionRequest("v1", "u", request.request))
