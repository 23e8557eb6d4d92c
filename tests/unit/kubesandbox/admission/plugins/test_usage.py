"""Resource usage of objects, as quotas count it."""

from __future__ import annotations

import pytest

from kubesandbox.admission.plugins.usage import pod_amounts, usage_of
from pyverno.kube.gvk import GVK
from tests.support.admissionstage import TABLE, config_map, pod


def cpu(amount, **fields):
    return {"name": "a", "resources": {"requests": {"cpu": amount}}, **fields}


def texts(amounts):
    return {name: str(amount) for name, amount in amounts.items()}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": [cpu("1"), cpu("500m")]}, "1500m"),
        ({"containers": [cpu("1")], "initContainers": [cpu("3"), cpu("2")]}, "3"),
        ({"containers": [cpu("1")], "initContainers": [cpu("1", restartPolicy="Always")]}, "2"),
        ({"containers": [cpu("1")], "initContainers": [cpu("1", restartPolicy="Always"), cpu("3")]}, "4"),
        ({"containers": [cpu("1")], "resources": {"requests": {"cpu": "5"}}}, "5"),
    ],
)
def test_a_pod_requests_the_most_that_it_needs_at_a_time(spec, expected):
    """Containers run together, init containers one after another, restarting ones beside them."""
    assert {"cpu": expected} == texts(pod_amounts(spec, "requests"))


def test_pods_count_under_several_names():
    """Requests count with and without their prefix, limits with it."""
    body = pod(
        {"name": "a", "resources": {"requests": {"cpu": "1", "example.com/gpu": "2"}, "limits": {"memory": "1Gi"}}}
    )
    expected = {
        "count/pods": "1",
        "pods": "1",
        "cpu": "1",
        "requests.cpu": "1",
        "requests.example.com/gpu": "2",
        "limits.memory": "1Gi",
    }
    assert expected == texts(usage_of(TABLE.by_kind(GVK("", "v1", "Pod")), body))


def test_pods_that_have_ended_only_count_as_objects():
    """A finished pod takes no more."""
    body = {**pod(), "status": {"phase": "Succeeded"}}
    assert {"count/pods": "1"} == texts(usage_of(TABLE.by_kind(GVK("", "v1", "Pod")), body))


@pytest.mark.parametrize(
    ("spec", "node_ports", "balancers"),
    [
        ({"type": "ClusterIP", "ports": [{}]}, "0", "0"),
        ({"type": "NodePort", "ports": [{}, {}]}, "2", "0"),
        ({"type": "LoadBalancer", "ports": [{}]}, "1", "1"),
        ({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False, "ports": [{}]}, "0", "1"),
    ],
)
def test_services_count_their_ports(spec, node_ports, balancers):
    """Node ports and load balancers have counts of their own."""
    usage = texts(usage_of(TABLE.by_kind(GVK("", "v1", "Service")), {"spec": spec}))
    assert (node_ports, balancers) == (usage["services.nodeports"], usage["services.loadbalancers"])


def test_claims_count_by_their_class():
    """Storage counts in all and by class."""
    spec = {"storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}}
    usage = texts(usage_of(TABLE.by_kind(GVK("", "v1", "PersistentVolumeClaim")), {"spec": spec}))
    assert "1Gi" == usage["fast.storageclass.storage.k8s.io/requests.storage"] == usage["requests.storage"]


def test_every_object_counts_by_its_resource():
    """`count/` knows all resources, some have a plain name too."""
    usage = texts(usage_of(TABLE.by_kind(GVK("", "v1", "ConfigMap")), config_map()))
    assert {"count/configmaps": "1", "configmaps": "1"} == usage
    deployment = usage_of(TABLE.by_kind(GVK("apps", "v1", "Deployment")), {})
    assert ["count/deployments.apps"] == list(deployment)
