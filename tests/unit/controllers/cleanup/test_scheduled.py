"""Policies that delete, in a cluster whose clock the tests move."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.support.cleanupstage import CleanupStage, cleaning, cleanup_policy, deleting_policy, pod

Scene = Callable[[CleanupStage], Awaitable[None]]


def play(scene: Scene, **settings: Any) -> None:
    """Run a scene with a cluster and a cleanup controller."""

    async def run() -> None:
        async with cleaning(**settings) as stage:
            await scene(stage)

    asyncio.run(run())


def named(name: str) -> dict[str, Any]:
    """Return conditions that hold for one name."""
    return {"any": [{"key": "{{ target.metadata.name }}", "operator": "Equals", "value": name}]}


def condition(policy: Any) -> dict[str, Any]:
    """Return the condition of a policy."""
    status = policy["status"]
    found = status.get("conditions") or status["conditionStatus"]["conditions"]
    assert 1 == len(found)
    result: dict[str, Any] = found[0]
    return result


def test_a_policy_deletes_what_it_selects_when_it_is_due() -> None:
    """It deletes nothing earlier and nothing else; its status holds the time of the run."""

    async def scene(stage: CleanupStage) -> None:
        for name in ("old", "new"):
            await stage.create(pod(name))
        policy = await stage.create(cleanup_policy(conditions=named("old")))
        assert await stage.exists(pod("old"))
        await stage.pass_time(65)
        assert [False, True] == [await stage.exists(pod(name)) for name in ("old", "new")]
        found = await stage.get(policy)
        assert found is not None
        assert ("True", "Succeeded") == (condition(found)["status"], condition(found)["reason"])
        assert found["status"]["lastExecutionTime"] > policy["metadata"]["creationTimestamp"]

    play(scene)


def test_a_deleting_policy_does_the_same_by_expressions() -> None:
    """A namespaced policy covers its own namespace only."""

    async def scene(stage: CleanupStage) -> None:
        for namespace in ("default", "team"):
            await stage.create(pod("a", namespace))
        keeps = {"conditions": [{"name": "never", "expression": "object.metadata.name == 'b'"}]}
        await stage.create(deleting_policy("keeps", **keeps))
        policy = await stage.create(deleting_policy(namespace="team"))
        await stage.pass_time(65)
        assert [True, False] == [await stage.exists(pod("a", namespace)) for namespace in ("default", "team")]
        found = await stage.get(policy)
        assert found is not None
        assert True is found["status"]["conditionStatus"]["ready"]

    play(scene)


def test_missed_times_are_made_up_for_by_one_run(caplog: pytest.LogCaptureFixture) -> None:
    """An hour of missed runs of an every-minute schedule is one run; the next comes a minute later."""
    caplog.set_level(logging.INFO, "pyverno.cleanup")

    def runs() -> int:
        return sum(record.message == "a policy has run" for record in caplog.records)

    async def scene(stage: CleanupStage) -> None:
        await stage.create(cleanup_policy(conditions=named("a")))
        assert 0 == runs()
        await stage.pass_time(3600)
        assert 1 == runs()
        await stage.pass_time(61)
        assert 2 == runs()

    play(scene)


def test_an_object_that_changed_since_it_was_evaluated_is_evaluated_again() -> None:
    """It gets another label between list and deletion: it stays, or is deleted in its new version."""

    async def scene(stage: CleanupStage) -> None:
        labels = {"stale": "true"}
        for name in ("saved", "touched"):
            await stage.create(pod(name, labels=labels))
        holds = {"all": [{"key": "{{ target.metadata.labels.stale }}", "operator": "Equals", "value": "true"}]}
        client = stage.controller._client
        send = client.discard

        async def late(*arguments: Any, **options: Any) -> Any:
            await stage.client.patch(arguments[0], "saved", {"metadata": {"labels": {"stale": "false"}}}, "default")
            await stage.client.patch(arguments[0], "touched", {"metadata": {"labels": {"seen": "1"}}}, "default")
            return await send(*arguments, **options)

        client.discard = late  # type: ignore[method-assign]
        await stage.create(cleanup_policy(conditions=holds))
        await stage.pass_time(65)
        assert [True, False] == [await stage.exists(pod(name)) for name in ("saved", "touched")]

    play(scene)


def test_a_condition_that_errs_deletes_nothing_and_is_reported() -> None:
    """Other objects are deleted; the policy is retried, and its last execution time stays."""

    async def scene(stage: CleanupStage) -> None:
        await stage.create(pod("plain"))
        await stage.create(pod("labelled", labels={"stale": "true"}))
        conditions = [{"name": "stale", "expression": "object.metadata.labels['stale'] == 'true'"}]
        policy = await stage.create(deleting_policy(conditions=conditions))
        stage.clock.move(65)

        async def has_failed() -> bool:
            await stage.controller.look_at_clock()
            found = await stage.get(policy)
            assert found is not None
            return condition(found)["reason"] == "Failed"

        await stage.until(has_failed)
        assert [True, False] == [await stage.exists(pod(name)) for name in ("plain", "labelled")]
        found = await stage.get(policy)
        assert found is not None
        assert "Pod/default/plain" in condition(found)["message"]
        assert "lastExecutionTime" not in found["status"]
        assert any("failed to delete the target resource Pod/default/plain" in note for note in await stage.notes())

    play(scene)


def test_deletions_are_events_where_successes_are() -> None:
    """Each kind of policy has its own wording; deletions by TTL have no event (E5.6, G7.7)."""
    wanted = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kyverno", "namespace": "kyverno"},
        "data": {"generateSuccessEvents": "true"},
    }

    async def scene(stage: CleanupStage) -> None:
        await stage.create(pod("a"))
        await stage.create(pod("b"))
        await stage.create(pod("c", labels={"cleanup.kyverno.io/ttl": "30s"}))
        await stage.create(cleanup_policy(conditions=named("a")))
        keeps = [{"name": "b", "expression": "object.metadata.name == 'b'"}]
        await stage.create(deleting_policy(conditions=keeps))
        await stage.pass_time(65)
        await stage.until(lambda: _has_notes(stage, 2))
        assert [
            "successfully cleaned up the target resource Pod/default/a",
            "successfully deleted the target resource Pod/default/b",
        ] == sorted(await stage.notes())
        assert [False] * 3 == [await stage.exists(pod(name)) for name in ("a", "b", "c")]

    play(scene, further=(wanted,))


async def _has_notes(stage: CleanupStage, count: int) -> bool:
    return len(await stage.notes()) >= count


def test_protected_objects_are_not_deleted() -> None:
    """Examples are system namespaces, objects in `resourceFilters`, and objects that are being deleted."""
    filters = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kyverno", "namespace": "kyverno"},
        "data": {"resourceFilters": "[*/*,team,*]"},
    }

    async def scene(stage: CleanupStage) -> None:
        await stage.create(pod("a", "team"))
        waiting = pod("waiting", finalizers=["example.com/wait"])
        await stage.create(waiting)
        await stage.create(pod("b"))
        await stage.create(cleanup_policy(kinds=("Pod", "Namespace")))
        await stage.pass_time(65)
        names = ("default", "kube-system", "kyverno", "team")
        spaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names]
        assert [True, True, True, True] == [await stage.exists(each) for each in spaces]
        assert [True, False] == [await stage.exists(each) for each in (pod("a", "team"), pod("b"))]
        found = await stage.get(waiting)
        assert found is not None
        assert ["example.com/wait"] == found["metadata"]["finalizers"]
        version = found["metadata"]["resourceVersion"]
        await stage.pass_time(65)
        again = await stage.get(waiting)
        assert again is not None
        assert version == again["metadata"]["resourceVersion"]

    play(scene, further=(filters,))


def test_a_kind_that_may_not_be_listed_is_left_out_of_a_run(caplog: pytest.LogCaptureFixture) -> None:
    """The objects of the other kinds are deleted, and the run counts."""
    account = "system:serviceaccount:kyverno:kyverno-cleanup-controller"
    rules = [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch", "delete"]},
        {"apiGroups": ["*"], "resources": ["leases", "events"], "verbs": ["*"]},
        {"apiGroups": ["kyverno.io", "policies.kyverno.io"], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": ["*"], "resources": ["namespaces", "configmaps", "customresourcedefinitions"], "verbs": ["*"]},
    ]
    rbac = "rbac.authorization.k8s.io"
    role = {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": "cleanup"}, "rules": rules}
    binding = {
        "apiVersion": f"{rbac}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "cleanup"},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "cleanup"},
        "subjects": [{"kind": "User", "name": account, "apiGroup": rbac}],
    }

    async def scene(stage: CleanupStage) -> None:
        await stage.create(pod("a"))
        policy = await stage.create(cleanup_policy(kinds=("Secret", "Pod"), conditions=named("a")))
        await stage.pass_time(65)
        found = await stage.get(policy)
        assert found is not None
        assert (False, True) == (await stage.exists(pod("a")), "lastExecutionTime" in found["status"])

    play(scene, user=account, further=(role, binding))
    assert ["Secret"] == [
        record.fields["kind"] for record in caplog.records if record.message == "a kind is left out of a run"
    ]


def test_too_many_objects_wait_for_a_confirmation() -> None:
    """Nothing is deleted before the annotation confirms the number."""

    async def scene(stage: CleanupStage) -> None:
        for number in range(3):
            await stage.create(pod(f"p{number}"))
        policy = await stage.create(cleanup_policy())
        await stage.pass_time(65)
        assert [True, True, True] == [await stage.exists(pod(f"p{number}")) for number in range(3)]
        found = await stage.get(policy)
        assert found is not None
        assert "ConfirmationRequired" == condition(found)["reason"]
        assert "pyverno.io/confirmed-deletions" in condition(found)["message"]
        await stage.patch(policy, {"metadata": {"annotations": {"pyverno.io/confirmed-deletions": "3"}}})
        assert [False, False, False] == [await stage.exists(pod(f"p{number}")) for number in range(3)]

    play(scene, max_deletions=2)


def test_a_dry_run_deletes_nothing() -> None:
    """It writes no status either; an event names the object that it would delete."""

    async def scene(stage: CleanupStage) -> None:
        await stage.create(pod("a"))
        policy = await stage.create(cleanup_policy())
        await stage.pass_time(65)
        assert await stage.exists(pod("a"))
        found = await stage.get(policy)
        assert found is not None
        assert "status" not in found
        assert ["would clean up the target resource Pod/default/a (dry run)"] == await stage.notes()

    play(scene, is_dry_run=True)


def test_context_is_loaded_once_for_a_run() -> None:
    """The API call of the context is made once, whatever the number of objects."""

    async def scene(stage: CleanupStage) -> None:
        for number in range(5):
            await stage.create(pod(f"p{number}"))
        asked: list[str] = []
        client = stage.controller._client
        send = client.request

        async def counting(method: str, path: str, **options: Any) -> Any:
            asked.append(path)
            return await send(method, path, **options)

        client.request = counting  # type: ignore[method-assign]
        call = {"name": "space", "apiCall": {"urlPath": "/api/v1/namespaces/default", "jmesPath": "metadata.name"}}
        conditions = {"all": [{"key": "{{ space }}", "operator": "Equals", "value": "{{ target.metadata.namespace }}"}]}
        await stage.create(cleanup_policy(context=[call], conditions=conditions))
        await stage.pass_time(65)
        assert not await stage.exists(pod("p4"))
        assert 1 == asked.count("/api/v1/namespaces/default")

    play(scene)


@pytest.mark.parametrize("minutes", [-10, 10])
def test_the_clock_of_this_machine_decides_nothing(minutes: int) -> None:
    """With a clock ten minutes off, conditions that read the time see that of the cluster."""

    async def scene(stage: CleanupStage) -> None:
        stage.clock.move(minutes * 60)
        await stage.pass_time(0)
        await stage.create(pod("a"))
        age = "{{ time_diff('{{ target.metadata.creationTimestamp }}', '{{ time_now_utc() }}') }}"
        conditions = {"all": [{"key": age, "operator": "GreaterThan", "value": "0h1m30s"}]}
        await stage.create(cleanup_policy(conditions=conditions))
        assert await stage.exists(pod("a"))
        await stage.pass_time(62)
        assert await stage.exists(pod("a"))
        await stage.pass_time(62)
        assert not await stage.exists(pod("a"))

    play(scene)
