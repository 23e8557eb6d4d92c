"""Effects in a cluster: applied once, with preconditions, and with the API server's reasons for failures."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import Access, load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.controllers.applier import CAUSE_ANNOTATION, Applied, Cause, Change, EffectApplier
from pyverno.controllers.writeguard import QuarantinedError, WriteKey
from pyverno.engine.effects import CreateEffect, DeleteEffect, PatchEffect
from pyverno.engine.origin import KYVERNO, MANAGED_BY
from pyverno.engine.result import ResourceRef
from pyverno.errors import HostError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import BUILTIN_KINDS
from pyverno.kube.status import StatusError
from pyverno.value import replace
from tests.support.faultyproxy import Trouble, proxied
from tests.support.ports import free_port

MAPS = GVR("", "v1", "configmaps")
NAMESPACES = GVR("", "v1", "namespaces")
POLICIES = GVR("networking.k8s.io", "v1", "networkpolicies")
TRIGGER = ResourceRef("v1", "Namespace", "", "team")
CAUSE = Cause(ResourceRef("kyverno.io/v1", "ClusterPolicy", "", "copy"), "settings", TRIGGER, "Namespace/team is new")
TARGET = ResourceRef("v1", "ConfigMap", "default", "made")


@dataclass
class Stage:
    """A cluster, and an applier whose requests and quarantines are recorded."""

    client: Client
    applier: EffectApplier
    requests: list[str] = field(default_factory=list)
    quarantines: list[WriteKey] = field(default_factory=list)

    async def apply(self, body: JSONObject, *, current: JSONObject | None = None, **options: bool) -> Applied:
        """Apply an object with or without `synchronize`."""
        self.requests.clear()
        effect = CreateEffect(body, **{"synchronize": True, **options})
        return await self.applier.apply(effect, CAUSE, current=current)


@asynccontextmanager
async def staged() -> AsyncIterator[Stage]:
    """Run a cluster without controllers."""
    async with Sandbox(Settings(controllers=False)) as sandbox:
        access = load_kubeconfig(sandbox.kubeconfig)
        requests: list[str] = []
        quarantines: list[WriteKey] = []

        async with (
            Client(access, qps=0) as client,
            Client(access, qps=0, on_request=lambda method, _path: requests.append(method)) as own,
        ):
            applier = EffectApplier(
                own, lambda: BUILTIN_KINDS, on_quarantine=lambda _error, key: quarantines.append(key)
            )
            yield Stage(client, applier, requests, quarantines)


def run(scenario: Callable[[Stage], Awaitable[None]]) -> None:
    """Run a scenario in a cluster of its own."""

    async def work() -> None:
        async with staged() as stage:
            await scenario(stage)

    asyncio.run(work())


def config_map(**data: str) -> JSONObject:
    """Return the object that a rule generates."""
    metadata = {"name": "made", "namespace": "default", "labels": {MANAGED_BY: KYVERNO}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def test_an_object_is_created_with_one_request_and_has_its_reason() -> None:
    """The annotation names policy, rule, trigger and reason."""

    async def scenario(stage: Stage) -> None:
        applied = await stage.apply(config_map(a="1"))
        assert (Change.CREATED, TARGET, ["POST"]) == (applied.change, applied.target, stage.requests)
        found = await stage.client.get(MAPS, "made", "default")
        assert {
            "policy": "ClusterPolicy/copy",
            "rule": "settings",
            "trigger": "Namespace/team",
            "reason": "Namespace/team is new",
        } == json.loads(found["metadata"]["annotations"][CAUSE_ANNOTATION])

    run(scenario)


@pytest.mark.parametrize("kind", ["Namespace", "ConfigMap"])
def test_a_policy_of_a_namespace_writes_in_it(kind: str) -> None:
    """Whatever the engine says: no cluster-scoped object is created, and nothing is changed elsewhere."""
    own = replace(CAUSE, policy=ResourceRef("kyverno.io/v1", "Policy", "team", "copy"))

    async def scenario(stage: Stage) -> None:
        body: JSONObject = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "made", "namespace": "default"}}
        before = {**body, "metadata": {**body["metadata"], "resourceVersion": "1"}}
        target = ResourceRef.of(body)
        after = {**before, "data": {"a": "b"}}
        for effect in (CreateEffect(body), PatchEffect(target, before, after)):
            with pytest.raises(HostError, match="a policy of namespace `team` may not write"):
                await stage.applier.apply(effect, own)
        assert [] == stage.requests

    run(scenario)


def test_an_unchanged_object_is_not_written() -> None:
    """The creator of the object and the new reason do not matter."""

    async def scenario(stage: Stage) -> None:
        made = (await stage.apply(config_map(a="1"))).body
        stage.applier = EffectApplier(stage.client, lambda: BUILTIN_KINDS)  # stands for another replica
        again = await stage.apply(config_map(a="1"))
        assert (Change.UNCHANGED, made) == (again.change, again.body)

    run(scenario)


def test_with_the_object_in_memory_no_request_is_sent() -> None:
    """The object from the watch is compared instead of being read."""

    async def scenario(stage: Stage) -> None:
        made = (await stage.apply(config_map(a="1"))).body
        again = await stage.apply(config_map(a="1"), current=made)
        assert (Change.UNCHANGED, []) == (again.change, stage.requests)

    run(scenario)


def test_an_object_that_exists_is_left_alone_without_synchronize() -> None:
    """One read finds it."""

    async def scenario(stage: Stage) -> None:
        await stage.client.create(MAPS, config_map(a="of a user"), "default")
        applied = await stage.apply(config_map(a="1"), synchronize=False)
        assert (Change.UNCHANGED, ["POST", "GET"]) == (applied.change, stage.requests)
        assert {"a": "of a user"} == (await stage.client.get(MAPS, "made", "default"))["data"]

    run(scenario)


def test_with_synchronize_an_object_agrees_with_the_rule() -> None:
    """Data are replaced as a whole; labels, annotations, owners and finalizers of others stay."""

    async def scenario(stage: Stage) -> None:
        body = config_map(a="2", b="3")
        body["metadata"]["labels"] = {"team": "x"}
        body["metadata"]["finalizers"] = ["example.org/kept"]
        body["metadata"]["annotations"] = {"note": "of a user"}
        await stage.client.create(MAPS, body, "default")
        applied = await stage.apply(config_map(a="1"))
        found = await stage.client.get(MAPS, "made", "default")
        assert (Change.UPDATED, {"a": "1"}) == (applied.change, found["data"])
        assert {"team": "x", MANAGED_BY: KYVERNO} == found["metadata"]["labels"]
        assert {"note", CAUSE_ANNOTATION} == set(found["metadata"]["annotations"])
        assert ["example.org/kept"] == found["metadata"]["finalizers"]

    run(scenario)


def test_an_object_of_a_user_is_not_taken_over_where_the_rule_may_not() -> None:
    """A GeneratingPolicy changes generated objects only."""

    async def scenario(stage: Stage) -> None:
        body = config_map(a="of a user")
        del body["metadata"]["labels"]
        await stage.client.create(MAPS, body, "default")
        assert Change.UNCHANGED is (await stage.apply(config_map(a="1"), adopts=False)).change
        assert {"a": "of a user"} == (await stage.client.get(MAPS, "made", "default"))["data"]

    run(scenario)


def test_defaults_of_the_server_are_no_difference() -> None:
    """After the first comparison no request is sent for an object that the API server stores in another form."""
    policy = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "made", "namespace": "default"},
        "spec": {"podSelector": {}},
    }

    async def scenario(stage: Stage) -> None:
        first = await stage.apply(policy)
        assert first.body is not None
        assert ["Ingress"] == first.body["spec"]["policyTypes"]
        again = await stage.apply(policy, current=first.body)
        assert (Change.UNCHANGED, []) == (again.change, stage.requests)
        # after a restart a dry run compares the objects, and the resource version stays
        stage.applier = EffectApplier(stage.client, lambda: BUILTIN_KINDS)
        assert Change.UNCHANGED is (await stage.apply(policy, current=first.body)).change
        assert first.body == await stage.client.get(POLICIES, "made", "default")

    run(scenario)


def test_a_stale_object_is_read_again_after_a_conflict() -> None:
    """Changes by others are not overwritten without a read, and the rule still takes effect."""

    async def scenario(stage: Stage) -> None:
        stale = await stage.client.create(MAPS, config_map(a="old"), "default")
        await stage.client.patch(MAPS, "made", {"metadata": {"labels": {"team": "x"}}}, "default")
        applied = await stage.apply(config_map(a="1"), current=stale)
        assert (Change.UPDATED, ["PUT", "GET", "PUT"]) == (applied.change, stage.requests)
        found = await stage.client.get(MAPS, "made", "default")
        assert ({"a": "1"}, "x") == (found["data"], found["metadata"]["labels"]["team"])

    run(scenario)


def test_an_object_that_was_deleted_meanwhile_is_created() -> None:
    """The watch had not delivered the deletion yet."""

    async def scenario(stage: Stage) -> None:
        gone = await stage.client.create(MAPS, config_map(a="old"), "default")
        await stage.client.delete(MAPS, "made", "default")
        applied = await stage.apply(config_map(a="1"), current=gone)
        assert (Change.CREATED, ["PUT", "GET", "POST"]) == (applied.change, stage.requests)

    run(scenario)


def test_an_object_that_is_being_deleted_is_waited_for() -> None:
    """A finalizer delays the deletion."""

    async def scenario(stage: Stage) -> None:
        body = config_map(a="old")
        body["metadata"]["finalizers"] = ["example.org/held"]
        await stage.client.create(MAPS, body, "default")
        await stage.client.delete(MAPS, "made", "default")
        with pytest.raises(HostError, match="is being deleted"):
            await stage.apply(config_map(a="1"))

    run(scenario)


def test_the_reason_of_the_api_server_is_passed_on() -> None:
    """Cases are a missing or terminating namespace, an invalid object and a kind that is not served."""

    async def scenario(stage: Stage) -> None:
        body = config_map(a="1")
        body["metadata"]["namespace"] = "nowhere"
        with pytest.raises(StatusError, match='namespaces "nowhere" not found') as missing:
            await stage.apply(body)
        assert 404 == missing.value.status
        ending: JSONObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ending"}}
        await stage.client.create(NAMESPACES, ending)
        await stage.client.delete(NAMESPACES, "ending")
        body["metadata"]["namespace"] = "ending"
        with pytest.raises(StatusError, match="because it is being terminated") as refused:
            await stage.apply(body)
        assert 403 == refused.value.status
        bad = config_map(a="1")
        bad["metadata"]["name"] = "NOT A NAME"
        with pytest.raises(StatusError, match="Invalid value") as invalid:
            await stage.apply(bad)
        assert 422 == invalid.value.status
        with pytest.raises(HostError, match=r"does not serve example\.org/v1 Thing"):
            await stage.apply({**config_map(), "apiVersion": "example.org/v1", "kind": "Thing"})
        with pytest.raises(HostError, match="has no name"):
            await stage.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}})

    run(scenario)


def test_what_the_account_may_not_do_is_refused_by_the_api_server() -> None:
    """The applier has the permissions of its account and passes the API server's error on."""

    async def scenario(stage: Stage) -> None:
        access = replace(stage.client.access, impersonate={"as": "nobody"})
        async with Client(access, qps=0) as client:
            applier = EffectApplier(client, lambda: BUILTIN_KINDS)
            with pytest.raises(StatusError, match='User "nobody" cannot create resource "configmaps"') as refused:
                await applier.apply(CreateEffect(config_map(a="1")), CAUSE)
            assert 403 == refused.value.status

    run(scenario)


