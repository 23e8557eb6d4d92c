"""Tests of `migration.schema`."""

from __future__ import annotations

from pyverno.compiler.migration.schema import ANY, Presence, SchemaBook, Shape
from pyverno.kube.json import JSONObject

BOOK = SchemaBook()
POD = BOOK.of("", "v1", "Pod")
CRD: JSONObject = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["size"],
                                "properties": {
                                    "size": {"type": "integer"},
                                    "note": {"type": "string", "nullable": True},
                                    "port": {"x-kubernetes-int-or-string": True},
                                    "parts": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["id"],
                                        "items": {"type": "object", "properties": {"id": {"type": "string"}}},
                                    },
                                },
                            }
                        },
                    }
                },
            }
        ],
    },
}


def test_shapes_of_built_in_fields() -> None:
    """Quantities, ports and times are distinguished from strings and numbers."""
    container = POD.at("spec", "containers").element
    found = [
        container.at("resources", "limits", "memory").shape,
        container.at("livenessProbe", "httpGet", "port").shape,
        POD.at("metadata", "creationTimestamp").shape,
        POD.at("metadata", "annotations", "any").shape,
        POD.at("spec", "hostNetwork").shape,
        container.at("ports", "containerPort").shape,
        POD.at("spec", "nothing").shape,
    ]
    assert [
        Shape.QUANTITY,
        Shape.INT_OR_STRING,
        Shape.TIME,
        Shape.STRING,
        Shape.BOOL,
        Shape.INT,
        Shape.ANY,
    ] == found


def test_how_fields_can_be_missing() -> None:
    """`omitempty` values are never zero, pointers can be, required fields are there."""
    spec = POD.field("spec")
    assert [Presence.REQUIRED, Presence.REQUIRED, Presence.NONZERO, Presence.OPTIONAL] == [
        spec.presence,
        *(spec.field(name).presence for name in ("containers", "hostNetwork", "securityContext")),
    ]


def test_null_reaches_admission_where_go_writes_it() -> None:
    """A list without `omitempty` is null when it is empty."""
    role = BOOK.of("rbac.authorization.k8s.io", "v1", "Role")
    assert (True, False) == (role.field("rules").is_nullable, POD.at("spec", "volumes").is_nullable)


def test_lists_know_their_merge_keys() -> None:
    """The keys that identify elements, and lists that are replaced as a whole."""
    spec = POD.field("spec")
    assert (("name",), ("containerPort", "protocol")) == (
        spec.field("containers").merge_keys,
        spec.at("containers", "ports").merge_keys,
    )
    assert spec.field("tolerations").is_atomic


def test_custom_kinds_have_the_schema_of_their_definition() -> None:
    """Given definitions count like built-in kinds."""
    spec = SchemaBook(crds=[CRD]).of("example.com", "v1", "Widget").field("spec")
    assert (Shape.INT, Presence.REQUIRED, False) == (
        spec.field("size").shape,
        spec.field("size").presence,
        spec.field("size").is_nullable,
    )
    assert (True, Shape.INT_OR_STRING, ("id",)) == (
        spec.field("note").is_nullable,
        spec.field("port").shape,
        spec.field("parts").merge_keys,
    )


def test_unknown_kinds_are_anything() -> None:
    """Without a definition nothing is known, and every field can be missing or null."""
    assert BOOK.of("example.com", "v1", "Widget") is ANY
    assert ANY.field("spec") is ANY
