"""Sets of fields, and how managedFields writes them."""

from __future__ import annotations

import pytest

from pyverno.errors import ValueSyntaxError
from pyverno.kube.apply.fieldset import FieldSet, key_step, path_text, value_step

WEB = key_step({"name": "web"})
FIELDS = {
    "f:metadata": {"f:labels": {".": {}, "f:app": {}}, "f:finalizers": {'v:"x"': {}}},
    "f:spec": {"f:containers": {WEB: {".": {}, "f:image": {}}}, "f:replicas": {}},
}


def test_fields_are_read_and_written() -> None:
    """The `fieldsV1` of an API server comes back unchanged."""
    assert FIELDS == FieldSet.from_json(FIELDS).to_json()


def test_steps_are_compared_by_value() -> None:
    """The order of keys and blanks mean nothing."""
    one = FieldSet.from_json({'k:{"port":80,"protocol":"TCP"}': {}})
    two = FieldSet.from_json({'k:{ "protocol":"TCP", "port": 80 }': {}})
    assert one == two


@pytest.mark.parametrize(
    "fields", [{"x:a": {}}, {"f": {}}, {"k:[]": {}}, {"k:{": {}}, {"i:x": {}}, {"f:a": 1}, [], {"v:": {}}]
)
def test_what_is_no_field_set_is_refused(fields: object) -> None:
    """Managed fields come from clients, so any malformed set is an error."""
    with pytest.raises(ValueSyntaxError):
        FieldSet.from_json(fields)


def test_too_deep_a_set_is_refused() -> None:
    """Reading it must not run out of stack."""
    fields: dict[str, object] = {}
    for _ in range(5000):
        fields = {"f:a": fields}
    with pytest.raises(ValueSyntaxError):
        FieldSet.from_json(fields)


def test_a_difference_keeps_what_lies_below() -> None:
    """`difference` keeps the fields below a removed one; `without` removes them too."""
    below = FieldSet.of([("f:a", "f:b"), ("f:a",), ("f:c",)])
    above = FieldSet.of([("f:a",)])
    assert {"f:a": {"f:b": {}}, "f:c": {}} == below.difference(above).to_json()
    assert {"f:c": {}} == below.without(above).to_json()


def test_union_and_intersection_are_those_of_sets() -> None:
    """Members and everything below them."""
    one = FieldSet.of([("f:a", "f:b"), ("f:c",)])
    two = FieldSet.of([("f:a", "f:b"), ("f:a", "f:d")])
    assert {("f:a", "f:b"), ("f:a", "f:d"), ("f:c",)} == set(one.union(two).paths())
    assert [("f:a", "f:b")] == list(one.intersection(two).paths())
    assert not one.intersection(FieldSet())


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (("f:spec", "f:replicas"), ".spec.replicas"),
        (("f:ports", key_step({"protocol": "TCP", "port": 80})), '.ports[port=80,protocol="TCP"]'),
        (("f:finalizers", value_step("a/b")), '.finalizers[="a/b"]'),
        (("f:list", "i:3"), ".list[3]"),
    ],
)
def test_paths_are_written_for_people(path: tuple[str, ...], expected: str) -> None:
    """The form is the one that conflicts show."""
    assert expected == path_text(path)


def test_the_root_is_no_field() -> None:
    """Ownership applies to fields, never to the whole object."""
    assert not FieldSet.of([()])
