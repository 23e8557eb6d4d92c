"""Fitting pods on nodes."""

from __future__ import annotations

import pytest

from kubesandbox.controllers.nodes.fitting import no_room_message, tolerates, unfit_reason
from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.controllers.cluster import pod

NODE: JSONObject = {"metadata": {"name": "n", "labels": {"zone": "a", "size": "12"}}}
SELECTOR = "node(s) didn't match Pod's node affinity/selector"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (pod("a"), ""),
        (pod("a", nodeName="other"), "node(s) didn't match the requested node name"),
        (pod("a", nodeSelector={"zone": "a"}), ""),
        (pod("a", nodeSelector={"zone": "b"}), SELECTOR),
    ],
)
def test_a_pod_fits_or_not_for_a_reason(body: JSONObject, expected: str) -> None:
    """The reasons have the texts of the Kubernetes scheduler."""
    assert expected == unfit_reason(body, NODE)


def test_taints_are_tolerated_or_not() -> None:
    """By key, value and effect; an empty field matches everything."""
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    node = {**NODE, "spec": {"taints": [taint]}}
    assert "node(s) had untolerated taint(s)" == unfit_reason(pod("a"), node)
    assert "" == unfit_reason(pod("a"), {**NODE, "spec": {"taints": [{**taint, "effect": "PreferNoSchedule"}]}})
    assert tolerates([{"key": "k", "value": "v"}], taint)
    assert tolerates([{"key": "k", "operator": "Exists", "effect": "NoSchedule"}], taint)
    assert not tolerates([{"key": "k", "operator": "Exists", "effect": "NoExecute"}], taint)
    assert not tolerates([{"key": "k", "value": "w"}], taint)
    assert not tolerates([{"key": "other", "operator": "Exists"}], taint)


def test_reasons_are_counted_over_nodes() -> None:
    """Sorted as texts."""
    unschedulable = "node(s) were unschedulable"
    assert (
        f"0/3 nodes are available: 1 {unschedulable}, 2 {SELECTOR}. preemption: 0/3 nodes are available: "
        "3 Preemption is not helpful for scheduling."
    ) == no_room_message([SELECTOR, SELECTOR, unschedulable])
    assert "no nodes available to schedule pods" == no_room_message([])
