"""ResourceQuota."""

from __future__ import annotations

import pytest

from kubesandbox.admission.plugins.quota import check_quota, used_amounts
from pyverno.engine.request import Operation
from pyverno.kube.status import StatusError
from tests.support.admissionstage import cluster, config_map, pod, request


def quota(name="q", scopes=None, **hard):
    spec = {"hard": {key.replace("__", "/").replace("_", "."): value for key, value in hard.items()}}
    if scopes:
        spec["scopes"] = scopes
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name, "namespace": "x"}, "spec": spec}


def sized(name="p", **resources):
    return pod({"name": "a", "image": "nginx", "resources": resources}, name=name)


def refusal(body, *bodies, **options) -> str:
    _, view = cluster(*bodies)
    with pytest.raises(StatusError) as refused:
        check_quota(request(body, **options), view)
    assert 403 == refused.value.status
    return refused.value.message.partition(" is forbidden: ")[2]


def allowed(body, *bodies, **options) -> None:
    _, view = cluster(*bodies)
    check_quota(request(body, **options), view)


def test_objects_are_counted():
    """The message has the requested, the used and the allowed amount."""
    bodies = (quota(pods="2"), pod(name="one"), pod(name="two"))
    expected = "exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2"
    assert expected == refusal(pod(name="three"), *bodies)
    allowed(pod(name="two"), *bodies[:2])


def test_any_resource_can_be_counted():
    """`count/` takes all resources."""
    expected = "exceeded quota: q, requested: count/configmaps=1, used: count/configmaps=0, limited: count/configmaps=0"
    assert expected == refusal(config_map(), quota(count__configmaps="0"))


def test_requests_are_summed():
    """All amounts that do not fit are listed in order."""
    hard = quota(requests_cpu="1", limits_memory="1Gi")
    present = sized("one", requests={"cpu": "600m"}, limits={"memory": "512Mi"})
    asked = sized("two", requests={"cpu": "500m"}, limits={"memory": "1Gi"})
    expected = (
        "exceeded quota: q, requested: limits.memory=1Gi,requests.cpu=500m, used: limits.memory=512Mi,"
        "requests.cpu=600m, limited: limits.memory=1Gi,requests.cpu=1"
    )
    assert expected == refusal(asked, hard, present)
    allowed(sized("two", requests={"cpu": "400m"}, limits={"memory": "512Mi"}), hard, present)


def test_containers_must_declare_what_a_quota_counts():
    """CPU and memory that are counted must be stated."""
    expected = "failed quota: q: must specify limits.memory for: a; requests.cpu for: a"
    assert expected == refusal(pod(), quota(requests_cpu="1", limits_memory="1Gi"))


def test_finished_pods_make_room():
    """A pod that has ended does not count."""
    allowed(pod(name="two"), quota(pods="1"), {**pod(name="one"), "status": {"phase": "Failed"}})


def test_updates_pay_the_difference():
    """A service that becomes a node port pays for its ports; one that stays the same pays nothing."""

    def service(kind):
        head = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "x"}}
        return {**head, "spec": {"type": kind, "ports": [{"port": 1}]}}

    hard = quota(services_nodeports="0", services="0")
    expected = (
        "exceeded quota: q, requested: services.nodeports=1, used: services.nodeports=0, limited: services.nodeports=0"
    )
    change = {"old": service("ClusterIP"), "operation": Operation.UPDATE}
    assert expected == refusal(service("NodePort"), hard, **change)
    allowed(service("ClusterIP"), hard, **change)


def test_a_quota_with_scopes_counts_nothing():
    """Scopes are not implemented, and such a quota must not refuse pods outside them."""
    allowed(pod(), quota(scopes=["Terminating"], pods="0"))


def test_used_amounts_can_be_requested():
    """The quota controller writes the same count into the status."""
    hard = quota(pods="9", requests_cpu="9", count__configmaps="9")
    _, view = cluster(hard, sized("one", requests={"cpu": "600m"}), config_map())
    found = used_amounts("x", view, ("pods", "requests.cpu", "count/configmaps"))
    assert {"pods": "1", "requests.cpu": "600m", "count/configmaps": "1"} == {
        name: str(amount) for name, amount in found.items()
    }
