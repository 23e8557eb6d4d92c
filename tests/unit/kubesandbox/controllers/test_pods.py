"""Pods that count as active, and the order in which pods are deleted."""

from __future__ import annotations

from kubesandbox.controllers.pods import available_in, deletion_order, is_active, is_available, is_ready, pod_from
from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.controllers.cluster import START


def pod(name: str, phase: str = "Running", *, ready: str = "", **metadata: object) -> JSONObject:
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": ready}] if ready else []
    created = {"creationTimestamp": "2030-01-01T10:00:00Z"}
    return {
        "metadata": {"name": name, **created, **metadata},
        "spec": {"nodeName": "n"},
        "status": {"phase": phase, "conditions": conditions},
    }


EARLY, LATE = "2030-01-01T10:00:00Z", "2030-01-01T11:59:50Z"


def test_pods_go_in_the_order_of_upstream() -> None:
    """Unscheduled, pending, not ready, cheap, lately ready, young; the best one last."""
    unscheduled = {**pod("unscheduled", "Pending"), "spec": {}}
    young = pod("young", ready=EARLY, creationTimestamp="2030-01-01T11:00:00Z")
    cheap = pod("cheap", ready=EARLY, annotations={"controller.kubernetes.io/pod-deletion-cost": "-1"})
    restarted = pod("restarted", ready=EARLY)
    restarted["status"]["containerStatuses"] = [{"restartCount": 2}]
    pods = [
        pod("best", ready=EARLY),
        young,
        restarted,
        pod("late", ready=LATE),
        cheap,
        pod("unready"),
        pod("pending", "Pending"),
        unscheduled,
    ]
    expected = ["unscheduled", "pending", "unready", "cheap", "late", "restarted", "young", "best"]
    assert expected == [body["metadata"]["name"] for body in deletion_order(pods, START)]


def test_a_node_with_more_of_them_gives_up_first() -> None:
    """Two on one node, one on another."""
    alone = {**pod("a", ready=EARLY), "spec": {"nodeName": "other"}}
    order = deletion_order([alone, pod("b", ready=EARLY), pod("c", ready=EARLY)], START)
    assert "a" == order[-1]["metadata"]["name"]


def test_ended_and_leaving_pods_do_not_count() -> None:
    """Such pods do not count as replicas."""
    leaving = pod("a", deletionTimestamp=EARLY)
    assert [True, False, False, False] == [
        is_active(body) for body in (pod("a"), pod("a", "Failed"), pod("a", "Succeeded"), leaving)
    ]


def test_availability_takes_time() -> None:
    """With `minReadySeconds: 10` the pod is available ten seconds after it became ready."""
    body = pod("a", ready="2030-01-01T11:59:55Z")
    assert (True, True, False, 5.0) == (
        is_ready(body),
        is_available(body, 0, START),
        is_available(body, 10, START),
        available_in(body, 10, START),
    )
    assert not is_available(pod("b"), 0, START)


def test_a_pod_takes_after_its_template() -> None:
    """Labels, annotations, finalizers and specification; the name is its owner's to choose."""
    metadata = {"labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["e/f"], "name": "no"}
    owner = {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "x", "namespace": "n", "uid": "u"}}
    body = pod_from({"metadata": metadata, "spec": {"containers": []}}, owner, generate_name="x-")
    assert {"apiVersion": "v1", "kind": "Pod"} == {key: body[key] for key in ("apiVersion", "kind")}
    expected = {key: metadata[key] for key in ("labels", "annotations", "finalizers")}
    assert expected == {key: body["metadata"][key] for key in expected}
    assert ("x-", None, "u") == (
        body["metadata"]["generateName"],
        body["metadata"].get("name"),
        body["metadata"]["ownerReferences"][0]["uid"],
    )
