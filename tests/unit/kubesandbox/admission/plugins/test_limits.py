"""LimitRanger."""

from __future__ import annotations

import pytest

from kubesandbox.admission.plugins.limits import admit_limits, check_limits
from pyverno.kube.status import StatusError
from tests.support.admissionstage import cluster, pod, request


def limit_range(*limits):
    metadata = {"name": "limits", "namespace": "x"}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": {"limits": list(limits)}}


def container(name="a", **resources):
    return {"name": name, "image": "nginx", **({"resources": resources} if resources else {})}


def refusal(body, *limits) -> str:
    _, view = cluster(limit_range(*limits))
    with pytest.raises(StatusError) as refused:
        check_limits(request(body), view)
    assert 403 == refused.value.status
    return refused.value.message.partition(" is forbidden: ")[2]


def test_defaults_fill_what_containers_leave_out():
    """Requests and limits are filled by name, and an annotation of the pod records it."""
    limit = {"type": "Container", "default": {"cpu": "500m", "memory": "1Gi"}, "defaultRequest": {"cpu": "100m"}}
    _, view = cluster(limit_range(limit))
    body = pod(container(limits={"cpu": "2"}), initContainers=[container("i")])
    found = admit_limits(request(body), view).object
    assert {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "100m"}} == (
        found["spec"]["containers"][0]["resources"]
    )
    expected = (
        "LimitRanger plugin set: cpu request for container a; memory limit for container a; cpu request for init "
        "container i; cpu, memory limit for init container i"
    )
    assert expected == found["metadata"]["annotations"]["kubernetes.io/limit-ranger"]


def test_complete_pods_are_left_alone():
    """No annotation without a change."""
    _, view = cluster(limit_range({"type": "Container", "default": {"cpu": "1"}}))
    attributes = request(pod(container(limits={"cpu": "2"})))
    assert attributes is admit_limits(attributes, view)


@pytest.mark.parametrize(
    ("limit", "resources", "expected"),
    [
        (
            {"min": {"cpu": "50m"}},
            {"requests": {"cpu": "10m"}},
            "minimum cpu usage per Container is 50m, but request is 10m",
        ),
        ({"min": {"cpu": "50m"}}, {}, "minimum cpu usage per Container is 50m.  No request is specified"),
        (
            {"max": {"cpu": "2"}},
            {"limits": {"cpu": "2001m"}},
            "maximum cpu usage per Container is 2, but limit is 2001m",
        ),
        ({"max": {"cpu": "2"}}, {}, "maximum cpu usage per Container is 2.  No limit is specified"),
        (
            {"maxLimitRequestRatio": {"memory": "3"}},
            {"limits": {"memory": "2Gi"}, "requests": {"memory": "128Mi"}},
            "memory max limit to request ratio per Container is 3, but provided ratio is 16.000000",
        ),
        (
            {"maxLimitRequestRatio": {"memory": "3"}},
            {"limits": {"memory": "2Gi"}},
            "memory max limit to request ratio per Container is 3, but no request is specified or request is 0",
        ),
    ],
)
def test_containers_stay_within_bounds(limit, resources, expected):
    """Each bound has its own error text."""
    assert expected == refusal(pod(container(**resources)), {"type": "Container", **limit})


def test_pods_are_counted_together():
    """The bound of a pod limits the sum of its containers; several problems are listed."""
    body = pod(container(limits={"cpu": "2"}), container("b", limits={"cpu": "2"}))
    assert "maximum cpu usage per Pod is 3, but limit is 4" == refusal(body, {"type": "Pod", "max": {"cpu": "3"}})
    both = refusal(body, {"type": "Pod", "max": {"cpu": "3"}}, {"type": "Container", "max": {"cpu": "1"}})
    expected = "[maximum cpu usage per Pod is 3, but limit is 4, maximum cpu usage per Container is 1, but limit is 2]"
    assert expected == both


def test_claims_stay_within_bounds():
    """Storage has a least and a most."""
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "x"},
        "spec": {"resources": {"requests": {"storage": "10Gi"}}},
    }
    expected = "maximum storage usage per PersistentVolumeClaim is 5Gi, but request is 10Gi"
    assert expected == refusal(claim, {"type": "PersistentVolumeClaim", "max": {"storage": "5Gi"}})
    assert "minimum storage usage per PersistentVolumeClaim is 20Gi, but request is 10Gi" == refusal(
        claim, {"type": "PersistentVolumeClaim", "min": {"storage": "20Gi"}}
    )
