"""Tests of `schema.custom`."""

from __future__ import annotations

import pytest

from kubesandbox.objects.fielderrors import required
from kubesandbox.schema.custom import CustomSchema
from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.schema.widgets import version, widget, widgets

SCALED = version("v1", subresources={"scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.n"}})


def schema_of(entry: JSONObject) -> CustomSchema:
    """The schema of one version."""
    return CustomSchema(widgets(entry), entry, (1, 35))


def said(entry: JSONObject, body: JSONObject, old: JSONObject | None = None, subresource: str = "") -> list[str]:
    """Return the errors of an object."""
    return list(map(str, schema_of(entry).validate(body, old, subresource=subresource)))


def test_rules_wait_until_the_rest_is_right() -> None:
    """An error that they could stumble over ends the judgement."""
    errors = said(version("v1"), widget({"color": "red"}))
    assert ["spec.size: Required value"] == errors[:1]
    assert errors[1].startswith("<nil>: Invalid value: null: some validation rules were not checked")


def test_what_was_found_before_counts() -> None:
    """A missing name keeps the rules from running as well."""
    found = schema_of(version("v1")).validate(widget(), None, found=[required("metadata.name")])
    assert ["metadata.name", "<nil>"] == [error.field for error in found]


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"size": 9}, "spec: Invalid value: too large"),
        ({"size": 1, "tags": ["a", "a"]}, 'spec.tags[1]: Duplicate value: "a"'),
        ({"size": 1, "pod": {"kind": "Pod"}}, "spec.pod.apiVersion: Required value"),
    ],
)
def test_everything_is_judged(spec: JSONObject, error: str) -> None:
    """Rules, lists and nested objects are validated."""
    assert error in said(version("v1"), widget(spec))


def test_a_status_is_judged_by_itself() -> None:
    """Its texts name fields from there on, and the specification is not looked at."""
    errors = said(version("v1"), widget({}, status={"n": "x"}), widget({}), "status")
    assert 'status.n: Invalid value: "string": n in body must be of type integer: "string"' == errors[0]
    assert not any(error.startswith("spec") for error in errors)


def test_replicas_are_counted_in_32_bits() -> None:
    """The check applies to every path that the definition names."""
    expected = ".spec.size: Invalid value: 3000000000: should be less than or equal to 2147483647"
    assert expected in said(SCALED, widget({"size": 3_000_000_000}))
