"""UpdateRequests as durable work: none is lost, each delay has a reason, and watches wake waiting requests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.controllers.background.requests import UpdateRequests, lane_of
from pyverno.controllers.background.settings import BackgroundSettings
from pyverno.controllers.background.work import Awaited, Done, Waiting
from pyverno.controllers.runtime.reconcile import ObjectKey
from pyverno.controllers.runtime.workqueue import Backoff
from pyverno.controllers.writeguard import QuarantinedError
from pyverno.errors import HostError
from pyverno.install.workdefinitions import work_definitions
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.policy.updaterequest import (
    HELD,
    MAX_HELD_SHARE,
    UPDATE_REQUESTS,
    RequestType,
    Trigger,
    UpdateRequest,
    UpdateRequestSpec,
)
from tests.support.apiserver import serving, watch
from tests.support.apiserver import status as apiserver_status
from tests.support.faultyproxy import Trouble, proxied

MAPS = GVR("", "v1", "configmaps")
NAMESPACES = GVR("", "v1", "namespaces")
DEFINITIONS = GVR("apiextensions.k8s.io", "v1", "customresourcedefinitions")
QUICK = Backoff(first=0.01, longest=0.02, jitter=0)
SLOW = Backoff(first=60, longest=60, jitter=0)


def _open_gate() -> asyncio.Event:
    gate = asyncio.Event()
    gate.set()
    return gate


@dataclass
class Script:
    """A handler with scripted outcomes; the last one repeats."""

    outcomes: list[Done | Waiting | Exception]
    handled: list[str] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=_open_gate)

    async def handle(self, request: UpdateRequest) -> Done | Waiting:
        """Return or raise the next outcome."""
        self.handled.append(request.name)
        await self.gate.wait()
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


@dataclass
class Stage:
    """A cluster in which requests are handled."""

    client: Client
    requests: UpdateRequests
    script: Script
    versions: dict[str, object]
    sent: list[str]
    tasks: list[asyncio.Task[None]]

    def begin(self) -> None:
        """Start to handle requests."""
        self.tasks.append(asyncio.create_task(self.requests.leading.run()))

    async def create(
        self, name: str, *, status: JSONObject | None = None, labels: JSONObject | None = None, **spec: object
    ) -> JSONObject:
        """Create a request."""
        body = UpdateRequestSpec(RequestType.GENERATE, "copy").to_json("kyverno")
        body = {
            **body,
            "metadata": {"name": name, "namespace": "kyverno", "labels": labels or {}},
            "spec": {**body["spec"], **spec},
        }
        made = await self.client.create(UPDATE_REQUESTS, body, "kyverno")
        if status is not None:
            made = await self.client.patch(UPDATE_REQUESTS, name, {"status": status}, "kyverno", subresource="status")
        return made

    async def status(self, name: str) -> JSONObject:
        """Return the status of a request."""
        found: JSONObject = (await self.client.get(UPDATE_REQUESTS, name, "kyverno")).get("status") or {}
        return found

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        """Wait until a condition holds."""
        async with asyncio.timeout(60):
            while not await holds():
                await asyncio.sleep(0.01)

    async def until_gone(self, name: str) -> None:
        """Wait until a request is deleted."""

        async def is_gone() -> bool:
            listed = await self.client.list(UPDATE_REQUESTS, "kyverno")
            return name not in [each["metadata"]["name"] for each in listed["items"]]

        await self.until(is_gone)

    async def until_handled(self, times: int) -> None:
        """Wait until the handler was called this often."""

        async def is_handled() -> bool:
            return len(self.script.handled) >= times

        await self.until(is_handled)

    async def until_state(self, name: str, state: str) -> JSONObject:
        """Wait until a request reaches a state, and return its status."""

        async def is_in_state() -> bool:
            return (await self.status(name)).get("state") == state

        await self.until(is_in_state)
        return await self.status(name)


@asynccontextmanager
async def staged(
    *outcomes: Done | Waiting | Exception, backoff: Backoff = QUICK, works: bool = True
) -> AsyncIterator[Stage]:
    """Run a cluster with the definition of UpdateRequest, and handle requests."""
    async with Sandbox(Settings(controllers=False, namespaces=("kyverno",))) as sandbox:
        access = load_kubeconfig(sandbox.kubeconfig)
        sent: list[str] = []
        async with (
            Client(access, qps=0) as client,
            Client(access, qps=0, on_request=lambda method, path: sent.append(f"{method} {path}")) as own,
        ):
            await client.create(DEFINITIONS, next(iter(work_definitions())))
            versions: dict[str, object] = {}
            script = Script(list(outcomes) or [Done()])
            requests = UpdateRequests(
                own,
                BackgroundSettings(backoff=backoff),
                {RequestType.GENERATE: script},
                sharded=(RequestType.MUTATE,),
                versions=lambda: versions,
            )
            tasks = [asyncio.create_task(requests.informer.run()), asyncio.create_task(requests.wakeups.run())]
            stage = Stage(client, requests, script, versions, sent, tasks)
            if works:
                stage.begin()
            try:
                await requests.informer.synced.wait()
                yield stage
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)


def run(
    scenario: Callable[[Stage], Awaitable[None]],
    *outcomes: Done | Waiting | Exception,
    backoff: Backoff = QUICK,
    works: bool = True,
) -> None:
    """Run a scenario in a cluster of its own."""

    async def work() -> None:
        async with staged(*outcomes, backoff=backoff, works=works) as stage:
            await scenario(stage)

    asyncio.run(work())


def test_a_completed_request_costs_one_request_to_the_api_server() -> None:
    """The request is deleted without a status write."""

    async def scenario(stage: Stage) -> None:
        await stage.create("a", status={"state": "Pending"})
        await stage.until_gone("a")
        writes = [each for each in stage.sent if not each.startswith(("GET", "WATCH"))]
        assert ["DELETE /apis/kyverno.io/v2/namespaces/kyverno/updaterequests/a"] == writes
        assert ["a"] == stage.script.handled

    run(scenario)


def test_a_request_that_fails_is_retried_until_it_succeeds() -> None:
    """It survives more than ten failures, and its status holds the reason."""

    async def scenario(stage: Stage) -> None:
        await stage.create("a")
        await stage.until_gone("a")
        assert 12 == len(stage.script.handled)

    run(scenario, *[HostError("the source does not exist")] * 11, Done())


def test_the_status_of_a_failed_request_has_the_reason() -> None:
    """Kyverno's fields and a condition hold the reason."""

    async def scenario(stage: Stage) -> None:
        await stage.create("a")
        status = await stage.until_state("a", "Failed")
        [condition] = status["conditions"]
        assert ("no room", 1) == (status["message"], status["retryCount"])
        assert ("Completed", "False", "Failed", "no room") == tuple(
            condition[key] for key in ("type", "status", "reason", "message")
        )
        assert {"no room"} == {each.message for each in stage.requests.leading.failing.values()}

    run(scenario, HostError("no room"), backoff=SLOW)