def test_server_side_apply_keeps_the_fields_of_others() -> None:
    """The field manager equals Kyverno's; applying the same object again changes nothing."""

    async def scenario(stage: Stage) -> None:
        applied = await stage.apply(config_map(a="1"), server_side_apply=True)
        assert Change.CREATED is applied.change
        await stage.client.patch(MAPS, "made", {"data": {"b": "of a user"}}, "default")
        assert Change.UNCHANGED is (await stage.apply(config_map(a="1"), server_side_apply=True)).change
        assert Change.UPDATED is (await stage.apply(config_map(a="2"), server_side_apply=True)).change
        found = await stage.client.get(MAPS, "made", "default")
        assert {"a": "2", "b": "of a user"} == found["data"]
        assert "generate" in {each["manager"] for each in found["metadata"]["managedFields"]}

    run(scenario)


def test_a_patch_has_the_version_that_was_read_as_its_precondition() -> None:
    """A conflict is raised to the caller, who evaluates the rule again; an empty patch sends no request."""

    async def scenario(stage: Stage) -> None:
        before = await stage.client.create(MAPS, config_map(a="1"), "default")
        after = {**before, "data": {"a": "2"}}
        assert Change.UNCHANGED is (await stage.applier.apply(PatchEffect(TARGET, before, before), CAUSE)).change
        assert [] == stage.requests
        applied = await stage.applier.apply(PatchEffect(TARGET, before, after), CAUSE)
        assert (Change.UPDATED, ["PUT"]) == (applied.change, stage.requests)
        with pytest.raises(StatusError) as conflict:
            await stage.applier.apply(PatchEffect(TARGET, before, {**before, "data": {"a": "3"}}), CAUSE)
        assert (409, "Conflict") == (conflict.value.status, conflict.value.reason)

    run(scenario)


