"""Events: written in order, counted, and aggregated when there are too many."""

from __future__ import annotations

from typing import Any

from kubesandbox.controllers.recorder import Recorder
from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.controllers.cluster import Cluster, in_cluster

ABOUT: JSONObject = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "default", "uid": "u", "resourceVersion": "7"},
}


def recorded(cluster: Cluster) -> list[JSONObject]:
    found = [body for body in cluster.client.list("events", "default") if body["source"]["component"] == "test"]
    return sorted(found, key=lambda body: int(body["metadata"]["resourceVersion"]))


async def told(cluster: Cluster, *texts: str) -> list[JSONObject]:
    recorder = Recorder(cluster.client, cluster.clock, "test")
    for text in texts:
        recorder.warning(ABOUT, "Failed", text)
    while not recorder.is_idle:
        await cluster.settle()
    return recorded(cluster)


@in_cluster
async def test_the_same_again_raises_a_count(cluster: Cluster) -> None:
    """The time of the last occurrence moves, too."""
    found = await told(cluster, "x", "y", "x")
    assert [("y", 1), ("x", 2)] == [(body["message"], body["count"]) for body in found]
    body = found[1]
    expected = {
        "kind": "Pod",
        "namespace": "default",
        "name": "web",
        "uid": "u",
        "apiVersion": "v1",
        "resourceVersion": "7",
    }
    assert (expected, "Warning", "Failed") == (body["involvedObject"], body["type"], body["reason"])


@in_cluster
async def test_many_texts_of_one_sort_are_reported_together(cluster: Cluster) -> None:
    """The eleventh different one and all after it share an event that shows the last."""
    found = await told(cluster, *(f"try {number}" for number in range(14)))
    assert 11 == len(found)
    assert ("(combined from similar events): try 13", 4) == (found[-1]["message"], found[-1]["count"])


@in_cluster
async def test_a_refused_event_fails_nothing(cluster: Cluster) -> None:
    """An event in a namespace that does not exist raises no error."""
    recorder = Recorder(cluster.client, cluster.clock, "test")
    recorder.normal({**ABOUT, "metadata": {"name": "web", "namespace": "nowhere"}}, "Lost", "x")
    recorder.normal(ABOUT, "Kept", "y")
    while not recorder.is_idle:
        await cluster.settle()
    assert ["Kept"] == [body["reason"] for body in recorded(cluster)]


@in_cluster
async def test_an_event_that_breaks_ends_no_others(cluster: Cluster) -> None:
    """Those that wait behind it are written."""
    recorder = Recorder(cluster.client, cluster.clock, "test")
    write = recorder._write

    async def broken(notice: Any) -> None:
        if notice.reason == "Odd":
            raise KeyError(notice)
        await write(notice)

    recorder._write = broken  # type: ignore[method-assign]
    recorder.normal(ABOUT, "Odd", "x")
    recorder.normal(ABOUT, "Kept", "y")
    while not recorder.is_idle:
        await cluster.settle()
    assert ["Kept"] == [body["reason"] for body in recorded(cluster)]
