"""Managed fields of built-in and custom resources."""

from __future__ import annotations

from kubesandbox.apiserver import ApiServer
from kubesandbox.objects.managers import Managers
from kubesandbox.objects.patching import Patch
from kubesandbox.parsing.requests import APPLY_PATCH, MERGE_PATCH
from kubesandbox.schema.schemas import ObjectSchemas
from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.serving import api_server, definition, deployment, run, widget, write

CRDS = "customresourcedefinitions.apiextensions.k8s.io"


def owners(body: JSONObject) -> list[tuple[str, str, str]]:
    """Return manager, operation and subresource of each entry."""
    return [
        (entry["manager"], entry["operation"], entry.get("subresource", ""))
        for entry in body["metadata"]["managedFields"]
    ]


def applied(server: ApiServer, items: list[JSONObject], manager: str) -> JSONObject:
    """Apply a widget with a list."""
    body = {**widget("w"), "spec": {"items": items}}
    where = write(server, "widgets.example.com", "default", "w", manager=manager)
    return run(server.patch(where, Patch(APPLY_PATCH, body))).body


def listing(kind: str) -> JSONObject:
    """Return a definition whose objects have a list that merges in some way."""
    keys = {"x-kubernetes-list-map-keys": ["name"]} if kind == "map" else {}
    item = {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string"}, "value": {"type": "string"}},
    }
    items = {"type": "array", "items": item, "x-kubernetes-list-type": kind, **keys}
    spec = {"type": "object", "properties": {"items": items}}
    schema = {"type": "object", "properties": {"spec": spec}}
    return definition(schema={"openAPIV3Schema": schema}, subresources={})


def test_each_door_has_its_own_entry() -> None:
    """The status is another subresource, and what cannot change there is not owned."""
    server = api_server()
    run(server.create(write(server, "deployments.apps", manager="one"), deployment("d")))
    where = write(server, "deployments.apps", "default", "d", subresource="status", manager="two")
    after = run(server.patch(where, Patch(MERGE_PATCH, {"status": {"replicas": 1}, "spec": {"replicas": 9}}))).body
    assert {("one", "Update", ""), ("two", "Update", "status")} == {*owners(after)}
    (entry,) = (entry for entry in after["metadata"]["managedFields"] if entry["manager"] == "two")
    assert {"f:status": {"f:replicas": {}}} == entry["fieldsV1"]


def test_lists_of_custom_resources_merge_by_their_definition() -> None:
    """A map keeps the elements of others."""
    server = api_server()
    run(server.create(write(server, CRDS, ""), listing("map")))
    applied(server, [{"name": "a", "value": "1"}], "one")
    both = applied(server, [{"name": "b", "value": "2"}], "two")
    assert ["a", "b"] == [item["name"] for item in both["spec"]["items"]]


def test_a_changed_definition_changes_how_lists_merge() -> None:
    """The changed definition applies from the next write on."""
    server = api_server()
    made = run(server.create(write(server, CRDS, ""), listing("atomic"))).body
    applied(server, [{"name": "a", "value": "1"}], "one")
    changed = {**listing("map")["spec"], "names": made["spec"]["names"]}
    run(server.update(write(server, CRDS, "", made["metadata"]["name"]), {**made, "spec": changed}))
    both = applied(server, [{"name": "b", "value": "2"}], "two")
    assert ["a", "b"] == [item["name"] for item in both["spec"]["items"]]


def test_no_manager_owns_the_empty_fields_of_a_new_object() -> None:
    """Fields that Go writes although they are empty count only with a value."""
    server = api_server()
    event = {"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "namespace": "default"}, "reason": "R"}
    (entry,) = run(server.create(write(server, "events"), event)).body["metadata"]["managedFields"]
    assert {"f:involvedObject": {}, "f:reason": {}} == entry["fieldsV1"]


def test_the_spec_of_a_signing_request_is_the_servers() -> None:
    """The client that creates one manages no field of its spec."""
    server = api_server()
    spec = {"signerName": "example.com/x", "usages": ["client auth"], "request": "LS0="}
    requests = write(server, "certificatesigningrequests.certificates.k8s.io", "")
    made = Managers(ObjectSchemas("1.35").definitions, clock=server.now, definition=lambda _: None)
    body = {"metadata": {"name": "r"}, "spec": spec}
    found = made.tracked(requests.type, None, body, manager="me")
    assert not found["metadata"].get("managedFields")