def test_a_subresource_is_patched_at_its_own_path() -> None:
    """For example, the status of a namespace."""

    async def scenario(stage: Stage) -> None:
        before = await stage.client.get(NAMESPACES, "default")
        condition = {"type": "Marked", "status": "True"}
        after = {**before, "status": {**before["status"], "conditions": [condition]}}
        target = ResourceRef("v1", "Namespace", "", "default")
        applied = await stage.applier.apply(PatchEffect(target, before, after, "status"), CAUSE)
        assert Change.UPDATED is applied.change
        found = (await stage.client.get(NAMESPACES, "default"))["status"]["conditions"]
        assert [("Marked", "True")] == [(each["type"], each["status"]) for each in found]

    run(scenario)


def test_only_the_evaluated_object_is_deleted() -> None:
    """A changed or recreated object causes a conflict; a missing one is no error."""

    async def scenario(stage: Stage) -> None:
        stale = await stage.client.create(MAPS, config_map(a="1"), "default")
        await stage.client.patch(MAPS, "made", {"data": {"a": "2"}}, "default")
        with pytest.raises(StatusError) as conflict:
            await stage.applier.apply(DeleteEffect(TARGET), CAUSE, current=stale)
        assert 409 == conflict.value.status
        stage.requests.clear()
        assert Change.DELETED is (await stage.applier.apply(DeleteEffect(TARGET, "Foreground"), CAUSE)).change
        assert ["GET", "DELETE"] == stage.requests
        # the finalizer of a foreground deletion keeps it, because no garbage collector runs here
        assert Change.UNCHANGED is (await stage.applier.apply(DeleteEffect(TARGET), CAUSE)).change
        missing = replace(TARGET, name="missing")
        assert Change.UNCHANGED is (await stage.applier.apply(DeleteEffect(missing), CAUSE)).change

    run(scenario)


