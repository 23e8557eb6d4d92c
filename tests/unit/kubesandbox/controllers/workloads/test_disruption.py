"""PodDisruptionBudgets: what their status allows."""

from __future__ import annotations

import pytest

from kubesandbox.controllers.workloads.disruption import budget_status
from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.controllers.cluster import START, Cluster, in_cluster, workload

BUDGETS = "poddisruptionbudgets.policy"


def budget(**spec: object) -> JSONObject:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default", "generation": 1},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
    }


def ready(name: str, status: str = "True") -> JSONObject:
    return {"metadata": {"name": name}, "status": {"conditions": [{"type": "Ready", "status": status}]}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"minAvailable": 2}, (1, 2)),
        ({"minAvailable": "50%"}, (1, 2)),
        ({"minAvailable": "100%"}, (0, 4)),
        ({"maxUnavailable": 1}, (0, 3)),
        ({"maxUnavailable": "50%"}, (1, 2)),
        ({"maxUnavailable": 9}, (3, 0)),
    ],
)
def test_healthy_pods_beyond_what_is_desired_may_go(spec: JSONObject, expected: tuple[int, int]) -> None:
    """Three of four are ready."""
    pods = [ready("a"), ready("b"), ready("c"), ready("d", "False")]
    found = budget_status(budget(**spec), pods, 4, START)
    assert expected == (found["disruptionsAllowed"], found["desiredHealthy"])
    assert (3, 4, 1) == (found["currentHealthy"], found["expectedPods"], found["observedGeneration"])


def test_evicted_pods_count_as_gone_until_they_are() -> None:
    """For two minutes; and nothing may go where nothing is expected."""
    body = budget(minAvailable=1)
    body["status"] = {"disruptedPods": {"a": "2030-01-01T11:59:00Z", "b": "2030-01-01T11:00:00Z"}}
    found = budget_status(body, [ready("a"), ready("b")], 2, START)
    assert ({"a": "2030-01-01T11:59:00Z"}, 0) == (found["disruptedPods"], found["disruptionsAllowed"])
    assert 0 == budget_status(budget(minAvailable=0), [], 0, START)["disruptionsAllowed"]


@in_cluster
async def test_a_percentage_is_of_what_the_controller_wants(cluster: Cluster) -> None:
    """The Deployment has four replicas."""
    await cluster.create("deployments.apps", workload("Deployment", "web", replicas=4))
    await cluster.create(BUDGETS, budget(minAvailable="75%"))
    status = cluster.get(BUDGETS, "web")["status"]
    fields = ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed")
    assert [4, 3, 4, 1] == [status[field] for field in fields]
    assert ("True", "SufficientPods") == (status["conditions"][0]["status"], status["conditions"][0]["reason"])