def test_a_request_of_another_kyverno_is_worked_on_in_every_state_but_skip() -> None:
    """Kyverno would set failed ones back to Pending; completed ones are only deleted."""

    async def scenario(stage: Stage) -> None:
        for state in ("Pending", "Failed", "Completed", "Skip"):
            await stage.create(state.lower(), status={"state": state, "retryCount": 2})
        stage.begin()
        for state in ("pending", "failed", "completed"):
            await stage.until_gone(state)
        assert "Skip" == (await stage.status("skip"))["state"]
        assert {"pending", "failed"} == set(stage.script.handled)

    run(scenario, works=False)


def test_a_request_without_a_handler_stays_and_has_the_reason() -> None:
    """Examples are an unknown type and a type without a handler; the status gives the reason."""

    async def scenario(stage: Stage) -> None:
        await stage.create("a", requestType="cel-generate")
        status = await stage.until_state("a", "Failed")
        assert "nothing works on requests of type `cel-generate`" == status["message"]

    run(scenario, backoff=SLOW)


def test_a_waiting_request_is_woken_by_what_it_waits_for() -> None:
    """The watch wakes it although its retry is due in ten minutes; other objects do not."""
    waiting = Waiting("the source is missing", (Awaited(MAPS, "default", "source"),))

    async def scenario(stage: Stage) -> None:
        await stage.create("a")
        status = await stage.until_state("a", "Pending")
        assert ("the source is missing", "Waiting") == (status["message"], status["conditions"][0]["reason"])

        async def is_idle() -> bool:
            return stage.requests.leading.is_idle

        await stage.until(is_idle)
        for name in ("other", "source"):
            body: JSONObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
            await stage.client.create(MAPS, body, "default")
        await stage.until_gone("a")
        assert 2 == len(stage.script.handled)

    run(scenario, waiting, Done())


