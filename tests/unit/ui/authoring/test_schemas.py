"""Schemas that texts are written against."""

from __future__ import annotations

from pyverno.kube.json import JSONObject
from pyverno.policy.kinds import POLICY_KINDS
from pyverno.ui.authoring.schemas import Node, Schemas

CRD: JSONObject = {
    "kind": "CustomResourceDefinition",
    "spec": {
        "group": "shop.example",
        "names": {"kind": "Order"},
        "versions": [
            {
                "name": "v1",
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "properties": {"size": {"enum": ["S", "L"]}}}},
                    }
                },
            }
        ],
    },
}


def node(schemas: Schemas, api_version: str, kind: str, *path: str | int) -> Node:
    """Return the node at a path, which must be known."""
    found = schemas.find(api_version, kind)
    for step in path:
        assert found is not None
        found = found.step(step)
    assert found is not None
    return found


def test_fields_of_kubernetes_have_type_and_text() -> None:
    """Fields are found through references and lists."""
    found = node(Schemas("1.37"), "apps/v1", "Deployment", "spec", "template", "spec", "containers", 0, "image")
    assert ("string", True) == (found.type, found.text.startswith("Container image name."))


def test_every_policy_kind_has_fields() -> None:
    """Each version has its fields, and the metadata is that of Kubernetes."""
    schemas = Schemas("1.37")
    found = {
        (row.kind, version): bool(node(schemas, f"{row.group}/{version}", row.kind, "metadata").fields())
        for row in POLICY_KINDS
        for version in row.versions
    }
    assert {} == {key: known for key, known in found.items() if not known}


def test_custom_kinds_come_from_definitions() -> None:
    """Documents that are no definitions are ignored."""
    schemas = Schemas("1.37", [CRD, {"kind": "CustomResourceDefinition"}, None])
    assert ("S", "L") == node(schemas, "shop.example/v1", "Order", "spec", "size").choices
    assert "name" in node(schemas, "shop.example/v1", "Order", "metadata").fields()
    assert ("shop.example/v1", "Order") in schemas.kinds()


def test_fields_are_those_of_the_kubernetes_version() -> None:
    """Fields added by a later version are unknown."""
    found = {
        version: "resizePolicy" in node(Schemas(version), "v1", "Pod", "spec", "containers", 0).fields()
        for version in ("1.25", "1.37")
    }
    assert {"1.25": False, "1.37": True} == found
