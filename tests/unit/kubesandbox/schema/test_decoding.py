"""Tests of `schema.decoding`."""

from __future__ import annotations

import pytest

from kubesandbox.schema.decoding import Decoded, Decoders
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.schemas import schema_set
from pyverno.kube.status import StatusError

SCHEMAS = schema_set("1.35")
DECODERS = Decoders(SCHEMAS)


def decode(kind: str, body: JSONObject, group: str = "") -> Decoded:
    """Read an object of version v1."""
    return DECODERS.decode(SCHEMAS.kinds[(group, "v1", kind)], kind, "v1", body)


@pytest.mark.parametrize(
    ("kind", "body", "text"),
    [
        (
            "Deployment",
            {"spec": {"replicas": "x"}},
            "string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            "Deployment",
            {"spec": {"replicas": 1.5}},
            "number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            "Deployment",
            {"metadata": {"labels": {"x": 1}}},
            "number into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        ("Deployment", {"metadata": "a"}, "string into Go struct field Deployment.metadata of type v1.ObjectMeta"),
        ("Deployment", {"spec": []}, "array into Go struct field Deployment.spec of type v1.DeploymentSpec"),
        (
            "Pod",
            {"spec": {"containers": ["x"]}},
            "string into Go struct field PodSpec.spec.containers of type v1.Container",
        ),
        (
            "Pod",
            {"spec": {"containers": {}}},
            "object into Go struct field PodSpec.spec.containers of type []v1.Container",
        ),
        (
            "Pod",
            {"spec": {"containers": [{"imagePullPolicy": 1}]}},
            "number into Go struct field Container.spec.containers.imagePullPolicy of type v1.PullPolicy",
        ),
        (
            "Pod",
            {"spec": {"volumes": [{"configMap": {"name": 1}}]}},
            "number into Go struct field ConfigMapVolumeSource.spec.volumes.VolumeSource.configMap."
            "LocalObjectReference.name of type string",
        ),
        (
            "Pod",
            {"spec": {"containers": [{"livenessProbe": {"httpGet": {"port": True}}}]}},
            "bool into Go struct field HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port "
            "of type int32",
        ),
        ("Secret", {"data": {"a": 1}}, "number into Go struct field Secret.data of type []uint8"),
        ("Secret", {"data": "x"}, "string into Go struct field Secret.data of type map[string][]uint8"),
    ],
)
def test_a_wrong_type_is_a_bad_request(kind: str, body: JSONObject, text: str) -> None:
    """The text is that of Go's decoder: the struct, the path with embedded structs, and the type."""
    with pytest.raises(StatusError) as caught:
        decode(kind, body, "apps" if kind == "Deployment" else "")
    expected = f'{kind} in version "v1" cannot be handled as a {kind}: json: cannot unmarshal {text}'
    assert (400, expected) == (caught.value.status, str(caught.value))


def test_unknown_fields_are_dropped_and_reported() -> None:
    """The warnings are in the order of the document."""
    body = {"metadata": {"name": "x", "a": 1, "ownerReferences": [{"b": 1}]}, "foo": {"a": {}}}
    found = decode("ConfigMap", body)
    fields = ("metadata.a", "metadata.ownerReferences[0].b", "foo")
    assert tuple(f'unknown field "{field}"' for field in fields) == found.problems
    assert "foo" not in found.body


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        ("ConfigMap", {"data": {}, "immutable": False}, {"immutable": False}),
        ("Pod", {"spec": {"hostNetwork": False, "containers": []}}, {"spec": {"containers": None}, "status": {}}),
        (
            "Pod",
            {"spec": {"hostIPC": None, "terminationGracePeriodSeconds": 0, "containers": [{"name": "a"}]}},
            {
                "spec": {"terminationGracePeriodSeconds": 0, "containers": [{"name": "a", "resources": {}}]},
                "status": {},
            },
        ),
        (
            "Service",
            {"spec": {"ports": [{"port": 1}]}},
            {"spec": {"ports": [{"port": 1, "targetPort": 0}]}, "status": {"loadBalancer": {}}},
        ),
    ],
)
def test_an_object_comes_back_as_go_writes_it(kind: str, body: JSONObject, expected: JSON) -> None:
    """Zero values that Go leaves out are gone, values that it always writes are there, pointers keep their zero."""
    assert {"metadata": {}, **expected} == decode(kind, body).body


def test_schemas_inside_of_a_definition_are_read_as_schemas() -> None:
    """Unknown fields are found below `items` and `additionalProperties`, too."""
    schema = {"type": "object", "properties": {"$ref": {"type": "string"}, "a": {"items": {"type": "string", "zz": 1}}}}
    version = {"name": "v1", "schema": {"openAPIV3Schema": schema}}
    found = decode("CustomResourceDefinition", {"spec": {"versions": [version]}}, "apiextensions.k8s.io")
    where = 'unknown field "spec.versions[0].schema.openAPIV3Schema.properties.a.items.zz"'
    assert (where,) == found.problems
    read = found.body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert {"type": "string"} == read["properties"]["$ref"]


def test_an_empty_status_is_what_go_writes() -> None:
    """Counts that are always written are zero."""
    status = DECODERS.zero("io.k8s.api.policy.v1.PodDisruptionBudgetStatus")
    assert {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0} == status
