"""Exit codes of containers."""

from __future__ import annotations

from datetime import timedelta

from kubesandbox.controllers.nodes.podends import (
    EXIT_CODE,
    exit_codes,
    finished_status,
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


def test_pods_that_are_not_restarted_come_to_an_end() -> None:
    """An annotation gives the exit code; a value that is not a number is ignored."""
    body = pod("web")
    assert [False, False, True, True] == [
        will_finish({**body, "spec": {**body["spec"], **spec}})
        for spec in ({}, *({"restartPolicy": each} for each in ("Always", "Never", "OnFailure")))
    ]
    assert [3, 0, 0] == [exit_codes(annotated(body, all=text))["main"] for text in ("3", "x", "")]


def test_codes_may_be_those_of_one_container() -> None:
    """The container comes first."""
    body = pod("web", containers=[{"name": "a"}, {"name": "b"}])
    assert {"a": 1, "b": 3} == exit_codes(annotated(body, all="1", b="3"))


def test_pods_that_are_stopped_have_failed() -> None:
    """Their exit code is that of the signal that ends containers."""
    status = stopped_status(running(pod("web", restartPolicy="OnFailure")), LATER)
    ended = status["containerStatuses"][0]["state"]["terminated"]
    assert ("Failed", 137) == (status["phase"], ended["exitCode"])
