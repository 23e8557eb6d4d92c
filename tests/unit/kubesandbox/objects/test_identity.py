"""Identity of the object in a request body."""

from __future__ import annotations

import pytest

from kubesandbox.objects.identity import carried, check_kind, placed, wiped
from kubesandbox.types.resources import ResourceType, builtin_table
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError

TABLE = builtin_table("1.35")
WIDGETS = ResourceType("example.com", "v1", "widgets", "Widget", "widget", namespaced=True, crd="widgets.example.com")


def refusal(type: ResourceType, body: JSONObject) -> tuple[int, str]:
    """Return the error of a body of the wrong kind."""
    with pytest.raises(StatusError) as caught:
        check_kind(type, type.gvk, body, TABLE)
    return caught.value.status, caught.value.message


def test_built_in_kinds_may_leave_out_what_the_path_contains() -> None:
    """Kind and version are filled in."""
    maps = TABLE.versions_of("configmaps")[0]
    assert {"apiVersion": "v1", "kind": "ConfigMap", "data": {}} == check_kind(maps, maps.gvk, {"data": {}}, TABLE)


def test_another_version_of_the_kind_is_distinguished_from_another_kind() -> None:
    """Both are bad requests, with different messages."""
    scalers = TABLE.find("autoscaling", "v2", "horizontalpodautoscalers")
    assert scalers is not None
    body = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler"}
    assert (
        400,
        "the API version in the data (autoscaling/v1) does not match the expected API version (autoscaling/v2)",
    ) == refusal(scalers, body)


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (
            {"metadata": {"name": "a"}},
            400,
            "the object provided is unrecognized (must be of type Widget): Object 'Kind' is missing in "
            '\'{"metadata":{"name":"a"}}\' ({"metadata":{"name":"a"}})',
        ),
        (
            {"apiVersion": "example.com/v2", "kind": "Widget"},
            400,
            "the API version in the data (example.com/v2) does not match the expected API version (example.com/v1)",
        ),
        (
            {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "a"}},
            422,
            'Gadget.example.com "a" is invalid: kind: Invalid value: "Gadget": must be Widget',
        ),
    ],
)
def test_custom_kinds_must_have_kind_and_version(body: JSONObject, status: int, message: str) -> None:
    """The error has the text of the API server."""
    assert (status, message) == refusal(WIDGETS, body)


def test_objects_are_placed_by_their_path() -> None:
    """A cluster-scoped object has no namespace, even if it names one."""
    assert "x" == placed(WIDGETS, "x", {"metadata": {"name": "a"}})["metadata"]["namespace"]
    nodes = TABLE.versions_of("nodes")[0]
    assert {"name": "n"} == placed(nodes, "", {"metadata": {"name": "n", "namespace": "x"}})["metadata"]


def test_an_update_carries_on_what_the_server_set() -> None:
    """Deletion cannot be taken back; an unchanged object stays the same one."""
    old = {"metadata": {"name": "a", "uid": "1", "generation": 2, "resourceVersion": "7", "deletionTimestamp": "T"}}
    new = {"metadata": {"name": "a", "generation": 9, "creationTimestamp": "X", "labels": {"a": "b"}}}
    assert {**old["metadata"], "labels": {"a": "b"}} == carried(new, old)["metadata"]
    assert carried(old, old) is old


def test_a_new_object_has_nothing_that_the_server_sets() -> None:
    """Clients send objects that they have read elsewhere."""
    body = {"metadata": {"name": "a", "uid": "1", "selfLink": "/", "generation": 3, "deletionTimestamp": "T"}}
    assert {"name": "a", "generation": 3} == wiped(body)["metadata"]
