"""Whether pods fit on nodes."""

from __future__ import annotations

import pytest

from kubesandbox.controllers.nodes.fitting import fits, no_room_message, tolerates, unfit_reasons
from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.controllers.cluster import pod

NODE: JSONObject = {
    "metadata": {"name": "n", "labels": {"zone": "a", "size": "12"}},
    "status": {"allocatable": {"cpu": "2", "memory": "1Gi", "pods": "2"}},
}
SELECTOR = "node(s) didn't match Pod's node affinity/selector"


def affine(*terms: JSONObject) -> JSONObject:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return pod("a", affinity={"nodeAffinity": required})


def expression(key: str, operator: str, *values: str) -> JSONObject:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def wants(**requests: str) -> JSONObject:
    return pod("a", containers=[{"name": "c", "image": "i", "resources": {"requests": requests}}])


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (pod("a"), []),
        (pod("a", nodeName="other"), ["node(s) didn't match the requested node name"]),
        (pod("a", nodeSelector={"zone": "a"}), []),
        (pod("a", nodeSelector={"zone": "b"}), [SELECTOR]),
        (affine(expression("zone", "In", "a", "b")), []),
        (affine(expression("zone", "NotIn", "a")), [SELECTOR]),
        (affine(expression("size", "Gt", "10")), []),
        (affine(expression("size", "Lt", "10")), [SELECTOR]),
        (affine(expression("zone", "Gt", "10")), [SELECTOR]),
        (affine(expression("zone", "In", "b"), expression("size", "Exists")), []),
        (affine({}), [SELECTOR]),
        (affine({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}), []),
        (affine({"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n"]}]}), [SELECTOR]),
        (wants(cpu="1500m", memory="1Gi"), []),
        (wants(cpu="2001m", memory="2Gi"), ["Insufficient cpu", "Insufficient memory"]),
        (wants(gpu="1"), ["Insufficient gpu"]),
    ],
)
def test_a_pod_fits_or_not_for_a_reason(body: JSONObject, expected: list[str]) -> None:
    """In the scheduler's words."""
    assert expected == unfit_reasons(body, NODE, [])


def test_pods_that_are_there_take_room() -> None:
    """A set of pods asks where a pod belongs, however full the node is."""
    running = wants(cpu="1")
    assert ["Insufficient cpu"] == unfit_reasons(wants(cpu="1500m"), NODE, [running])
    assert ["Too many pods"] == unfit_reasons(pod("a"), NODE, [running, running])
    assert fits(wants(cpu="100"), NODE)


def test_taints_are_tolerated_or_not() -> None:
    """Key, value and effect; what stands empty fits all."""
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    node = {**NODE, "spec": {"taints": [taint]}}
    assert ["node(s) had untolerated taint(s)"] == unfit_reasons(pod("a"), node, [])
    assert [] == unfit_reasons(pod("a"), {**NODE, "spec": {"taints": [{**taint, "effect": "PreferNoSchedule"}]}}, [])
    assert tolerates([{"key": "k", "value": "v"}], taint)
    assert tolerates([{"key": "k", "operator": "Exists", "effect": "NoSchedule"}], taint)
    assert not tolerates([{"key": "k", "operator": "Exists", "effect": "NoExecute"}], taint)
    assert not tolerates([{"key": "k", "value": "w"}], taint)
    assert not tolerates([{"key": "other", "operator": "Exists"}], taint)


def test_reasons_are_counted_over_nodes() -> None:
    """Sorted as texts; whether preemption would help is said at the end."""
    text = no_room_message([[SELECTOR], [SELECTOR], ["Insufficient cpu"]])
    assert (
        f"0/3 nodes are available: 1 Insufficient cpu, 2 {SELECTOR}. preemption: 0/3 nodes are available: "
        "1 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling."
    ) == text
    assert "no nodes available to schedule pods" == no_room_message([])
