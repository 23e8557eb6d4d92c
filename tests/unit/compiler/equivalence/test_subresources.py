"""Requests for subresources."""

from __future__ import annotations

from pyverno.compiler.equivalence.subresources import with_ephemeral
from tests.support.migration import admission

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a"},
    "spec": {"containers": [{"name": "c", "image": "x"}]},
}


def test_ephemeral_containers_are_added_to_an_admitted_pod() -> None:
    """With the defaults of containers, without the fields that they do not have."""
    pod = admission()(POD)
    assert pod is not None
    body = {**POD, "spec": {"ephemeralContainers": [{"image": "x:latest", "ports": [{"containerPort": 1}]}]}}
    found = with_ephemeral(admission(), pod, body)
    assert found is not None
    (added,) = found["spec"]["ephemeralContainers"]
    assert ("debug-0", "x:latest", "Always") == (added["name"], added["image"], added["imagePullPolicy"])
    assert "ports" not in added
    assert pod["spec"]["containers"] == found["spec"]["containers"]


def test_a_pod_without_ephemeral_containers_gets_a_plain_one() -> None:
    """What a policy says of the labels of a Pod counts for requests of the subresource, too."""
    pod = admission()(POD)
    assert pod is not None
    found = with_ephemeral(admission(), pod, POD)
    assert found is not None
    assert ["debug-0"] == [each["name"] for each in found["spec"]["ephemeralContainers"]]
