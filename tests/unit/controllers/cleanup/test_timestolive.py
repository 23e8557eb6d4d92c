"""Objects with a time to live, in a cluster whose clock the tests move."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from pyverno.kube.json import JSONObject
from tests.support.cleanupstage import CleanupStage, MovableClock, cleaning, pod

Scene = Callable[[CleanupStage], Awaitable[None]]
TTL = "cleanup.kyverno.io/ttl"
PROPAGATION = "cleanup.kyverno.io/propagation-policy"
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap"}


def play(scene: Scene, **settings: Any) -> None:
    """Run a scene with a cluster and a cleanup controller."""

    async def run() -> None:
        async with cleaning(**settings) as stage:
            await scene(stage)

    asyncio.run(run())


def living(name: str, ttl: str, namespace: str = "default", **metadata: Any) -> JSONObject:
    """Return a ConfigMap with a time to live."""
    return {**CONFIG, "metadata": {"name": name, "namespace": namespace, "labels": {TTL: ttl}, **metadata}}


def test_an_object_is_deleted_when_its_time_is_over() -> None:
    """Each object of any kind is deleted at its own time; objects without a TTL stay."""

    async def scene(stage: CleanupStage) -> None:
        soon, later = living("soon", "10s"), living("later", "1h")
        plain = {**CONFIG, "metadata": {"name": "plain", "namespace": "default"}}
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "short", "labels": {TTL: "10s"}}}
        for body in (soon, later, plain, space, pod("a", labels={TTL: "30m"})):
            await stage.create(body)
        assert await stage.exists(soon)
        await stage.pass_time(12)
        assert [False, True, True, False] == [await stage.exists(each) for each in (soon, later, plain, space)]
        await stage.pass_time(1800)
        assert [True, False] == [await stage.exists(each) for each in (later, pod("a"))]
        await stage.pass_time(1800)
        assert [False, True] == [await stage.exists(each) for each in (later, plain)]

    play(scene)


def test_a_label_can_be_changed_and_removed() -> None:
    """The current label of the object decides."""

    async def scene(stage: CleanupStage) -> None:
        longer, saved, sooner = living("longer", "10s"), living("saved", "10s"), living("sooner", "1h")
        for body in (longer, saved, sooner):
            await stage.create(body)
        await stage.patch(longer, {"metadata": {"labels": {TTL: "1h"}}})
        await stage.patch(saved, {"metadata": {"labels": {TTL: None}}})
        await stage.patch(sooner, {"metadata": {"labels": {TTL: "10s"}}})
        await stage.pass_time(15)
        assert [True, True, False] == [await stage.exists(each) for each in (longer, saved, sooner)]

    play(scene)


def test_an_object_made_again_lives_again() -> None:
    """Its TTL counts from its own creation."""

    async def scene(stage: CleanupStage) -> None:
        for _ in range(2):
            await stage.create(living("a", "10s"))
            assert await stage.exists(living("a", ""))
            await stage.pass_time(12)
            assert not await stage.exists(living("a", ""))

    play(scene)


def test_a_time_that_cannot_be_read_deletes_nothing() -> None:
    """The object stays until its label is valid."""

    async def scene(stage: CleanupStage) -> None:
        body = living("a", "soon")
        await stage.create(body)
        await stage.pass_time(10_000_000)
        assert await stage.exists(body)
        await stage.patch(body, {"metadata": {"labels": {TTL: "1s"}}})
        assert not await stage.exists(body)

    play(scene)


def test_the_propagation_policy_is_that_of_the_annotation() -> None:
    """An invalid value means the default."""

    async def scene(stage: CleanupStage) -> None:
        owner = await stage.create(
            living("owner", "10s", annotations={"cleanup.kyverno.io/propagation-policy": "Orphan"})
        )
        other = await stage.create(
            living("other", "10s", annotations={"cleanup.kyverno.io/propagation-policy": "Later"})
        )
        for body in (owner, other):
            reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": body["metadata"]["name"]}
            owners = [{**reference, "uid": body["metadata"]["uid"]}]
            metadata = {"name": f"of-{body['metadata']['name']}", "namespace": "default", "ownerReferences": owners}
            await stage.create({**CONFIG, "metadata": metadata})
        await stage.pass_time(12)
        kept, dependent = (living(f"of-{name}", "") for name in ("owner", "other"))

        async def is_gone() -> bool:
            return not await stage.exists(dependent)

        await stage.until(is_gone)
        assert [False, False, True] == [await stage.exists(each) for each in (owner, other, kept)]

    play(scene)


@pytest.mark.parametrize("minutes", [-10, 10])
def test_nothing_is_deleted_early_where_clocks_differ_by_minutes(minutes: int) -> None:
    """The clock of this machine may be behind that of the cluster, or ahead of it."""
    clock = MovableClock()
    clock.shift += timedelta(minutes=minutes)

    async def scene(stage: CleanupStage) -> None:
        await stage.create(living("a", "60s"))
        await stage.pass_time(50)
        assert await stage.exists(living("a", ""))
        await stage.pass_time(15)
        assert not await stage.exists(living("a", ""))

    play(scene, clock=clock)


def test_kinds_without_permission_are_left_alone() -> None:
    """The account needs list, watch and delete; a permission that is granted later takes effect."""
    account = "system:serviceaccount:kyverno:kyverno-cleanup-controller"
    rules = [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch", "delete"]},
        {"apiGroups": ["*"], "resources": ["leases", "events"], "verbs": ["*"]},
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
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
        body = living("a", "10s")
        await stage.create(body)
        await stage.create(pod("a", labels={TTL: "10s"}))
        await stage.pass_time(12)
        assert [True, False] == [await stage.exists(each) for each in (body, pod("a"))]
        more = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["delete"]}
        await stage.patch(role, {"rules": [*rules, more]})

        async def is_gone() -> bool:
            return not await stage.exists(body)

        await stage.until(is_gone)

    play(scene, user=account, further=(role, binding))


def test_protected_objects_outlive_their_time() -> None:
    """Filtered namespaces and objects of the controllers are protected; PolicyExceptions in their namespace are not."""
    filters = {
        **CONFIG,
        "metadata": {"name": "kyverno", "namespace": "kyverno"},
        "data": {"resourceFilters": "[*/*,team,*] [*/*,kyverno,*] [ConfigMap,*,*]"},
    }
    exception = {
        "apiVersion": "kyverno.io/v2",
        "kind": "PolicyException",
        "metadata": {"name": "for-now", "namespace": "kyverno", "labels": {TTL: "10s"}},
        "spec": {
            "exceptions": [{"policyName": "a", "ruleNames": ["b"]}],
            "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
        },
    }

    async def scene(stage: CleanupStage) -> None:
        bodies = (living("a", "10s", "team"), living("b", "10s"), exception)
        for body in bodies:
            await stage.create(body)
        await stage.pass_time(12)
        assert [True, False, False] == [await stage.exists(each) for each in bodies]

    play(scene, further=(filters,))


def test_a_dry_run_keeps_everything() -> None:
    """Objects stay although their TTL has expired."""

    async def scene(stage: CleanupStage) -> None:
        await stage.create(living("a", "10s"))
        await stage.pass_time(12)
        assert await stage.exists(living("a", ""))

    play(scene, is_dry_run=True)


def test_an_object_that_changes_all_the_time_is_deleted_in_the_end() -> None:
    """A deletion with an outdated resource version is repeated with the version that the watch delivers."""

    async def scene(stage: CleanupStage) -> None:
        client = stage.controller._client
        send, times = client.delete, []

        async def late(*arguments: Any, **options: Any) -> Any:
            if len(times) < 3:
                await stage.client.patch(arguments[0], "a", {"data": {"n": str(len(times))}}, "default")
            times.append(1)
            return await send(*arguments, **options)

        client.discard = late  # type: ignore[method-assign]
        await stage.create(living("a", "10s"))
        await stage.pass_time(12)

        async def is_gone() -> bool:
            return not await stage.exists(living("a", ""))

        await stage.until(is_gone)
        assert 4 == len(times)

    play(scene)
