"""Events for policies: which results have one, their wording, and no delay or repetition of answers."""

from __future__ import annotations

import asyncio

import pytest

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import Access, load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.controllers.admission.controller import AdmissionSettings
from pyverno.controllers.runtime.events import Event, Events, EventSettings, events_of
from pyverno.engine.result import FailureAction, ResourceRef, RuleResult, RuleType, Status
from pyverno.engine.rule import Family, PolicyInfo, RuleInfo
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.telemetry.observer import Observers
from pyverno.testing import PolicySandbox
from pyverno.webhook.configuration import Configuration

POD = ResourceRef("v1", "Pod", "shop", "web")
POLICIES = GVR("kyverno.io", "v1", "clusterpolicies")
CONFIG_MAPS = GVR("", "v1", "configmaps")
EVENTS = GVR("events.k8s.io", "v1", "events")
NAMESPACES = GVR("", "v1", "namespaces")


def result(
    rule: str,
    status: Status,
    message: str = "",
    policy: str = "p",
    kind: RuleType = RuleType.VALIDATION,
    exceptions: tuple[str, ...] = (),
) -> RuleResult:
    """Return the result of a rule of a ClusterPolicy."""
    info = RuleInfo(PolicyInfo("ClusterPolicy", "kyverno.io/v1", policy, Family.RULES), rule, kind)
    return RuleResult(info, FailureAction.ENFORCE, status, message, exceptions=exceptions)


def events_for(*results: RuleResult, is_allowed: bool = True) -> list[tuple[str, str, str, str]]:
    """Return reason, action, note and the name of the regarding object of each event."""
    found = events_of(results, POD, is_allowed=is_allowed)
    return [(each.reason, each.action, each.note, each.regarding.name) for each in found]


def test_a_denial_has_one_event_for_each_failed_rule() -> None:
    """Each failed rule has one event; the denied resource does not exist, so it has none."""
    events = events_for(result("a", Status.FAIL, "no"), result("b", Status.PASS), is_allowed=False)
    assert [("PolicyViolation", "Resource Blocked", "Pod shop/web: [a] fail (blocked); no", "p")] == events


def test_an_audited_failure_has_events_on_the_resource_as_well() -> None:
    """The resource has an event for every rule of the policy, also for rules that pass."""
    assert [
        ("PolicyViolation", "Resource Passed", "Pod shop/web: [a] fail; no", "p"),
        ("PolicyViolation", "Resource Passed", "policy p/a fail: no", "web"),
        ("PolicyViolation", "Resource Passed", "policy p/b pass: ", "web"),
    ] == events_for(result("a", Status.FAIL, "no"), result("b", Status.PASS))


def test_a_skip_has_events_on_exception_and_policy() -> None:
    """One event is on the exception, one on the policy."""
    assert [
        ("PolicySkipped", "Resource Passed", "resource Pod/shop/web was skipped from policy rule p/a", "e"),
        (
            "PolicySkipped",
            "Resource Passed",
            "resource Pod/shop/web was skipped from rule a due to policy exceptions team/e",
            "p",
        ),
    ] == events_for(result("a", Status.SKIP, exceptions=("team/e",)))


def test_success_has_one_event_for_each_policy() -> None:
    """The number of its rules does not matter."""
    assert [
        ("PolicyApplied", "Resource Passed", "Pod shop/web: pass", "p"),
        ("PolicyApplied", "Resource Mutated", "Pod shop/web is successfully mutated", "q"),
    ] == events_for(
        result("a", Status.PASS),
        result("b", Status.PASS),
        result("c", Status.PASS, policy="q", kind=RuleType.MUTATION),
    )


def test_an_object_without_a_name_has_no_events() -> None:
    """An object that only has `generateName` cannot be referenced."""
    nameless = ResourceRef("v1", "Pod", "shop", "")
    assert [] == list(events_of([result("a", Status.FAIL)], nameless, is_allowed=False))


@pytest.mark.parametrize(
    ("name", "expected"),
    [("Web:a", "web-a.ff"), ("system:node-", "system-node-z.ff"), (":a", "a-a.ff"), ("web", "web.ff")],
)
def test_names_of_events_are_valid_names(name: str, expected: str) -> None:
    """The name of the object may have characters that an event name may not."""
    event = Event("PolicyViolation", "Resource Passed", "note", ResourceRef("v1", "Pod", "", name))
    assert expected == event.to_json(255, "host")["metadata"]["name"]
    assert "default" == event.to_json(255, "host")["metadata"]["namespace"]


def test_long_notes_are_cut_between_characters() -> None:
    """The API server accepts 1024 bytes."""
    written = Event("PolicyViolation", "Resource Passed", "é" * 1000, POD).to_json(1, "host")["note"]
    assert "é" * 510 + "..." == written


def policy() -> JSONObject:
    """Return a policy that denies ConfigMaps without an owner."""
    rule = {
        "name": "owner",
        "match": {"any": [{"resources": {"kinds": ["ConfigMap"]}}]},
        "validate": {
            "failureAction": "Enforce",
            "message": "owner",
            "pattern": {"metadata": {"labels": {"owner": "?*"}}},
        },
    }
    head = {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "owners"}}
    return {**head, "spec": {"rules": [rule]}}


