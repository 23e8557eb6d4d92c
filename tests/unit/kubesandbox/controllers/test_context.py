"""The context of controllers: slow-start creation of pods, and the owners of a changed object."""

from __future__ import annotations

import pytest

from kubesandbox.controllers.context import ControllerContext, is_namespace_ending, selector_of
from kubesandbox.controllers.recorder import Recorder
from kubesandbox.storage.store import Change, ChangeKind, Key, Stored
from pyverno.kube.status import Cause, StatusError, forbidden
from tests.unit.kubesandbox.controllers.cluster import Cluster, in_cluster, pod, workload


def bench_of(cluster: Cluster) -> ControllerContext:
    recorder = Recorder(cluster.client, cluster.clock, "test")
    return ControllerContext(cluster.client, cluster.clock, recorder, lambda: cluster.server.table)


@in_cluster(kubelet=False)
async def test_one_refusal_costs_one_request(cluster: Cluster) -> None:
    """The first pod is tried alone; two of five names are taken, the rest is never tried after that."""
    await cluster.create("pods", pod("a"))
    context, owner = bench_of(cluster), cluster.get("pods", "a")
    with pytest.raises(StatusError):
        await context.create_pods(owner, [pod(name) for name in ("a", "b", "c", "d")])
    await cluster.settle()
    assert ["a"] == cluster.names("pods")
    await context.create_pods(owner, [pod(name) for name in ("b", "c", "d", "e")])
    assert ["a", "b", "c", "d", "e"] == cluster.names("pods")
    await cluster.settle()
    assert 4 == len(cluster.events("SuccessfulCreate"))
    assert ['Error creating: pods "a" already exists'] == cluster.events("FailedCreate")


@in_cluster(kubelet=False)
async def test_a_change_concerns_its_owner_or_who_would_adopt_it(cluster: Cluster) -> None:
    """The owner before and the owner now."""
    for name in ("web", "other"):
        await cluster.client.create("replicasets.apps", workload("ReplicaSet", name, replicas=0))
    keys = bench_of(cluster).owner("replicasets.apps", "ReplicaSet")
    orphan, owned = pod("web"), pod("web")
    owned["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet", "name": "first", "controller": True}]
    key = Key("pods", "default", "web")
    found = keys(Change(ChangeKind.MODIFIED, Stored(key, orphan, 2), Stored(key, owned, 1)))
    assert ["first", "web"] == [item.name for item in found]
    assert ["first"] == [item.name for item in keys(Change(ChangeKind.ADDED, Stored(key, owned, 2), None))]


def test_selectors_of_old_and_new_kinds_are_read() -> None:
    """An absent one takes nothing."""
    assert selector_of({"spec": {"selector": {"app": "web"}}})({"app": "web"})
    assert selector_of({"spec": {"selector": {"matchLabels": {"app": "web"}}}})({"app": "web"})
    assert not selector_of({"spec": {}})({"app": "web"})


def test_a_namespace_that_ends_is_recognised() -> None:
    """The cause in the refusal identifies it."""
    cause = Cause("NamespaceTerminating", "namespace x is being terminated", "metadata.namespace")
    assert is_namespace_ending(forbidden("", "pods", "a", "because", [cause]))
    assert not is_namespace_ending(forbidden("", "pods", "a", "because"))
