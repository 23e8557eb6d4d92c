"""Fields that a subresource may change."""

from __future__ import annotations

from kubesandbox.objects.subresources import is_partial, only_allowed, scale_of, scaled
from kubesandbox.types.resources import ResourceType, builtin_table
from pyverno.kube.json import JSONObject

TABLE = builtin_table("1.35")


def type_of(key: str) -> ResourceType:
    """Return the type that is stored under a key."""
    return TABLE.versions_of(key)[0]


def pod(**changes: object) -> JSONObject:
    """Return a pod."""
    container = {"name": "a", "image": "x", "resources": {"limits": {"cpu": "1"}}}
    return {"metadata": {"name": "p"}, "spec": {"containers": [{**container, **changes}], "nodeName": "n"}}


def test_ephemeral_containers_are_all_that_their_subresource_adds() -> None:
    """The rest of the new spec does not count."""
    new = {"metadata": {"name": "p"}, "spec": {"ephemeralContainers": [{"name": "e"}], "nodeName": "other"}}
    after = only_allowed(type_of("pods"), "ephemeralcontainers", new, pod())
    assert {**pod()["spec"], "ephemeralContainers": [{"name": "e"}]} == after["spec"]


def test_resizing_changes_resources_only() -> None:
    """Containers are matched by name."""
    after = only_allowed(type_of("pods"), "resize", pod(image="y", resources={"limits": {"cpu": "2"}}), pod())
    assert pod(resources={"limits": {"cpu": "2"}}) == after


def test_an_approval_changes_conditions_only() -> None:
    """An approval changes neither the request nor the certificate."""
    old = {"metadata": {}, "spec": {"request": "r"}, "status": {"certificate": "c"}}
    new = {"metadata": {}, "spec": {}, "status": {"certificate": "d", "conditions": [{"type": "Approved"}]}}
    csrs = type_of("certificatesigningrequests.certificates.k8s.io")
    expected = {**old, "status": {"certificate": "c", "conditions": [{"type": "Approved"}]}}
    assert expected == only_allowed(csrs, "approval", new, old)


def test_the_status_is_a_matter_of_the_schemas() -> None:
    """Schemas select the fields of a status; only subresources such as `resize` of pods have rules here."""
    assert (False, True, False) == (
        is_partial(type_of("pods"), "status"),
        is_partial(type_of("pods"), "resize"),
        is_partial(type_of("deployments.apps"), "resize"),
    )


def test_selectors_are_written_as_text() -> None:
    """Maps, expressions and texts are accepted."""
    sets = type_of("replicasets.apps")
    terms = [
        {"key": "a", "operator": "In", "values": ["y", "x"]},
        {"key": "b", "operator": "Exists"},
        {"key": "c", "operator": "DoesNotExist"},
        {"key": "d", "operator": "NotIn", "values": ["z"]},
    ]
    spec = {"replicas": 1, "selector": {"matchLabels": {"e": "f"}, "matchExpressions": terms}}
    scale = scale_of(sets, {"metadata": {"name": "s"}, "spec": spec})
    assert "!c,a in (x,y),b,d notin (z),e=f" == scale["status"]["selector"]
    plain = scale_of(type_of("replicationcontrollers"), {"metadata": {}, "spec": {"selector": {"a": "b"}}})
    assert "a=b" == plain["status"]["selector"]


def test_scaling_follows_the_paths_of_a_definition() -> None:
    """The paths work even where the object has no value yet."""
    paths = {"specReplicasPath": ".spec.size.wanted", "statusReplicasPath": ".status.size"}
    body = scaled({"metadata": {}, "spec": {"x": 1}}, {"spec": {"replicas": 4}}, paths)
    assert {"x": 1, "size": {"wanted": 4}} == body["spec"]
