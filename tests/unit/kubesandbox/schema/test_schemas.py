"""Tests of `schema.schemas`."""

from __future__ import annotations

import pytest

from kubesandbox.schema.schemas import ObjectSchemas
from kubesandbox.types.customresources import types_of
from kubesandbox.types.resources import builtin_table
from pyverno.kube.status import StatusError
from tests.unit.kubesandbox.schema.widgets import version, widget, widgets

SCHEMAS = ObjectSchemas("1.35")
TABLE = builtin_table("1.35")
CRD = widgets()
CUSTOM = SCHEMAS.with_crd(CRD)
WIDGETS = types_of(CRD)[0]


def test_a_definition_gives_new_schemas() -> None:
    """The old ones stay as they are."""
    assert CUSTOM.custom(WIDGETS) is not None
    assert SCHEMAS.custom(WIDGETS) is None
    assert CUSTOM.without_crd("widgets.ex.io").custom(WIDGETS) is None


def test_a_custom_resource_is_pruned_and_its_metadata_read() -> None:
    """Both report the fields that they drop."""
    body = widget({"size": 1, "zz": 1}, metadata={"name": "w", "zz": 1, "labels": {}})
    decoded = CUSTOM.decode(WIDGETS, body)
    assert ('unknown field "spec.zz"', 'unknown field "metadata.zz"') == decoded.problems
    assert widget() == decoded.body


def test_wrong_metadata_of_a_custom_resource_is_a_bad_request() -> None:
    """Its own fields are judged by their schema later."""
    with pytest.raises(StatusError) as caught:
        CUSTOM.decode(WIDGETS, widget(metadata={"labels": {"a": 1}}))
    expected = "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"
    assert str(caught.value) == f'Widget in version "v1" cannot be handled as a Widget: {expected}'


def test_a_custom_resource_gets_defaults_and_is_judged() -> None:
    """Validation covers the name as well."""
    filled = CUSTOM.default(WIDGETS, widget())
    assert "red" == filled["spec"]["color"]
    assert [] == CUSTOM.validate(WIDGETS, filled)
    errors = CUSTOM.validate(WIDGETS, {**filled, "metadata": {"name": "A"}, "spec": {"size": 0}})
    assert ["metadata.name", "spec.size"] == [error.field for error in errors]


def test_a_transition_is_judged_against_the_stored_object() -> None:
    """Transition rules do not run on create."""
    new, old = widget({"size": 1, "fixed": "b"}), widget({"size": 1, "fixed": "a"})
    assert [] == CUSTOM.validate(WIDGETS, new)
    assert ['spec.fixed: Invalid value: "b": fixed is immutable'] == list(map(str, CUSTOM.validate(WIDGETS, new, old)))


def test_a_status_of_its_own_is_written_by_itself() -> None:
    """Dropped on create, kept on update; the rest is kept on an update of the status."""
    new, old = widget({"size": 2}, status={"n": 2}), widget(status={"n": 1})
    assert widget({"size": 2}) == CUSTOM.normalize(WIDGETS, new)
    assert widget({"size": 2}, status={"n": 1}) == CUSTOM.normalize(WIDGETS, new, old)
    assert widget(status={"n": 2}) == CUSTOM.normalize(WIDGETS, new, old, subresource="status")


def test_without_the_subresource_the_status_is_a_field() -> None:
    """Writing the object writes its status, too."""
    crd = widgets(version("v1", storage=True))
    body = widget(status={"n": 2})
    assert body == SCHEMAS.with_crd(crd).normalize(types_of(crd)[0], body)


@pytest.mark.parametrize(
    ("plural", "subresource", "kind"), [("deployments", "scale", "Scale"), ("pods", "eviction", "Eviction")]
)
def test_a_subresource_has_its_own_kind(plural: str, subresource: str, kind: str) -> None:
    """Unknown fields are judged by the schema of that kind."""
    type_ = TABLE.find("apps" if plural == "deployments" else "", "v1", plural)
    assert type_ is not None
    decoded = SCHEMAS.decode(type_, {"kind": kind, "zz": 1}, subresource=subresource)
    assert ('unknown field "zz"',) == decoded.problems


def test_the_status_of_a_built_in_object_is_reset_on_create() -> None:
    """The status becomes the one that Go writes for an empty struct."""
    type_ = TABLE.find("apps", "v1", "replicasets")
    assert type_ is not None
    assert {"replicas": 0} == SCHEMAS.normalize(type_, {"metadata": {}, "status": {"replicas": 7}})["status"]
