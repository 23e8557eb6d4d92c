"""The status of a Deployment."""

from __future__ import annotations

from datetime import timedelta

from kubesandbox.controllers.clock import stamp
from kubesandbox.controllers.workloads.deploymentstatus import (
    deadline_in,
    deployment_status,
    is_complete,
    with_progress,
)
from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.controllers.cluster import START


def deployment(replicas: int = 2, **status: object) -> JSONObject:
    spec = {"replicas": replicas, "progressDeadlineSeconds": 60}
    return {"metadata": {"name": "web", "generation": 4}, "spec": spec, "status": status}


def replica_set(name: str, replicas: int, ready: int) -> JSONObject:
    status = {"replicas": replicas, "readyReplicas": ready, "availableReplicas": ready}
    return {"metadata": {"name": name}, "spec": {"replicas": replicas}, "status": status}


def test_counts_are_sums_and_zeros_are_left_out() -> None:
    """Unavailable replicas are the wanted ones without the available ones."""
    new = replica_set("new", 2, 1)
    status = deployment_status(deployment(), [replica_set("old", 1, 1), new], new, START)
    counts = {field: value for field, value in status.items() if field != "conditions"}
    assert {
        "observedGeneration": 4,
        "replicas": 3,
        "updatedReplicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "unavailableReplicas": 1,
    } == counts
    assert "unavailableReplicas" not in deployment_status(deployment(0), [], None, START)


def test_progress_is_news_each_time_and_completion_only_once() -> None:
    """The time of the last update moves with progress; that of the transition does not."""
    new = replica_set("new", 2, 1)
    first = deployment_status(deployment(), [new], new, START)
    progressing = first["conditions"][-1]
    assert ("Progressing", "ReplicaSetUpdated") == (progressing["type"], progressing["reason"])
    later = START + timedelta(seconds=30)
    done = replica_set("new", 2, 2)
    second = deployment_status(deployment(**first), [done], done, later)
    finished = second["conditions"][-1]
    expected = ("NewReplicaSetAvailable", 'ReplicaSet "new" has successfully progressed.', stamp(later), stamp(START))
    fields = ("reason", "message", "lastUpdateTime", "lastTransitionTime")
    assert expected == tuple(finished[field] for field in fields)
    assert is_complete(deployment(), second)
    assert second == deployment_status(deployment(**second), [done], done, later + timedelta(seconds=99))


def test_without_progress_the_deadline_passes() -> None:
    """It counts from the last progress, and what is complete is never late."""
    new = replica_set("new", 2, 1)
    status = deployment_status(deployment(), [new], new, START)
    assert 61 == deadline_in(deployment(), status, START)
    later = START + timedelta(seconds=61)
    late = deployment_status(deployment(**status), [new], new, later)
    assert ("False", "ProgressDeadlineExceeded") == (late["conditions"][-1]["status"], late["conditions"][-1]["reason"])
    assert None is deadline_in(deployment(), late, later)
    without = {**deployment(), "spec": {"replicas": 2}}
    assert ["Available"] == [item["type"] for item in deployment_status(without, [new], new, START)["conditions"]]


def test_a_failure_of_a_replica_set_is_passed_on_and_taken_back() -> None:
    """The condition has the reason and message of the ReplicaSet."""
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "no room"}
    broken = replica_set("new", 2, 0)
    broken["status"]["conditions"] = [failure]
    status = deployment_status(deployment(), [broken], broken, START)
    found = status["conditions"][-1]
    assert ("ReplicaFailure", "FailedCreate", "no room") == (found["type"], found["reason"], found["message"])
    fine = replica_set("new", 2, 1)
    again = deployment_status(deployment(**status), [fine], fine, START)
    assert "ReplicaFailure" not in [item["type"] for item in again["conditions"]]


def test_progress_can_be_set_alone() -> None:
    """The counts stay as they are."""
    found = with_progress(deployment(replicas=3, updatedReplicas=1), "Unknown", "DeploymentPaused", "x", START)
    assert (1, "DeploymentPaused") == (found["updatedReplicas"], found["conditions"][0]["reason"])