def test_what_came_while_the_request_was_handled_wakes_it_too() -> None:
    """The watch may deliver the object before the request starts to wait."""

    async def scenario(stage: Stage) -> None:
        began = time.monotonic()
        stage.requests.wakeups.wait(ObjectKey("kyverno", "first"), (Awaited(MAPS),), since=began)
        body: JSONObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "source"}}
        await stage.client.create(MAPS, body, "default")

        async def has_come() -> bool:
            return bool(stage.requests.wakeups._recent)

        await stage.until(has_come)
        woken: list[ObjectKey] = []
        stage.requests.wakeups._wake = woken.append
        key = ObjectKey("kyverno", "second")
        stage.requests.wakeups.wait(key, (Awaited(MAPS, "default", "source"),), since=began)
        assert [key] == woken
        stage.requests.wakeups.wait(key, (Awaited(MAPS, "default", "source"),), since=time.monotonic() + 60)
        assert [key] == woken

    run(scenario)


def test_a_request_for_a_namespace_that_does_not_exist_is_woken_by_it() -> None:
    """The error of the API server names the missing namespace."""
    error = StatusError(404, "NotFound", 'namespaces "late" not found', kind="namespaces", name="late")

    async def scenario(stage: Stage) -> None:
        await stage.create("a")
        await stage.until_state("a", "Failed")
        await stage.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "late"}})
        await stage.until_gone("a")

    run(scenario, error, Done(), backoff=SLOW)


def test_a_changed_policy_wakes_the_requests_that_failed_for_it() -> None:
    """Requests of other policies keep waiting."""

    async def scenario(stage: Stage) -> None:
        stage.versions["copy"] = "1"
        await stage.create("a")
        await stage.until_state("a", "Failed")
        stage.versions["another"] = "1"
        stage.requests.wake_changed()
        assert 1 == len(stage.script.handled)
        stage.versions["copy"] = "2"
        stage.requests.wake_changed()
        await stage.until_gone("a")

    run(scenario, HostError("the template does not resolve"), Done(), backoff=SLOW)


def test_a_request_that_is_reset_is_tried_at_once() -> None:
    """The controller's own status write, which the watch returns, does not count as a reset."""

    async def scenario(stage: Stage) -> None:
        await stage.create("a")
        await stage.until_state("a", "Failed")
        await stage.create("later")  # this event follows the one of the status write
        await stage.until_state("later", "Failed")
        assert ["a", "later"] == stage.script.handled
        await stage.client.patch(
            UPDATE_REQUESTS, "a", {"status": {"state": "Pending", "message": ""}}, "kyverno", subresource="status"
        )
        await stage.until_gone("a")

    run(scenario, HostError("no"), HostError("no"), Done(), backoff=SLOW)


def test_a_deleted_request_leaves_nothing_to_do() -> None:
    """A retry that is scheduled for later is dropped."""

    async def scenario(stage: Stage) -> None:
        await stage.create("a")
        await stage.until_state("a", "Failed")
        assert not stage.requests.leading.is_idle
        await stage.client.delete(UPDATE_REQUESTS, "a", "kyverno")

        async def is_idle() -> bool:
            return stage.requests.leading.is_idle

        await stage.until(is_idle)
        assert 0 == len(stage.requests)

    run(scenario, HostError("no"), backoff=SLOW)


