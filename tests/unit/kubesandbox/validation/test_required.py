"""Tests of `validation.required`."""

from __future__ import annotations

from kubesandbox.validation.required import RequiredFields
from pyverno.kube.json import JSONObject
from pyverno.kube.schemas import schema_set
from pyverno.kube.status import FieldError

FLOW = "io.k8s.api.flowcontrol.v1.FlowSchema"


def missing(body: JSONObject) -> list[str]:
    """The fields that are missing in a FlowSchema."""
    errors: list[FieldError] = []
    RequiredFields(schema_set("1.35")).check(FLOW, body, errors)
    return [str(error) for error in errors]


def test_a_required_field_must_be_there() -> None:
    """Nested required fields count as well, and an empty text counts as missing."""
    assert [] == missing({"spec": {"priorityLevelConfiguration": {"name": "x"}}})
    expected = ["spec.priorityLevelConfiguration.name: Required value"]
    assert expected == missing({"spec": {"priorityLevelConfiguration": {"name": ""}}})


def test_metadata_and_status_are_not_looked_at() -> None:
    """Other checks cover metadata and status."""
    assert [] == missing({"status": {"conditions": [{}]}})
