"""The pods of a DaemonSet."""

from __future__ import annotations

from kubesandbox.controllers.workloads.daemonpods import belongs_on, daemon_pod, node_of, plan
from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.controllers.cluster import START

SET: JSONObject = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "agent", "namespace": "n", "uid": "u"},
    "spec": {"template": {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": []}}},
}
READY = [{"type": "Ready", "status": "True"}]


def node(name: str, **spec: object) -> JSONObject:
    return {"metadata": {"name": name}, "spec": spec}


def pod(name: str, where: str, digest: str = "new", phase: str = "Running") -> JSONObject:
    return {
        "metadata": {"name": name, "labels": {"controller-revision-hash": digest}},
        "spec": {"nodeName": where},
        "status": {"phase": phase, "conditions": READY if phase == "Running" else []},
    }


def short(pods: list[JSONObject], nodes: tuple[str, ...] = ("a", "b"), **spec: object) -> tuple[list[str], list[str]]:
    body = {**SET, "spec": {**SET["spec"], **spec}}
    found = plan(body, [node(name) for name in nodes], pods, "new", START)
    return list(found.create), [item["metadata"]["name"] for item in found.delete]


def test_a_pod_is_bound_to_its_node_by_affinity() -> None:
    """The pod tolerates the taints that keep other pods away."""
    body = daemon_pod(SET, "a", "h")
    assert "a" == node_of(body)
    assert {"app": "agent", "controller-revision-hash": "h", "pod-template-generation": "1"} == body["metadata"][
        "labels"
    ]
    keys = {item["key"].rpartition("/")[2] for item in body["spec"]["tolerations"]}
    assert {"not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure", "unschedulable"} == keys
    assert belongs_on(SET, node("a", unschedulable=True))
    assert not belongs_on(SET, node("a", taints=[{"key": "x", "effect": "NoSchedule"}]))


def test_own_affinity_and_tolerations_stay() -> None:
    """Each of the terms is narrowed to the node; pods in the host network have one more toleration."""
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["x"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term, term]}}
    own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    spec = {"containers": [], "affinity": {"nodeAffinity": required}, "tolerations": [own], "hostNetwork": True}
    body = daemon_pod({**SET, "spec": {"template": {"spec": spec}}}, "a", "h")
    terms = body["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert 2 == len(terms["nodeSelectorTerms"])
    assert all("matchFields" in item and "matchExpressions" in item for item in terms["nodeSelectorTerms"])
    tolerations = body["spec"]["tolerations"]
    assert (own, 7) == (tolerations[0], len(tolerations))
    assert "node.kubernetes.io/network-unavailable" == tolerations[-1]["key"]


def test_nodes_lack_have_and_lose_pods() -> None:
    """One per node, none elsewhere, none that has ended."""
    assert (["a", "b"], []) == short([])
    assert ([], []) == short([pod("x", "a"), pod("y", "b")])
    assert (["b"], ["z"]) == short([pod("x", "a"), pod("z", "gone")])
    assert (["b"], ["y"]) == short([pod("x", "a"), pod("y", "a")])
    assert ([], ["y"]) == short([pod("x", "a"), pod("y", "b", phase="Failed")])


def test_old_pods_go_as_far_as_may_lack() -> None:
    """Broken ones at once, healthy ones one by one unless more may lack."""
    old = [pod("x", "a", "old"), pod("y", "b", "old")]
    assert ([], ["x"]) == short(old)
    assert ([], ["y"]) == short([old[0], pod("y", "b", "old", "Pending")])
    assert ([], []) == short([old[0], pod("y", "b", "new", "Pending")])
    assert ([], ["x", "y"]) == short(old, updateStrategy={"rollingUpdate": {"maxUnavailable": "100%"}})
    assert ([], []) == short(old, updateStrategy={"type": "OnDelete"})
