"""Merge types of built-in kinds and of custom resources."""

from __future__ import annotations

import pytest

from pyverno.kube.apply.schematree import ANYTHING, SchemaTree, schema_tree_for, schema_tree_of
from pyverno.kube.gvk import GVK
from pyverno.kube.schemas import schema_set

SCHEMAS = schema_set("1.35")


def at(tree: SchemaTree, *path: str) -> SchemaTree:
    """Follow fields, `*` for the items of a list."""
    for step in path:
        found = (tree.list.element if tree.list else None) if step == "*" else tree.map and tree.map.child(step)
        assert found is not None
        tree = found
    return tree


POD = schema_tree_for(SCHEMAS, GVK("", "v1", "Pod"))


@pytest.mark.parametrize(
    ("path", "is_atomic", "keys"),
    [
        (("spec", "containers"), False, ("name",)),
        (("spec", "containers", "*", "ports"), False, ("containerPort", "protocol")),
        (("spec", "containers", "*", "args"), True, ()),
        (("spec", "tolerations"), True, ()),
        (("spec", "topologySpreadConstraints"), False, ("topologyKey", "whenUnsatisfiable")),
        (("metadata", "finalizers"), False, ()),
        (("metadata", "ownerReferences"), False, ("uid",)),
        (("status", "conditions"), False, ("type",)),
    ],
)
def test_lists_of_a_pod_merge_as_in_a_cluster(path: tuple[str, ...], is_atomic: bool, keys: tuple[str, ...]) -> None:
    """Keys, sets and lists that are one value."""
    found = at(POD, *path).list
    assert found is not None
    assert (is_atomic, keys) == (found.is_atomic, found.keys)


def test_a_port_is_tcp_by_default() -> None:
    """The key of a port that names no protocol."""
    found = at(POD, "spec", "containers", "*", "ports").list
    assert found is not None
    assert {"containerPort": 0, "protocol": "TCP"} == found.defaults


@pytest.mark.parametrize(
    ("path", "scalar"),
    [
        (("spec", "nodeName"), "string"),
        (("spec", "priority"), "numeric"),
        (("spec", "hostNetwork"), "boolean"),
        (("metadata", "creationTimestamp"), "untyped"),
        (("spec", "overhead", "cpu"), "untyped"),
        (("spec", "containers", "*", "livenessProbe", "httpGet", "port"), "untyped"),
    ],
)
def test_scalars_have_kinds(path: tuple[str, ...], scalar: str) -> None:
    """Times, quantities and ports can be several."""
    assert scalar == at(POD, *path).scalar


def test_selectors_are_one_value_and_maps_are_not() -> None:
    """Atomic structs, granular labels."""
    deployment = schema_tree_for(SCHEMAS, GVK("apps", "v1", "Deployment"))
    selector, labels = at(deployment, "spec", "selector").map, at(deployment, "metadata", "labels").map
    assert selector is not None
    assert labels is not None
    assert (True, False) == (selector.is_atomic, labels.is_atomic)


def test_an_unknown_kind_can_be_anything() -> None:
    """Maps merge by keys, lists are one value."""
    assert ANYTHING is schema_tree_for(SCHEMAS, GVK("x.io", "v1", "Foo"))
    assert ["map", "list", "scalar", "map"] == [ANYTHING.shape(value) for value in ({}, [], 1, None)]


WIDGET = schema_tree_of(
    {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "plain": {"type": "array", "items": {"type": "string"}},
                    "keyed": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["k", "p"],
                        "items": {"type": "object", "properties": {"p": {"type": "string", "default": "TCP"}}},
                    },
                    "atomic": {"type": "object", "x-kubernetes-map-type": "atomic"},
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                    "either": {"x-kubernetes-int-or-string": True},
                },
            }
        },
    }
)


def test_a_definition_declares_how_its_lists_merge() -> None:
    """Without a word they are one value; keys have the defaults of the schema."""
    plain, keyed = at(WIDGET, "spec", "plain").list, at(WIDGET, "spec", "keyed").list
    assert plain is not None
    assert keyed is not None
    assert (True, False, ("k", "p"), {"p": "TCP"}) == (plain.is_atomic, keyed.is_atomic, keyed.keys, keyed.defaults)


def test_fields_that_a_definition_does_not_name_are_unknown() -> None:
    """Unless it keeps them; metadata is that of all objects."""
    assert WIDGET.map is not None
    spec, free, atomic = (at(WIDGET, "spec", *rest).map for rest in ((), ("free",), ("atomic",)))
    assert spec is not None
    assert free is not None
    assert atomic is not None
    assert None is spec.child("x")
    assert None is not free.child("x")
    assert atomic.is_atomic
    assert "string" == at(WIDGET, "apiVersion").scalar
    assert "untyped" == at(WIDGET, "spec", "either").scalar
    finalizers = at(WIDGET, "metadata", "finalizers").list
    assert finalizers is not None
    assert (False, ()) == (finalizers.is_atomic, finalizers.keys)


def test_a_kind_begins_with_the_parts_that_it_is_never_without() -> None:
    """These parts have no owner; custom resources have no such parts."""
    assert {"spec": {"containers": None}, "status": {}} == POD.empty
    assert {} == WIDGET.empty == schema_tree_for(SCHEMAS, GVK("", "v1", "ConfigMap")).empty