def test_an_object_that_something_else_changes_back_is_quarantined() -> None:
    """The quarantine follows ten writes; its first refusal is reported, and other objects are still written."""

    async def scenario(stage: Stage) -> None:
        await stage.apply(config_map(a="1"))
        with pytest.raises(QuarantinedError):
            for _ in range(50):
                await stage.client.patch(MAPS, "made", {"data": {"a": "of another controller"}}, "default")
                await stage.apply(config_map(a="1"))
        for _ in range(3):
            with pytest.raises(QuarantinedError):
                await stage.apply(config_map(a="1"))
        assert [WriteKey(TARGET, CAUSE.policy, CAUSE.rule, TRIGGER)] == stage.quarantines
        other = config_map(a="1")
        other["metadata"]["name"] = "other"
        assert Change.CREATED is (await stage.apply(other)).change

    run(scenario)


def test_writes_that_end_with_a_lost_lease_are_no_loop() -> None:
    """A replica that loses its lease again and again begins the same write each time, and undoes nothing."""

    async def scenario(stage: Stage) -> None:
        for _ in range(12):
            term = asyncio.create_task(stage.apply(config_map(a="1")))
            await asyncio.sleep(0)  # the request is sent before the task waits for the first time
            term.cancel()
            await asyncio.gather(term, return_exceptions=True)
        assert (TARGET, []) == ((await stage.apply(config_map(a="1"))).target, stage.quarantines)
        assert {"a": "1"} == (await stage.client.get(MAPS, "made", "default"))["data"]

    run(scenario)