def test_a_deletion_that_is_refused_is_tried_again() -> None:
    """Otherwise the completed request would stay in the cluster."""

    async def scenario(stage: Stage) -> None:
        path = "/apis/kyverno.io/v2/namespaces/kyverno/updaterequests/a"
        async with proxied(stage.client) as (proxy, client):
            requests = UpdateRequests(client, BackgroundSettings(backoff=QUICK), {RequestType.GENERATE: stage.script})
            proxy.trouble(path, Trouble.CONFLICT)
            tasks = [asyncio.create_task(each) for each in (requests.informer.run(), requests.leading.run())]
            await stage.create("a")
            await stage.until_handled(2)
            proxy.mend(path)
            await stage.until_gone("a")
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    run(scenario, works=False)


def test_a_quarantined_request_is_tried_when_its_quarantine_ends() -> None:
    """A quarantine is not counted as a failure, whose retry would come sooner."""

    async def scenario(stage: Stage) -> None:
        await stage.create("a")
        status = await stage.until_state("a", "Failed")
        assert "Quarantined" == status["conditions"][0]["reason"]
        await stage.until_gone("a")

    run(scenario, QuarantinedError("too many", 0.2, is_new=True), Done(), backoff=SLOW)


def test_at_the_threshold_intake_waits() -> None:
    """Intake continues when a request completes; no request is refused."""

    async def scenario(stage: Stage) -> None:
        await stage.create("a", status={"state": "Skip"})

        async def is_known() -> bool:
            return len(stage.requests) == 1

        await stage.until(is_known)
        waiting = asyncio.create_task(stage.requests.has_room(1))
        done, _ = await asyncio.wait({waiting}, timeout=0.05)
        assert not done
        await stage.client.delete(UPDATE_REQUESTS, "a", "kyverno")
        async with asyncio.timeout(60):
            await waiting

    run(scenario, works=False)


def test_requests_that_fail_leave_room_for_others() -> None:
    """However many triggers a rule fails for, the work of other policies is accepted: held requests do not count."""

    async def scenario(stage: Stage) -> None:
        for name in ("a", "b", "c"):
            await stage.create(name)
        await stage.until_handled(3)
        async with asyncio.timeout(60):
            await stage.requests.has_room(1)
        assert 3 == len(stage.requests)

    run(scenario, HostError("no"))


def test_a_request_that_waits_for_long_leaves_room_for_others() -> None:
    """The namespace that it waits for may never come."""

    async def scenario(stage: Stage) -> None:
        await stage.create("a")
        await stage.until_handled(1)
        async with asyncio.timeout(60):
            await stage.requests.has_room(1)
        assert 1 == len(stage.requests)

    run(scenario, Waiting("no namespace", (Awaited(NAMESPACES, "", "later"),)))


def test_held_requests_have_a_limit_too() -> None:
    """Requests that nothing completes must not fill the cluster: twenty times the threshold is the end."""

    async def scenario(stage: Stage) -> None:
        for number in range(MAX_HELD_SHARE):
            await stage.create(f"a{number}", labels={HELD: "true"})

        async def are_known() -> bool:
            return len(stage.requests) == MAX_HELD_SHARE

        await stage.until(are_known)
        waiting = asyncio.create_task(stage.requests.has_room(1))
        done, _ = await asyncio.wait({waiting}, timeout=0.05)
        assert not done
        await stage.client.delete(UPDATE_REQUESTS, "a1", "kyverno")
        async with asyncio.timeout(60):
            await waiting

    run(scenario, works=False)


def test_a_new_request_comes_before_those_that_wait_for_a_worker() -> None:
    """A crowd of requests that can only fail delays new ones by those that are in work at the moment."""

    async def scenario(stage: Stage) -> None:
        for number in range(40):
            await stage.create(f"old{number}")

        async def are_known() -> bool:
            return len(stage.requests) == 40

        await stage.until(are_known)
        stage.script.gate.clear()
        stage.begin()
        await stage.until_handled(10)
        await stage.create("new")

        async def is_known() -> bool:
            return len(stage.requests) == 41

        await stage.until(is_known)
        stage.script.gate.set()

        async def is_handled() -> bool:
            return "new" in stage.script.handled

        await stage.until(is_handled)
        assert stage.script.handled.index("new") < 20

    run(scenario, HostError("no"), backoff=SLOW, works=False)


