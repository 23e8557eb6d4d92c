"""Tests of `defaults.pods`."""

from __future__ import annotations

import pytest

from kubesandbox.defaults.walk import BuiltinDefaults
from pyverno.kube.json import JSONObject
from pyverno.kube.schemas import schema_set

DEFAULTS = BuiltinDefaults(schema_set("1.35"))


def spec_of(spec: JSONObject, definition: str = "Pod") -> JSONObject:
    """The specification of a Pod with its defaults."""
    filled: JSONObject = DEFAULTS.fill(f"io.k8s.api.core.v1.{definition}", {"spec": spec})["spec"]
    return filled


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.27", "IfNotPresent"),
        ("localhost:5000/nginx", "Always"),
        ("localhost:5000/nginx:1", "IfNotPresent"),
        ("nginx@sha256:0000", "IfNotPresent"),
        ("", "IfNotPresent"),
    ],
)
def test_the_pull_policy_follows_from_the_tag(image: str, policy: str) -> None:
    """The latest image is pulled again, any other only when it is not there."""
    container = spec_of({"containers": [{"image": image}]})["containers"][0]
    assert policy == container["imagePullPolicy"]


def test_requests_are_the_limits_where_nothing_is_said() -> None:
    """In Pods; a template is left as it was written."""
    container = {"image": "x", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}}
    filled = spec_of({"containers": [container], "initContainers": [container]})
    for key in ("containers", "initContainers"):
        assert {"cpu": "500m", "memory": "1Gi"} == filled[key][0]["resources"]["requests"]
    template = spec_of({"containers": [container]}, "PodTemplateSpec")
    assert {"cpu": "500m"} == template["containers"][0]["resources"]["requests"]


def test_ports_on_the_network_of_the_host_are_its_ports() -> None:
    """A port that names its host port keeps it."""
    ports = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 81}]
    filled = spec_of({"hostNetwork": True, "containers": [{"image": "x", "ports": ports}]})
    assert [80, 81] == [port["hostPort"] for port in filled["containers"][0]["ports"]]


def test_a_pod_requests_the_sum_of_its_containers() -> None:
    """The Pod has limits of its own; init containers run alone, sidecars beside the others."""
    containers = [{"image": "x", "resources": {"requests": {"cpu": "1"}}}] * 2
    inits = [
        {"image": "x", "resources": {"requests": {"cpu": "3"}}},
        {"image": "x", "restartPolicy": "Always", "resources": {"requests": {"cpu": "500m"}}},
    ]
    filled = spec_of({"containers": containers, "initContainers": inits, "resources": {"limits": {"memory": "1Gi"}}})
    assert {"cpu": "3", "memory": "1Gi"} == filled["resources"]["requests"]


def test_an_account_is_written_twice() -> None:
    """The old name of the field is kept for old clients."""
    for field in ("serviceAccount", "serviceAccountName"):
        filled = spec_of({"containers": [], field: "x"})
        assert ("x", "x") == (filled["serviceAccount"], filled["serviceAccountName"])


def test_a_volume_without_source_is_an_empty_directory() -> None:
    """And an image is pulled as that of a container."""
    volumes = [{"name": "a"}, {"name": "b", "image": {"reference": "x:1"}}]
    filled = spec_of({"containers": [], "volumes": volumes})["volumes"]
    assert [{"name": "a", "emptyDir": {}}, "IfNotPresent"] == [filled[0], filled[1]["image"]["pullPolicy"]]
