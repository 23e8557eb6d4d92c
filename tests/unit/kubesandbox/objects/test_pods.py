"""Binding and eviction of pods."""

from __future__ import annotations

import pytest

from kubesandbox.apiserver import ApiServer
from kubesandbox.objects.pods import bind, evict
from kubesandbox.storage.store import Key
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from tests.unit.kubesandbox.serving import api_server, pod, run, write


def running(allowed: int | None = None, **budget: object) -> ApiServer:
    """Return a server with a running pod, and with a budget that allows some disruptions."""
    server = api_server()
    run(server.create(write(server, "serviceaccounts"), {"metadata": {"name": "default"}}))
    body = pod("p", nodeName="n")
    body["metadata"]["labels"] = {"app": "x"}
    run(server.create(write(server, "pods"), body))
    status = write(server, "pods", "default", "p", subresource="status")
    run(server.update(status, {"metadata": {"name": "p", "labels": {"app": "x"}}, "status": {"phase": "Running"}}))
    if allowed is not None:
        add_budget(server, "b", allowed, **budget)
    return server


def add_budget(server: ApiServer, name: str, allowed: int, **status: object) -> None:
    """Add a budget for the pod."""
    key = "poddisruptionbudgets.policy"
    spec = {"selector": {"matchLabels": {"app": "x"}}, "minAvailable": 1}
    made = run(server.create(write(server, key), {"metadata": {"name": name}, "spec": spec})).body
    counts = {"disruptionsAllowed": allowed, "observedGeneration": 1, "desiredHealthy": 1, "currentHealthy": 1}
    full = {**counts, "expectedPods": 1, **status}
    run(server.update(write(server, key, "default", name, subresource="status"), {**made, "status": full}))


def evicted(server: ApiServer, **options: object) -> JSONObject:
    """Evict the pod."""
    body = {"metadata": {"name": "p"}, "deleteOptions": options}
    return run(evict(server, write(server, "pods", "default", "p", subresource="eviction"), body)).body


def state(server: ApiServer, key: str = "pods", name: str = "p") -> JSONObject | None:
    """Return an object."""
    found = server.store.get(Key(key, "default", name))
    return found.body if found else None


def test_an_eviction_deletes_the_pod() -> None:
    """The grace period is that of the pod or of the request."""
    server = running()
    assert "Success" == evicted(server)["status"]
    body = state(server)
    assert body is not None
    assert 30 == body["metadata"]["deletionGracePeriodSeconds"]
    reasons = [item["reason"] for item in body["status"]["conditions"] if item["type"] == "DisruptionTarget"]
    assert ["EvictionByEvictionAPI"] == reasons
    evicted(server, gracePeriodSeconds=0)
    assert state(server) is None


def test_a_budget_is_spent() -> None:
    """The budget allows one disruption less, and its status lists the pod."""
    server = running(1)
    evicted(server)
    budget = state(server, "poddisruptionbudgets.policy", "b")
    assert budget is not None
    assert (0, {"p": "2026-01-01T00:00:00Z"}) == (
        budget["status"]["disruptionsAllowed"],
        budget["status"]["disruptedPods"],
    )


def test_a_budget_that_is_spent_refuses() -> None:
    """The answer is The answer is 429, with the cause that kubectl drain shows."""
    server = running(0)
    with pytest.raises(StatusError) as caught:
        evicted(server)
    assert (429, "Cannot evict pod as it would violate the pod's disruption budget.") == (
        caught.value.status,
        caught.value.message,
    )
    assert ["The disruption budget b needs 1 healthy pods and has 1 currently"] == [
        cause.message for cause in caught.value.causes
    ]
    body = state(server)
    assert body is not None
    assert "deletionTimestamp" not in body["metadata"]


def test_a_budget_without_a_known_count_refuses() -> None:
    """Until the controller has set its status, a budget allows no disruption."""
    with pytest.raises(StatusError) as caught:
        evicted(running(1, observedGeneration=0))
    assert (429, 10) == (caught.value.status, caught.value.retry_after)


def test_two_budgets_are_an_error() -> None:
    """Kubernetes does not define which of two budgets applies."""
    server = running(1)
    add_budget(server, "c", 1)
    with pytest.raises(StatusError, match="This pod has more than one PodDisruptionBudget"):
        evicted(server)


def test_dry_run_spends_nothing() -> None:
    """A dry run changes neither pod nor budget."""
    server = running(1)
    before = state(server, "poddisruptionbudgets.policy", "b")
    evicted(server, dryRun=["All"])
    assert before == state(server, "poddisruptionbudgets.policy", "b")
    assert state(server) is not None


def test_a_pod_is_bound_once() -> None:
    """The node and the condition; its generation stays."""
    server = api_server()
    run(server.create(write(server, "serviceaccounts"), {"metadata": {"name": "default"}}))
    run(server.create(write(server, "pods"), pod("p")))
    binding = {"metadata": {"name": "p", "annotations": {"by": "me"}}, "target": {"kind": "Node", "name": "n"}}
    where = write(server, "pods", "default", "p", subresource="binding")
    run(bind(server, where, binding))
    body = state(server)
    assert body is not None
    assert ("n", "me", 1) == (
        body["spec"]["nodeName"],
        body["metadata"]["annotations"]["by"],
        body["metadata"]["generation"],
    )
    assert [("PodScheduled", "True")] == [(item["type"], item["status"]) for item in body["status"]["conditions"]]
    with pytest.raises(StatusError, match='pod p is already assigned to node "n"') as caught:
        run(bind(server, where, binding))
    assert 409 == caught.value.status
    with pytest.raises(StatusError, match="name in URL does not match name in Binding object"):
        run(bind(server, where, {**binding, "metadata": {"name": "q"}}))
