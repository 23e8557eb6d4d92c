"""Values seen through their schema tree."""

from __future__ import annotations

import pytest

from pyverno.errors import PatchError
from pyverno.kube.apply.fieldset import FieldSet
from pyverno.kube.apply.schematree import ANYTHING, schema_tree_for
from pyverno.kube.apply.typedvalue import compare, fields_of, taken_out, with_named_parents
from pyverno.kube.gvk import GVK
from pyverno.kube.json import JSON
from pyverno.kube.schemas import schema_set

SPEC = schema_tree_for(schema_set("1.35"), GVK("", "v1", "Pod"))


def pod(**spec: JSON) -> JSON:
    """Return a pod."""
    return {"spec": spec}


def containers(names: str) -> list[JSON]:
    """Return containers named by letters."""
    return [{"name": name} for name in names]


def test_a_configuration_owns_its_leaves_and_items() -> None:
    """Structs are not owned themselves, items of lists, entries of maps and empty values are."""
    value = {
        "metadata": {"labels": {"a": "b"}, "annotations": {}},
        "spec": {"containers": [{"name": "web", "args": ["x"], "env": []}], "nodeSelector": None},
    }
    assert {
        "f:metadata": {"f:annotations": {}, "f:labels": {"f:a": {}}},
        "f:spec": {"f:containers": {'k:{"name":"web"}': {".": {}, "f:args": {}, "f:name": {}}}, "f:nodeSelector": {}},
    } == fields_of(value, SPEC).to_json()


@pytest.mark.parametrize(
    ("before", "after", "removed", "modified", "added"),
    [
        ({"a": 1}, {"a": 1.0}, {}, {}, {}),
        ({"a": 1}, {"a": True}, {}, {"f:a": {}}, {}),
        ({"a": {"b": 1}}, {"a": {"c": 1}}, {"f:a": {"f:b": {}}}, {}, {"f:a": {"f:c": {}}}),
        ({}, {"a": {"b": 1}}, {}, {}, {"f:a": {".": {}, "f:b": {}}}),
        ({"a": {}}, {"a": None}, {}, {"f:a": {}}, {}),
        ({"a": [1]}, {"a": [2]}, {}, {"f:a": {}}, {}),
        ({"a": {"b": 1}}, {"a": 1}, {"f:a": {"f:b": {}}}, {"f:a": {}}, {}),
    ],
)
def test_two_values_differ_in_fields(before: JSON, after: JSON, removed: JSON, modified: JSON, added: JSON) -> None:
    """Numbers by value; a map that appears is added with all it holds."""
    found = compare(before, after, ANYTHING)
    assert (removed, modified, added) == (found.removed.to_json(), found.modified.to_json(), found.added.to_json())


def test_items_are_compared_by_their_keys() -> None:
    """Items match by their keys in any order."""
    found = compare(pod(containers=containers("ab")), pod(containers=[*containers("ca")]), SPEC)
    assert {"f:spec": {"f:containers": {'k:{"name":"b"}': {".": {}, "f:name": {}}}}} == found.removed.to_json()
    assert {"f:spec": {"f:containers": {'k:{"name":"c"}': {".": {}, "f:name": {}}}}} == found.added.to_json()


def test_items_that_occur_twice_count_as_one_value() -> None:
    """Older objects may contain such lists."""
    twice = pod(containers=[{"name": "a", "image": "1"}, {"name": "a", "image": "2"}])
    other = pod(containers=[{"name": "a", "image": "1"}, {"name": "a", "image": "3"}])
    step = 'k:{"name":"a"}'
    assert {"f:spec": {"f:containers": {step: {}}}} == compare(twice, other, SPEC).modified.to_json()
    once = pod(containers=containers("a"))
    assert {"f:spec": {"f:containers": {step: {}}}} == compare(twice, once, SPEC).removed.to_json()
    assert {"f:spec": {"f:containers": {step: {}}}} == compare(once, twice, SPEC).added.to_json()
    assert {"f:spec": {"f:containers": {step: {}}}} == fields_of(twice, SPEC).to_json()


def test_fields_are_taken_out() -> None:
    """Items are removed by their keys; a value without remaining fields becomes null."""
    fields = FieldSet.from_json({"f:spec": {"f:containers": {'k:{"name":"a"}': {}, 'k:{"name":"b"}': {"f:image": {}}}}})
    value = pod(containers=[{"name": "a"}, {"name": "b", "image": "1"}])
    assert pod(containers=[{"name": "b"}]) == taken_out(value, fields, SPEC)
    assert None is taken_out({"a": 1}, FieldSet.of([("f:a",)]), ANYTHING)


def test_named_fields_belong_to_those_below_them() -> None:
    """Not so entries of maps."""
    fields = FieldSet.of([("f:metadata", "f:labels", "f:a"), ("f:spec", "f:nodeSelector", "f:b")])
    found = with_named_parents(fields, SPEC)
    assert found.has(("f:metadata",))
    assert found.has(("f:metadata", "f:labels"))
    assert with_named_parents(FieldSet.of([("f:a", "f:b")]), ANYTHING) == FieldSet.of([("f:a", "f:b")])


def test_an_item_without_keys_can_not_be_identified() -> None:
    """No key of these lists has a default."""
    with pytest.raises(PatchError, match="omits all key fields"):
        fields_of({"status": {"conditions": [{"status": "True"}]}, "spec": {"readinessGates": []}}, _owners())


def _owners():
    from pyverno.kube.apply.schematree import schema_tree_of

    items = {"type": "object", "properties": {"type": {"type": "string"}}}
    conditions = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
    status = {"type": "object", "properties": {"conditions": {**conditions, "items": items}}}
    return schema_tree_of({"type": "object", "properties": {"status": status}})