def play_events(settings: EventSettings, data: dict[str, str], given: list[Event], count: int) -> list[str]:
    """Emit events and return the reasons of the `count` that are written, and of what is written before a last one."""
    found: list[JSONObject] = []

    async def play() -> None:
        async with (
            Sandbox(Settings(controllers=False)) as sandbox,
            Client(load_kubeconfig(sandbox.kubeconfig)) as client,
        ):
            await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
            configuration = Configuration.read(data)
            events = Events(client, settings, configuration=lambda: configuration, uid_of=lambda _ref: "")
            for each in given:
                events.emit(each)
            running = asyncio.create_task(events.run())
            for least in (count, count + 1):
                async with asyncio.timeout(60):
                    while len(found) < least:
                        found[:] = (await client.list(EVENTS, "shop"))["items"]
                events.emit(Event("PolicyViolation", "Resource Passed", "last", POD))
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(play())
    return sorted(each["reason"] for each in found if each["note"] != "last")


@pytest.mark.parametrize(("omitted", "expected"), [((), ["owners"]), (("PolicyViolation",), [])])
def test_a_denied_request_leaves_its_event_in_the_cluster(omitted: tuple[str, ...], expected: list[str]) -> None:
    """A dry run and an omitted reason leave none; the event holds the uid of the policy."""

    async def play() -> None:
        settings = AdmissionSettings(events=EventSettings(omitted=omitted))
        async with (
            PolicySandbox(Sandbox(Settings(kubelet=False)), Observers(), settings) as cluster,
            Client(load_kubeconfig(cluster.sandbox.kubeconfig)) as client,
        ):
            made = await client.create(POLICIES, policy())
            await cluster.settle()
            bare = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bare"}}
            for query in ([("dryRun", "All")], []):
                with pytest.raises(StatusError):
                    await client.create(CONFIG_MAPS, bare, "default", query=query)
            found: list[JSONObject] = []
            for _ in range(3000 if expected else 50):
                listed = await client.list(EVENTS, "default")
                found = [each for each in listed["items"] if each["reason"] == "PolicyViolation"]
                if found:
                    break
                await asyncio.sleep(0.01)
            assert expected == [each["regarding"]["name"] for each in found]
            assert [made["metadata"]["uid"]] * len(found) == [each["regarding"]["uid"] for each in found]

    asyncio.run(play())


@pytest.mark.parametrize(
    ("data", "applied"),
    [({}, 0), ({"generateSuccessEvents": "true", "successEventActions": "Resource Mutated"}, 1)],
)
def test_the_config_map_chooses_the_events_of_successes(data: dict[str, str], applied: int) -> None:
    """Failures have events in any case."""
    given = [
        Event("PolicyApplied", "Resource Mutated", "a", POD),
        Event("PolicyApplied", "Resource Passed", "b", POD),
        Event("PolicyViolation", "Resource Passed", "c", POD),
    ]
    expected = [*["PolicyApplied"] * applied, "PolicyViolation"]
    assert expected == play_events(EventSettings(), data, given, len(expected))


def test_a_full_queue_takes_no_event() -> None:
    """An event is refused once more wait than the flag allows."""
    given = [Event("PolicyViolation", "Resource Passed", "a", POD)] * 5
    assert 3 == len(play_events(EventSettings(2), {}, given, 3))


def test_an_api_server_that_is_away_loses_events_in_one_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """Each lost event is counted; thousands of lines would fill the log."""
    lost: list[int] = []

    async def play() -> None:
        async with Client(Access("http://127.0.0.1:9"), qps=0) as client:
            events = Events(
                client,
                EventSettings(),
                configuration=Configuration,
                uid_of=lambda _ref: "",
                on_drop=lambda: lost.append(1),
            )
            for number in range(30):
                events.emit(Event("PolicyViolation", "Resource Blocked", str(number), POD, POD))
            running = asyncio.create_task(events.run())
            async with asyncio.timeout(60):
                while len(lost) < 30:
                    await asyncio.sleep(0.01)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(play())
    assert ["events could not be written"] == [each.message for each in caplog.records if "event" in each.message]


def test_an_event_that_cannot_be_made_ends_no_others() -> None:
    """A lookup that breaks: the event is dropped and counted, the next ones are written, whatever their notes hold."""

    class Server:
        """Takes events."""

        def __init__(self) -> None:
            self.notes: list[str] = []

        async def submit(self, gvr: GVR, body: JSONObject, namespace: str) -> None:
            self.notes.append(body["note"])

    server, dropped = Server(), []

    def uid_of(reference: ResourceRef) -> str:
        if reference.name == "broken":
            raise KeyError(reference)
        return ""

    async def run() -> None:
        events = Events(
            server,  # type: ignore[arg-type]  # what events need of a client
            EventSettings(),
            configuration=Configuration,
            uid_of=uid_of,
            on_drop=lambda: dropped.append(1),
        )
        running = asyncio.create_task(events.run())
        for number in range(4):
            events.emit(Event("PolicyError", "None", f"lone \ud800 {number}", POD))
            events.emit(Event("PolicyError", "None", "x", ResourceRef("v1", "Pod", "shop", "broken")))
        events.emit(Event("PolicyError", "None", "after", POD))
        async with asyncio.timeout(30):
            while "after" not in server.notes:
                await asyncio.sleep(0.001)
        assert not running.done()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(run())
    assert ([*(f"lone \\ud800 {number}" for number in range(4)), "after"], 4) == (server.notes, len(dropped))


def test_a_report_of_an_event_never_raises() -> None:
    """A controller that emits an event goes on, whatever the configuration does."""

    def broken() -> Configuration:
        raise KeyError

    async def run() -> None:
        events = Events(None, EventSettings(), configuration=broken, uid_of=lambda _: "")  # type: ignore[arg-type]
        events.emit(Event("PolicyApplied", "Resource Passed", "x", POD))

    asyncio.run(run())
