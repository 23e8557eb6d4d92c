"""Objects in other versions of their resource."""

from __future__ import annotations

import pytest

from kubesandbox.types.conversion import to_version
from kubesandbox.types.resources import ResourceType, builtin_table
from pyverno.kube.json import JSON, JSONObject, decode

TABLE = builtin_table("1.35")
NOTE = "autoscaling.alpha.kubernetes.io/"


def type_of(group: str, version: str, plural: str) -> ResourceType:
    """Return a built-in type."""
    found = TABLE.find(group, version, plural)
    assert found is not None
    return found


def autoscaler(*metrics: JSON, **spec: JSON) -> JSONObject:
    """Return an autoscaler of v2."""
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {"scaleTargetRef": reference, "maxReplicas": 5, "metrics": list(metrics), **spec},
    }


def cpu(percentage: int) -> JSONObject:
    """Return the metric that v1 has a field for."""
    return {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": percentage}},
    }


MEMORY = {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}}
QUEUE = {
    "type": "External",
    "external": {
        "metric": {"name": "q", "selector": {"matchLabels": {"a": "b"}}},
        "target": {"type": "Value", "value": "3"},
    },
}
PER_POD = {
    "type": "Pods",
    "pods": {"metric": {"name": "qps"}, "target": {"type": "AverageValue", "averageValue": "10"}},
}
PER_SERVICE = {
    "type": "Object",
    "object": {
        "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "s"},
        "metric": {"name": "o"},
        "target": {"type": "Value", "value": "7"},
    },
}
PER_CONTAINER = {
    "type": "ContainerResource",
    "containerResource": {
        "name": "cpu",
        "container": "c",
        "target": {"type": "Utilization", "averageUtilization": 50},
    },
}
V1 = type_of("autoscaling", "v1", "horizontalpodautoscalers")
V2 = type_of("autoscaling", "v2", "horizontalpodautoscalers")


def test_an_object_of_the_version_is_itself() -> None:
    """Nothing is copied without need."""
    body = autoscaler()
    assert body is to_version(V2, body)


def test_most_versions_differ_in_their_name_only() -> None:
    """The content of admission policies is the same in all versions."""
    policies = type_of("admissionregistration.k8s.io", "v1alpha1", "mutatingadmissionpolicies")
    body = {"apiVersion": "admissionregistration.k8s.io/v1beta1", "kind": policies.kind, "spec": {"x": 1}}
    assert {**body, "apiVersion": "admissionregistration.k8s.io/v1alpha1"} == to_version(policies, body)


def test_the_old_autoscaler_knows_the_utilization_of_cpu() -> None:
    """The first percentage becomes the field; other metrics go into an annotation."""
    old = to_version(V1, autoscaler(MEMORY, cpu(60)))
    assert ("autoscaling/v1", 60) == (old["apiVersion"], old["spec"]["targetCPUUtilizationPercentage"])
    assert "metrics" not in old["spec"]
    expected = [{"type": "Resource", "resource": {"name": "memory", "targetAverageValue": "1Gi"}}]
    assert expected == decode(old["metadata"]["annotations"][NOTE + "metrics"])


@pytest.mark.parametrize("metric", [MEMORY, QUEUE, PER_POD, PER_SERVICE, PER_CONTAINER, cpu(60)])
def test_metrics_survive_the_way_through_v1(metric: JSONObject) -> None:
    """Annotations keep the fields that v1 cannot express, and disappear on the way back."""
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 10, "policies": [{"type": "Pods", "value": 4}]}}
    body = autoscaler(metric, behavior=behavior)
    assert body == to_version(V2, to_version(V1, body))


def test_the_status_survives_the_way_through_v1() -> None:
    """Current metrics and conditions travel as annotations as well."""
    status = {
        "currentReplicas": 2,
        "desiredReplicas": 3,
        "currentMetrics": [
            {"type": "Resource", "resource": {"name": "memory", "current": {"averageValue": "1Gi"}}},
            {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 40}}},
        ],
        "conditions": [{"type": "AbleToScale", "status": "True"}],
    }
    old = to_version(V1, {**autoscaler(MEMORY), "status": status})
    assert {"currentReplicas": 2, "desiredReplicas": 3, "currentCPUUtilizationPercentage": 40} == old["status"]
    assert status == to_version(V2, old)["status"]


def test_an_annotation_that_is_no_json_is_dropped() -> None:
    """Users can write anything into annotations."""
    old = {"apiVersion": "autoscaling/v1", "metadata": {"annotations": {NOTE + "metrics": "{"}}, "spec": {}}
    assert {"apiVersion": "autoscaling/v2", "metadata": {}, "spec": {}} == to_version(V2, old)


def test_events_have_other_names_in_their_group() -> None:
    """Field names are converted both ways, and the core group writes empty fields, too."""
    core, new = type_of("", "v1", "events"), type_of("events.k8s.io", "v1", "events")
    body = {
        "apiVersion": "v1",
        "kind": "Event",
        "involvedObject": {"name": "web"},
        "message": "hello",
        "source": {"component": "kubelet"},
        "count": 3,
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "eventTime": None,
        "reportingComponent": "",
        "reportingInstance": "",
    }
    converted = to_version(new, body)
    assert {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "regarding": {"name": "web"},
        "note": "hello",
        "deprecatedSource": {"component": "kubelet"},
        "deprecatedCount": 3,
        "deprecatedFirstTimestamp": "2026-01-01T00:00:00Z",
        "deprecatedLastTimestamp": "2026-01-01T00:00:00Z",
        "eventTime": None,
    } == converted
    assert body == to_version(core, converted)
