"""Events live for an hour after they were last written."""

from __future__ import annotations

from kubesandbox.controllers.eventage import last_seen
from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.controllers.cluster import Cluster, in_cluster


def event(name: str) -> JSONObject:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": {"kind": "Pod", "name": "web", "namespace": "default"},
        "lastTimestamp": "2030-01-01T12:00:00Z",
    }


@in_cluster
async def test_old_events_go(cluster: Cluster) -> None:
    """An event that was counted again in between stays longer."""
    await cluster.create("events", event("a"))
    await cluster.create("events", event("b"))
    await cluster.settle(1800)
    await cluster.client.patch("events", "b", "default", {"lastTimestamp": "2030-01-01T12:30:00Z", "count": 2})
    await cluster.settle(1801)
    assert ["b"] == [name for name in cluster.names("events") if name in ("a", "b")]
    await cluster.settle(1800)
    assert [] == [name for name in cluster.names("events") if name in ("a", "b")]


def test_the_latest_of_all_times_counts() -> None:
    """Events of both APIs carry them in different places."""
    body = {"eventTime": "2030-01-01T12:00:00.000001Z", "series": {"lastObservedTime": "2030-01-01T13:00:00.000000Z"}}
    assert "2030-01-01T13:00:00.000000Z" == last_seen(body)
    assert "" == last_seen({"lastTimestamp": None})