def test_writes_without_an_answer_are_no_loop() -> None:
    """While the API server cannot be reached, every attempt fails with that reason, however many there are."""

    async def attempt() -> list[WriteKey]:
        quarantines: list[WriteKey] = []
        async with Client(Access(f"http://127.0.0.1:{free_port()}"), qps=0) as client:
            applier = EffectApplier(
                client, lambda: BUILTIN_KINDS, on_quarantine=lambda _error, key: quarantines.append(key)
            )
            for _ in range(12):
                with pytest.raises(HostError, match="cannot be reached"):
                    await applier.apply(CreateEffect(config_map(a="1")), CAUSE)
        return quarantines

    assert [] == asyncio.run(attempt())


def test_an_unavailable_api_server_is_an_error_with_its_status() -> None:
    """The status of the error is passed on, and an unanswered request may be repeated."""

    async def scenario(stage: Stage) -> None:
        async with proxied(stage.client) as (proxy, client):
            applier = EffectApplier(client, lambda: BUILTIN_KINDS)
            path = "/api/v1/namespaces/default/configmaps"
            for trouble, status in ((Trouble.EXPIRED, 410), (Trouble.AWAY, 503)):
                proxy.trouble(path, trouble)
                with pytest.raises(StatusError) as raised:
                    await applier.apply(CreateEffect(config_map(a="1")), CAUSE)
                assert status == raised.value.status
                proxy.mend(path)
            assert Change.CREATED is (await applier.apply(CreateEffect(config_map(a="1")), CAUSE)).change
            assert Change.UNCHANGED is (await applier.apply(CreateEffect(config_map(a="1")), CAUSE)).change

    run(scenario)


def test_after_a_restart_an_object_with_defaults_is_not_written_again() -> None:
    """The new applier has no record of earlier writes: a dry run shows that only the reason would change."""
    wanted: JSONObject = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "made", "namespace": "default", "labels": {MANAGED_BY: KYVERNO}},
        "spec": {"podSelector": {}, "ingress": [{"ports": [{"port": 80}]}]},
    }

    async def scenario(stage: Stage) -> None:
        first = await stage.apply(wanted)
        assert first.body is not None
        again = EffectApplier(stage.client, lambda: BUILTIN_KINDS)
        cause = replace(CAUSE, reason="another one")
        effect = CreateEffect(wanted, synchronize=True)
        applied = await again.apply(effect, cause, current=first.body)
        stored = await stage.client.get(POLICIES, "made", "default")
        assert Change.UNCHANGED is applied.change
        assert first.body["metadata"]["resourceVersion"] == stored["metadata"]["resourceVersion"]
        changed = {**wanted, "spec": {"podSelector": {}, "ingress": [{"ports": [{"port": 81}]}]}}
        applied = await again.apply(CreateEffect(changed, synchronize=True), cause, current=first.body)
        assert Change.UPDATED is applied.change

    run(scenario)
