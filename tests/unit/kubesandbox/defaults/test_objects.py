"""Tests of `defaults.objects`; whole objects are in the table of `test_walk`."""

from __future__ import annotations

import pytest

from kubesandbox.defaults.walk import BuiltinDefaults
from pyverno.kube.json import JSONObject
from pyverno.kube.schemas import schema_set

DEFAULTS = BuiltinDefaults(schema_set("1.35"))
CORE = "io.k8s.api.core.v1"


@pytest.mark.parametrize(
    ("spec", "field", "value"),
    [
        ({}, "internalTrafficPolicy", "Cluster"),
        ({}, "externalTrafficPolicy", None),
        ({"type": "NodePort"}, "externalTrafficPolicy", "Cluster"),
        ({"externalIPs": ["1.2.3.4"]}, "externalTrafficPolicy", "Cluster"),
        ({"type": "LoadBalancer"}, "allocateLoadBalancerNodePorts", True),
        ({"type": "ExternalName"}, "internalTrafficPolicy", None),
        ({"sessionAffinity": "ClientIP"}, "sessionAffinityConfig", {"clientIP": {"timeoutSeconds": 10800}}),
        ({"sessionAffinity": "None", "sessionAffinityConfig": {}}, "sessionAffinityConfig", None),
        ({"ports": [{"port": 80}]}, "ports", [{"port": 80, "protocol": "TCP", "targetPort": 80}]),
    ],
)
def test_a_service_is_completed_by_its_type(spec: JSONObject, field: str, value: object) -> None:
    """Some fields make sense for some types only."""
    assert value == DEFAULTS.fill(f"{CORE}.ServiceSpec", spec).get(field)


def test_texts_of_a_secret_are_stored_as_bytes() -> None:
    """They win over what is written as bytes."""
    filled = DEFAULTS.fill(f"{CORE}.Secret", {"data": {"a": "eA==", "b": "eQ=="}, "stringData": {"a": "ü"}})
    assert {"data": {"a": "w7w=", "b": "eQ=="}, "type": "Opaque"} == filled


def test_a_namespace_carries_its_name_as_a_label() -> None:
    """Even over a value that the client wrote."""
    written = {"metadata": {"name": "x", "labels": {"kubernetes.io/metadata.name": "y", "a": "b"}}}
    filled = DEFAULTS.fill(f"{CORE}.Namespace", written)
    assert {"kubernetes.io/metadata.name": "x", "a": "b"} == filled["metadata"]["labels"]


def test_limits_follow_from_each_other() -> None:
    """The default from the maximum, the default request from the default, then from the minimum."""
    item = {"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1Mi"}}
    filled = DEFAULTS.fill(f"{CORE}.LimitRangeItem", item)
    assert ({"cpu": "2"}, {"cpu": "2", "memory": "1Mi"}) == (filled["default"], filled["defaultRequest"])
    assert {"type": "Pod", "max": {"cpu": "2"}} == DEFAULTS.fill(
        f"{CORE}.LimitRangeItem", {"type": "Pod", "max": {"cpu": "2"}}
    )


def test_a_definition_is_named_after_its_kind() -> None:
    """And its storage version is remembered."""
    spec = {"names": {"kind": "Widget", "plural": "widgets"}, "versions": [{"name": "v1", "storage": True}]}
    name = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"
    filled = DEFAULTS.fill(name, {"spec": spec})
    assert ("widget", "WidgetList") == (filled["spec"]["names"]["singular"], filled["spec"]["names"]["listKind"])
    assert ({"strategy": "None"}, ["v1"]) == (filled["spec"]["conversion"], filled["status"]["storedVersions"])


USE: JSONObject = {"type": "Utilization", "averageUtilization": 80}
CPU: JSONObject = {"type": "Resource", "resource": {"name": "cpu", "target": USE}}
MEMORY: JSONObject = {"type": "Resource", "resource": {"name": "memory", "target": USE}}


@pytest.mark.parametrize(
    ("version", "spec", "filled"),
    [
        ("v1", {}, {"minReplicas": 1}),
        ("v2", {}, {"minReplicas": 1, "metrics": [CPU]}),
        ("v2", {"minReplicas": 2, "metrics": [MEMORY]}, {"minReplicas": 2, "metrics": [MEMORY]}),
    ],
)
def test_an_autoscaler_has_a_minimum_and_a_metric(version: str, spec: JSONObject, filled: JSONObject) -> None:
    """Processors at 80 percent, in the version that knows several metrics."""
    assert filled == DEFAULTS.fill(f"io.k8s.api.autoscaling.{version}.HorizontalPodAutoscalerSpec", spec)


def test_the_behavior_of_an_autoscaler_is_completed_in_both_directions() -> None:
    """Written values stay; an autoscaler without a behavior gets none."""
    written = {"metrics": [CPU], "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}}}
    filled = DEFAULTS.fill("io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerSpec", written)
    double = {"type": "Percent", "value": 100, "periodSeconds": 15}
    pods = {"type": "Pods", "value": 4, "periodSeconds": 15}
    assert {
        "scaleUp": {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [pods, double]},
        "scaleDown": {"stabilizationWindowSeconds": 60, "selectPolicy": "Max", "policies": [double]},
    } == filled["behavior"]
