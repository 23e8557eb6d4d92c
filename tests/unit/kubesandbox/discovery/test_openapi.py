"""Tests of `kubesandbox.discovery.openapi`."""

from __future__ import annotations

import orjson
import pytest

from kubesandbox.discovery.openapi import OpenApi, published_definition
from kubesandbox.schema.schemas import ObjectSchemas
from kubesandbox.types.customresources import types_of
from kubesandbox.types.resources import builtin_table
from pyverno.kube.json import JSONObject
from pyverno.kube.schemas import schema_set
from tests.unit.kubesandbox.schema.widgets import widgets

CRD = widgets()
TABLE = builtin_table("1.35")
SCHEMAS = ObjectSchemas("1.35")
API = OpenApi(TABLE.with_types(types_of(CRD)), SCHEMAS.with_crd(CRD))


def document(name: str) -> JSONObject:
    """A document as a client reads it."""
    read: JSONObject = orjson.loads(API.document(name))
    return read


def references(value: object) -> set[str]:
    """Everything that a document refers to."""
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*map(references, value.values()))
    return set().union(*map(references, value)) if isinstance(value, list) else set()


def test_the_index_names_every_document_with_its_hash() -> None:
    """The address that it gives is that of the document."""
    paths = API.index()["paths"]
    assert {"api", "apis", "version", "api/v1", "apis/apps", "apis/apps/v1", "apis/ex.io/v1"} <= set(paths)
    for name, entry in paths.items():
        assert f"/openapi/v3/{name}?hash={API.etag(name).strip(chr(34))}" == entry["serverRelativeURL"]


@pytest.mark.parametrize("name", sorted(API.index()["paths"]))
def test_a_document_refers_to_nothing_that_it_does_not_hold(name: str) -> None:
    """kubectl follows every reference."""
    found = document(name)
    known = {f"#/components/schemas/{schema}" for schema in found["components"]["schemas"]}
    assert set() == references(found) - known


def test_a_patch_has_the_fields_that_kubectl_reads() -> None:
    """The kind, that fields are validated, and which patches there are."""
    patch = document("apis/apps/v1")["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert {"group": "apps", "version": "v1", "kind": "Deployment"} == patch["x-kubernetes-group-version-kind"]
    assert "fieldValidation" in [parameter["name"] for parameter in patch["parameters"]]
    assert "application/strategic-merge-patch+json" in patch["requestBody"]["content"]


def test_a_custom_resource_is_published_with_the_metadata_of_all_objects() -> None:
    """Its own schema stays as it was written; strategic patches it does not take."""
    found = document("apis/ex.io/v1")
    schema = found["components"]["schemas"]["io.ex.v1.Widget"]
    assert "ObjectMeta" in schema["properties"]["metadata"]["allOf"][0]["$ref"]
    assert CRD["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] == schema["properties"]["spec"]
    assert [{"group": "ex.io", "version": "v1", "kind": "Widget"}] == schema["x-kubernetes-group-version-kind"]
    patch = found["paths"]["/apis/ex.io/v1/namespaces/{namespace}/widgets/{name}"]["patch"]
    assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]


def test_a_hash_changes_with_what_a_document_is_made_of() -> None:
    """And only then: clients keep documents by it."""
    changed = widgets()
    changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {"type": "object"}
    other = OpenApi(TABLE.with_types(types_of(changed)), SCHEMAS.with_crd(changed))
    assert API.etag("apis/apps/v1") == other.etag("apis/apps/v1")
    assert API.etag("apis/ex.io/v1") != other.etag("apis/ex.io/v1")
    assert API.etag("") != other.etag("")


def test_there_are_no_other_documents() -> None:
    """Reading a document that is not in the index raises KeyError."""
    with pytest.raises(KeyError):
        API.document("apis/nothing/v1")
    with pytest.raises(KeyError):
        API.etag("apis/nothing/v1")


def test_types_are_published_as_openapi_has_them() -> None:
    """No null among the types, references with texts beside them, no pinned version and kind."""
    schemas = schema_set("1.35")
    deployment = published_definition(schemas, "io.k8s.api.apps.v1.Deployment")
    assert ["allOf", "description"] == sorted(deployment["properties"]["spec"])
    assert "enum" not in deployment["properties"]["kind"]
    quantity = published_definition(schemas, "io.k8s.apimachinery.pkg.api.resource.Quantity")
    assert [{"type": "string"}, {"type": "number"}] == quantity["oneOf"]