def test_a_bug_in_a_handler_is_a_reason_as_well() -> None:
    """The status must not say that the request is still to be looked at."""

    async def scenario(stage: Stage) -> None:
        await stage.create("a")
        status = await stage.until_state("a", "Failed")
        assert "an internal error occurred; see the log" == status["message"]
        await stage.until_gone("a")

    run(scenario, RuntimeError("a bug"), Done())


@pytest.mark.parametrize("info", [7, "alice", [1], {"groups": 7}, {"groups": [1]}, {"extra": {"a": 7}}, {"extra": "b"}])
def test_a_user_that_is_none_is_the_reason(info: object) -> None:
    """Groups that cannot be read must neither grant nor end anything."""

    async def scenario(stage: Stage) -> None:
        await stage.create("a", context={"userInfo": {"userInfo": info}})
        status = await stage.until_state("a", "Failed")
        assert "`request.userInfo" in status["message"]
        assert [] == stage.script.handled

    run(scenario)


def test_a_retry_count_without_end_stays_a_number() -> None:
    """What somebody wrote into the status must not keep the controller from writing its own."""

    async def scenario(stage: Stage) -> None:
        await stage.create("a", status={"state": "Failed", "retryCount": 2**63 - 1})
        stage.begin()

        async def has_reason() -> bool:
            return (await stage.status("a")).get("message") == "no"

        await stage.until(has_reason)
        assert 2**31 - 1 == (await stage.status("a"))["retryCount"]

    run(scenario, HostError("no"), works=False)


def test_the_age_of_the_oldest_request_is_known() -> None:
    """The metric covers the requests of all replicas."""

    async def scenario(stage: Stage) -> None:
        assert 0 == stage.requests.oldest_seconds
        await stage.create("a")

        async def is_known() -> bool:
            return len(stage.requests) == 1

        await stage.until(is_known)
        assert 0 <= stage.requests.oldest_seconds < 60

    run(scenario, works=False)


@pytest.mark.parametrize("shards", [1, 4, 8])
def test_requests_of_one_policy_and_trigger_share_a_shard(shards: int) -> None:
    """Requests in general spread over all shards."""

    def lane(name: str, namespace: str = "shop") -> int:
        spec = UpdateRequestSpec(RequestType.MUTATE, "patch", resource=Trigger("v1", "Pod", namespace, name, "7"))
        return lane_of(spec.to_json("kyverno"), shards)

    assert lane("web") == lane("web")
    assert set(range(shards)) == {lane(f"web-{number}") for number in range(200)}


def test_a_request_that_a_restored_cluster_still_has_is_worked_on_again() -> None:
    """A completed request in a later list is ignored; one in the list of a restored cluster is handled."""
    place = "/apis/kyverno.io/v2/namespaces/kyverno/updaterequests"
    body = {**UpdateRequestSpec(RequestType.GENERATE, "copy").to_json("kyverno"), "kind": "UpdateRequest"}
    body["metadata"] = {"name": "a", "namespace": "kyverno", "uid": "1", "resourceVersion": "5"}

    def listed(version: str) -> JSONObject:
        return {"kind": "UpdateRequestList", "metadata": {"resourceVersion": version}, "items": [body]}

    async def run() -> None:
        async with serving() as (api, client):
            api.on(f"GET {place}", listed("90"), listed("95"), listed("50"))
            expired = apiserver_status(410, "Expired")
            api.on(f"WATCH {place}", watch(ends=True), expired, watch())
            api.on(f"DELETE {place}/a", {"kind": "Status", "status": "Success"})
            script = Script([Done()])
            requests = UpdateRequests(client, BackgroundSettings(backoff=QUICK), {RequestType.GENERATE: script})
            tasks = [asyncio.create_task(requests.leading.run()), asyncio.create_task(requests.informer.run())]
            async with asyncio.timeout(60):
                while len(script.handled) < 2:
                    await asyncio.sleep(0.01)
            assert ["a", "a"] == script.handled
            assert 3 == api.count(f"GET {place}") - sum(1 for each in api.asked if each.query.get("watch"))
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(run())
