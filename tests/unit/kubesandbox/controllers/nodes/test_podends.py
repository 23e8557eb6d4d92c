"""How containers end."""

from __future__ import annotations

from datetime import timedelta

from kubesandbox.controllers.nodes.podends import (
    EXIT_CODE,
    exit_codes,
    finished_status,
    restart_delay,
    restarted_status,
    stopped_status,
    will_finish,
)
from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.controllers.cluster import START, pod
from tests.unit.kubesandbox.controllers.nodes.test_podstatus import running

LATER = START + timedelta(seconds=5)


def annotated(body: JSONObject, **notes: str) -> JSONObject:
    """Return a pod with these annotations, whose names begin like that of the exit code."""
    names = {EXIT_CODE + (f".{name.lstrip('_')}" if name != "all" else ""): text for name, text in notes.items()}
    return {**body, "metadata": {**body["metadata"], "annotations": names}}


def test_containers_end_with_their_code() -> None:
    """Zero is success; the pod is no longer ready in either case."""
    body = running(pod("web"))
    for code, phase, reason in ((0, "Succeeded", "Completed"), (2, "Failed", "Error")):
        status = finished_status(body, {"main": code}, LATER)
        ended = status["containerStatuses"][0]["state"]["terminated"]
        assert (phase, code, reason) == (status["phase"], ended["exitCode"], ended["reason"])
        assert ("2030-01-01T12:00:00Z", "2030-01-01T12:00:05Z") == (ended["startedAt"], ended["finishedAt"])
        states = {item["type"]: item["status"] for item in status["conditions"]}
        assert ("False", "True") == (states["Ready"], states["PodScheduled"])


def test_only_pods_of_jobs_come_to_an_end() -> None:
    """With the code that an annotation gives; what is no number is none."""
    body = pod("web")
    assert not will_finish(body)
    body["metadata"]["ownerReferences"] = [{"kind": "Job", "controller": True}]
    assert will_finish(body)
    assert [3, 0, 0] == [exit_codes(annotated(body, all=text))["main"] for text in ("3", "x", "")]


def test_codes_may_be_those_of_one_container_or_completion() -> None:
    """The container comes first."""
    body = pod("web", containers=[{"name": "a"}, {"name": "b"}])
    body = annotated(body, all="1", _7="2", b="3")
    assert {"a": 1, "b": 3} == exit_codes(body)
    body["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] = "7"
    assert {"a": 2, "b": 3} == exit_codes(body)


def test_codes_are_those_of_one_run_after_another() -> None:
    """In the same pod, and in the pods that follow each other in a completion."""
    body = annotated(pod("web"), all="1,2,0")
    body["status"] = {"containerStatuses": [{"name": "main", "restartCount": 1}]}
    assert {"main": 2} == exit_codes(body)
    body["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"] = "4"
    assert {"main": 0} == exit_codes(body)


def test_failed_containers_start_again_in_their_pod() -> None:
    """At once after the first failure, then after ten seconds, twenty, and so on; the pod runs on."""
    body = running(pod("web", restartPolicy="OnFailure"))
    assert restart_delay(body, START) is None
    now, waits = START, []
    for _ in range(3):
        body["status"] = finished_status(body, {"main": 1}, now)
        assert "Running" == body["status"]["phase"]
        wait = restart_delay(body, now)
        assert wait is not None
        waits.append(wait)
        now += timedelta(seconds=wait)
        body["status"] = restarted_status(body, now)
    container = body["status"]["containerStatuses"][0]
    assert ([0, 10, 20], 3, 1) == (
        waits,
        container["restartCount"],
        container["lastState"]["terminated"]["exitCode"],
    )
    assert "Succeeded" == finished_status(body, {"main": 0}, now)["phase"]


def test_containers_that_wait_to_start_again_say_so() -> None:
    """As kubectl shows it."""
    body = running(pod("web", restartPolicy="OnFailure"))
    body["status"]["containerStatuses"][0]["restartCount"] = 2
    status = finished_status(body, {"main": 1}, LATER)
    waiting = status["containerStatuses"][0]["state"]["waiting"]
    assert "CrashLoopBackOff" == waiting["reason"]
    assert waiting["message"].startswith("back-off 20s restarting failed container=main pod=web_default(")
    ready = next(item for item in status["conditions"] if item["type"] == "Ready")
    assert ("False", "containers with unready status: [main]") == (ready["status"], ready["message"])
    assert restarted_status({**body, "status": status}, LATER)["containerStatuses"] == status["containerStatuses"]


def test_pods_that_are_stopped_have_failed() -> None:
    """By the signal that ends containers."""
    status = stopped_status(running(pod("web", restartPolicy="OnFailure")), LATER)
    ended = status["containerStatuses"][0]["state"]["terminated"]
    assert ("Failed", 137) == (status["phase"], ended["exitCode"])
