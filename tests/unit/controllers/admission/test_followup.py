"""Work after an answer in a cluster: reports on allowed requests, and UpdateRequests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.controllers.admission import updaterequestwriter
from pyverno.controllers.admission.controller import AdmissionSettings
from pyverno.controllers.admission.reports import ReportSettings
from pyverno.engine.triggers import Trigger
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.report.ephemeral import EPHEMERAL_REPORTS
from pyverno.telemetry.observer import Observers
from pyverno.testing import PolicySandbox

POLICIES = GVR("kyverno.io", "v1", "clusterpolicies")
VALIDATING = GVR("policies.kyverno.io", "v1", "validatingpolicies")
CONFIG_MAPS = GVR("", "v1", "configmaps")
SECRETS = GVR("", "v1", "secrets")
BINDINGS = GVR("rbac.authorization.k8s.io", "v1", "clusterrolebindings")
WORK = GVR("kyverno.io", "v2", "updaterequests")
REPORTS = GVR("reports.kyverno.io", "v1", "ephemeralreports")
EVENTS = GVR("events.k8s.io", "v1", "events")
BACKGROUND = "system:serviceaccount:kyverno:kyverno-background-controller"
GENERATE = "generate.kyverno.io/"


def config_map(name: str, **data: str) -> JSONObject:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": data,
    }


def rule(name: str, **action: Any) -> JSONObject:
    return {"name": name, "match": {"any": [{"resources": {"kinds": ["ConfigMap"]}}]}, **action}


def policy(name: str, *rules: JSONObject, **labels: str) -> JSONObject:
    metadata = {"name": name, "labels": labels}
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": metadata,
        "spec": {"rules": list(rules)},
    }


def check(action: str, key: str) -> JSONObject:
    return {"failureAction": action, "message": f"{key} is needed", "pattern": {"data": {key: "?*"}}}


class World:
    """A sandbox with policies in force, and its client."""

    def __init__(self, sandbox: PolicySandbox, client: Client) -> None:
        self.sandbox = sandbox
        self.client = client

    async def idle(self) -> None:
        """Wait until everything that follows from answers is written."""
        async with asyncio.timeout(60):
            while not self.sandbox.controller.is_idle:
                await asyncio.sleep(0.01)

    async def make(self, gvr: GVR, *bodies: JSONObject) -> None:
        """Write policies and wait until they are in force."""
        for body in bodies:
            await self.client.create(gvr, body)
        await self.sandbox.settle()

    async def until(self, holds: Callable[[], Awaitable[object]]) -> None:
        """Wait until a condition holds."""
        async with asyncio.timeout(60):
            while not await holds():
                await asyncio.sleep(0.02)

    async def configure(self, **data: str) -> None:
        """Write settings, and wait until the controller has them."""
        made = await self.client.patch(CONFIG_MAPS, "kyverno", {"data": data}, "kyverno")
        version = made["metadata"]["resourceVersion"]

        async def has_arrived() -> bool:
            return self.sandbox.controller.has_seen(CONFIG_MAPS, "kyverno", "kyverno", version)

        await self.until(has_arrived)

    async def counted(self) -> None:
        """Wait until the controller has counted all reports and UpdateRequests that are there."""
        followup = self.sandbox.controller._followup
        await self.idle()

        async def is_counted() -> bool:
            reports = [item for gvr in EPHEMERAL_REPORTS for item in (await self.client.list(gvr))["items"]]
            requests = (await self.client.list(WORK, "kyverno"))["items"]
            counts = (followup._reports._count, followup._writer._count, followup._writer._all)
            return [len(reports), len(requests), len(requests)] == [each.value for each in counts]

        await self.until(is_counted)

    async def events(self, reason: str) -> list[JSONObject]:
        """Return the events with a reason."""
        found: list[JSONObject] = (await self.client.list(EVENTS, query={"fieldSelector": f"reason={reason}"}))["items"]
        return found

    async def work(self) -> list[JSONObject]:
        """Return the specs of all UpdateRequests in order of creation, without the context."""
        await self.idle()
        found = (await self.client.list(WORK, "kyverno"))["items"]
        assert {"Pending"} >= {each["status"]["state"] for each in found}
        ordered = sorted(found, key=lambda each: int(each["metadata"]["resourceVersion"]))
        return [{key: value for key, value in each["spec"].items() if key != "context"} for each in ordered]

    async def results(self) -> list[list[tuple[str, str]]]:
        """Return policy and result of every report on the ConfigMaps of a test."""
        await self.idle()
        found = (await self.client.list(REPORTS, "default"))["items"]
        ordered = sorted(found, key=lambda each: int(each["metadata"]["resourceVersion"]))
        named = "audit.kyverno.io/resource.name"
        own = [each for each in ordered if each["metadata"]["annotations"][named] != "kube-root-ca.crt"]
        return [[(each["policy"], each["result"]) for each in body["spec"]["results"]] for body in own]

    async def forget(self) -> None:
        """Delete all UpdateRequests."""
        for each in (await self.client.list(WORK, "kyverno"))["items"]:
            await self.client.delete(WORK, each["metadata"]["name"], "kyverno")


def in_cluster(act: Callable[[World], Awaitable[None]], **settings: Any) -> None:
    async def run() -> None:
        sandbox = Sandbox(Settings(controllers=False))
        wanted = AdmissionSettings(port=0, lease_retry=60, qps=0, **settings)
        async with PolicySandbox(sandbox, Observers(), wanted) as installed:
            client = Client(load_kubeconfig(sandbox.kubeconfig), qps=0)
            await act(World(installed, client))
            await client.close()

    asyncio.run(run())


def test_allowed_requests_are_reported() -> None:
    """Enforce and Audit results are separate reports; a dry run, a denial and a deletion have none."""

    async def act(world: World) -> None:
        await world.make(
            POLICIES,
            policy("tells", rule("x", validate=check("Audit", "x"))),
            policy("denies", rule("y", validate=check("Enforce", "y"))),
            policy("silent", rule("z", validate=check("Audit", "z")), **{"reports.kyverno.io/disabled": ""}),
        )
        await world.client.create(CONFIG_MAPS, config_map("one", y="1"), "default")
        expected = [[("denies", "pass")], [("tells", "fail")]]
        assert expected == sorted(await world.results())
        await world.client.create(CONFIG_MAPS, config_map("two", y="1"), "default", query={"dryRun": "All"})
        try:
            await world.client.create(CONFIG_MAPS, config_map("three"), "default")
        except StatusError as error:
            assert "y is needed" in error.message
        await world.client.delete(CONFIG_MAPS, "one", "default")
        assert expected == sorted(await world.results())

    in_cluster(act)


def test_policies_in_cel_are_reported_on_unless_one_of_them_can_deny() -> None:
    """Neither the result of an Audit policy nor that of a Deny policy is reported then; settings select the results."""

    def validating(name: str, action: str) -> JSONObject:
        about = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
        return {
            "apiVersion": "policies.kyverno.io/v1",
            "kind": "ValidatingPolicy",
            "metadata": {"name": name},
            "spec": {
                "validationActions": [action],
                "matchConstraints": {"resourceRules": [about]},
                "validations": [{"expression": "'x' in object.data"}],
            },
        }

    async def act(world: World) -> None:
        await world.make(VALIDATING, validating("tells", "Audit"))
        await world.client.create(CONFIG_MAPS, config_map("one", y="1"), "default")
        await world.client.create(CONFIG_MAPS, config_map("fine", x="1"), "default")
        assert [[("tells", "fail")]] == await world.results()
        await world.make(VALIDATING, validating("denies", "Deny"))
        await world.client.create(CONFIG_MAPS, config_map("two", x="1"), "default")
        assert [[("tells", "fail")]] == await world.results()

    in_cluster(act, reports=ReportSettings(statuses=frozenset({"fail"})))


def test_no_more_reports_are_made_than_allowed() -> None:
    """The circuit breaker closes again once the cluster has fewer reports."""

    async def act(world: World) -> None:
        await world.make(POLICIES, policy("tells", rule("x", validate=check("Audit", "x"))))
        for name in "abcd":
            await world.client.create(CONFIG_MAPS, config_map(name), "default")
            await world.counted()
        assert 2 == len(await world.results())

    in_cluster(act, reports=ReportSettings(most=1))


def test_audit_policies_that_wait_for_the_host_are_evaluated_after_the_answer() -> None:
    """Their results are still reported and have events; an Enforce policy is evaluated before the answer."""
    looked_up = [{"name": "settings", "configMap": {"name": "settings", "namespace": "default"}}]

    def asking(name: str, action: str) -> JSONObject:
        deny = {"conditions": {"any": [{"key": "{{ settings.data.strict }}", "operator": "Equals", "value": "yes"}]}}
        validate = {"failureAction": action, "message": f"{name} says no", "deny": deny}
        return policy(name, rule("ask", context=looked_up, validate=validate))

    async def act(world: World) -> None:
        await world.client.create(CONFIG_MAPS, config_map("settings", strict="yes"), "default")
        await world.make(POLICIES, asking("tells", "Audit"))
        await world.client.create(CONFIG_MAPS, config_map("one"), "default")
        assert [[("tells", "fail")]] == await world.results()
        async with asyncio.timeout(60):
            while (
                len((await world.client.list(EVENTS, query={"fieldSelector": "reason=PolicyViolation"}))["items"]) < 2
            ):
                await asyncio.sleep(0.02)
        await world.make(POLICIES, asking("denies", "Enforce"))
        try:
            await world.client.create(CONFIG_MAPS, config_map("two"), "default")
        except StatusError as error:
            assert "denies says no" in error.message
            assert "tells says no" not in error.message
        assert [[("tells", "fail")]] == await world.results()

    in_cluster(act)


def test_work_follows_requests() -> None:
    """A generating policy has one UpdateRequest, and so has each rule that mutates existing objects."""
    made = {"apiVersion": "v1", "kind": "Secret", "name": "made", "namespace": "default", "data": {"type": "Opaque"}}
    targets = [{"apiVersion": "v1", "kind": "Secret", "name": "one", "namespace": "default"}]
    patch = {"metadata": {"labels": {"a": "b"}}}

    async def act(world: World) -> None:
        await world.make(
            POLICIES,
            policy("make", rule("keep", generate={**made, "synchronize": True}), rule("once", generate=made)),
            policy("touch", rule("label", mutate={"targets": targets, "patchStrategicMerge": patch})),
        )
        stored = await world.client.create(CONFIG_MAPS, config_map("one"), "default")
        trigger = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "namespace": "default",
            "name": "one",
            "uid": stored["metadata"]["uid"],
        }
        found = {each["policy"]: each for each in await world.work()}
        assert {"make", "touch"} == set(found)
        assert ("generate", {}) == (found["make"]["requestType"], found["make"]["resource"])
        contexts = [{"rule": name, "deleteDownstream": False, "trigger": trigger} for name in ("keep", "once")]
        assert contexts == found["make"]["ruleContext"]
        assert ("mutate", "label", trigger) == tuple(found["touch"][key] for key in ("requestType", "rule", "resource"))
        await world.forget()
        await world.client.create(CONFIG_MAPS, config_map("two"), "default", query={"dryRun": "All"})
        assert [] == await world.work()
        await world.client.delete(CONFIG_MAPS, "one", "default")
        (found_,) = await world.work()
        assert [{"rule": "keep", "deleteDownstream": True, "trigger": trigger}] == found_["ruleContext"]

    in_cluster(act)


def test_generated_objects_follow_their_source() -> None:
    """A change of the object or its source creates an UpdateRequest; a deleted source deletes its copies."""
    copied = {"apiVersion": "v1", "kind": "Secret", "name": "copy", "namespace": "default"}
    keep = rule("keep", generate={**copied, "synchronize": True, "clone": {"name": "source", "namespace": "default"}})
    labels = {
        "app.kubernetes.io/managed-by": "kyverno",
        f"{GENERATE}policy-name": "copy",
        f"{GENERATE}policy-namespace": "",
        f"{GENERATE}rule-name": "keep",
        f"{GENERATE}trigger-kind": "ConfigMap",
        f"{GENERATE}trigger-version": "v1",
        f"{GENERATE}trigger-group": "",
        f"{GENERATE}trigger-namespace": "default",
        f"{GENERATE}trigger-uid": "7",
    }
    trigger = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "uid": "7"}

    def secret(name: str, **extra: str) -> JSONObject:
        metadata = {"name": name, "namespace": "default", "labels": extra}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}

    async def act(world: World) -> None:
        source = await world.client.create(SECRETS, secret("source", **{f"{GENERATE}clone-source": ""}), "default")
        of_source = {
            f"{GENERATE}source-uid": source["metadata"]["uid"],
            f"{GENERATE}source-kind": "Secret",
            f"{GENERATE}source-version": "v1",
            f"{GENERATE}source-group": "",
            f"{GENERATE}source-namespace": "default",
        }
        await world.client.create(SECRETS, secret("copy", **labels, **of_source), "default")
        await world.make(POLICIES, policy("copy", keep))
        await world.client.patch(SECRETS, "copy", {"stringData": {"a": "b"}}, "default")
        expected = {"rule": "keep", "deleteDownstream": False, "trigger": trigger}
        assert [[expected]] == [each["ruleContext"] for each in await world.work()]
        await world.forget()
        await world.client.patch(SECRETS, "source", {"stringData": {"a": "b"}}, "default")
        assert [[expected]] == [each["ruleContext"] for each in await world.work()]
        await world.forget()
        await world.client.delete(SECRETS, "source", "default")
        assert [[{**expected, "deleteDownstream": True}]] == [each["ruleContext"] for each in await world.work()]

    in_cluster(act)


def test_requests_of_the_background_account_create_no_work() -> None:
    """Objects that the background controller writes would otherwise trigger rules without end."""
    made = {"apiVersion": "v1", "kind": "Secret", "name": "made", "namespace": "default", "data": {"type": "Opaque"}}

    async def act(world: World) -> None:
        namespace, name = BACKGROUND.split(":")[2:]
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "background"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": name}],
        }
        await world.client.create(BINDINGS, binding)
        always = {**rule("always", generate=made), "skipBackgroundRequests": False}
        await world.make(POLICIES, policy("make", rule("usual", generate=made), always))
        access = load_kubeconfig(world.sandbox.sandbox.kubeconfig)
        access.impersonate.update({"as": BACKGROUND, "as-groups": ["system:masters"]})
        async with Client(access, qps=0) as client:
            await client.create(CONFIG_MAPS, config_map("one"), "default")
        (found,) = await world.work()
        assert ["always"] == [each["rule"] for each in found["ruleContext"]]

    in_cluster(act, background_account=BACKGROUND)


def test_work_beyond_the_threshold_is_refused_and_reported() -> None:
    """An event on the policy reports the refused work."""
    made = {"apiVersion": "v1", "kind": "Secret", "name": "made", "namespace": "default", "data": {"type": "Opaque"}}

    async def act(world: World) -> None:
        await world.configure(updateRequestThreshold="0")
        await world.make(POLICIES, policy("make", rule("usual", generate=made)))
        await world.client.create(CONFIG_MAPS, config_map("one"), "default")
        assert [] == await world.work()
        await world.until(lambda: world.events("PolicyError"))
        found = await world.events("PolicyError")
        assert "policy make error: updateRequestThreshold allows no UpdateRequests" == found[0]["note"]
        assert ("make", "one") == (found[0]["regarding"]["name"], found[0]["related"]["name"])

    in_cluster(act)


def test_work_waits_for_room_below_the_threshold() -> None:
    """It is written once another UpdateRequest completes, and none is lost."""
    made = {"apiVersion": "v1", "kind": "Secret", "name": "made", "namespace": "default", "data": {"type": "Opaque"}}

    async def act(world: World) -> None:
        await world.configure(updateRequestThreshold="1")
        await world.make(POLICIES, policy("make", rule("usual", generate=made)))
        await world.client.create(CONFIG_MAPS, config_map("one"), "default")
        assert 1 == len(await world.work())
        await world.counted()
        await world.client.create(CONFIG_MAPS, config_map("two"), "default")
        await asyncio.sleep(0.3)
        assert not world.sandbox.controller.is_idle
        await world.forget()
        (found,) = await world.work()
        assert "two" == found["ruleContext"][0]["trigger"]["name"]

    in_cluster(act)


def test_a_controller_that_ends_writes_what_waits_for_room() -> None:
    """Work that only its memory holds would be lost, so it exceeds the threshold instead."""
    made = {"apiVersion": "v1", "kind": "Secret", "name": "made", "namespace": "default", "data": {"type": "Opaque"}}
    names = ["one", "three", "two"]

    async def act(world: World) -> None:
        await world.configure(updateRequestThreshold="1")
        await world.make(POLICIES, policy("make", rule("usual", generate=made)))
        for name in names:
            await world.client.create(CONFIG_MAPS, config_map(name), "default")
        await world.sandbox.controller._followup.flush(60)
        found = await world.work()
        assert names == sorted(each["ruleContext"][0]["trigger"]["name"] for each in found)
        assert [] == await world.events("PolicyError")

    in_cluster(act)


def test_an_entry_of_the_global_context_without_data_reports_the_reason() -> None:
    """An event and the status give the reason until the entry has data."""
    entries = GVR("kyverno.io", "v2", "globalcontextentries")
    call = {"urlPath": "/apis/none.example.com/v1/things", "refreshInterval": "200ms", "retryLimit": 1}

    async def status(world: World, ready: str) -> JSONObject:
        async with asyncio.timeout(60):
            while True:
                found: JSONObject = (await world.client.get(entries, "things")).get("status") or {}
                if ready in [each["status"] for each in found.get("conditions") or ()]:
                    return found
                await asyncio.sleep(0.02)

    async def act(world: World) -> None:
        body = {"apiVersion": "kyverno.io/v2", "kind": "GlobalContextEntry", "metadata": {"name": "things"}}
        made = await world.client.create(entries, {**body, "spec": {"apiCall": call}})
        found = await status(world, "False")
        assert ("Ready", "Failed", False) == (
            found["conditions"][0]["type"],
            found["conditions"][0]["reason"],
            "lastRefreshTime" in found,
        )
        await world.until(lambda: world.events("PolicyError"))
        told = await world.events("PolicyError")
        assert [("Retrying", "globalcontext-controller", made["metadata"]["uid"])] == [
            (each["action"], each["reportingController"], each["regarding"]["uid"]) for each in told
        ]
        better = {"spec": {"apiCall": {"urlPath": "/api/v1/namespaces"}}}
        await world.client.patch(entries, "things", better)
        assert "lastRefreshTime" in await status(world, "True")

    in_cluster(act)


def test_a_bug_in_the_work_of_one_policy_leaves_that_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lost work is an event of its policy."""
    usual = updaterequestwriter.update_requests

    def breaking(triggers: tuple[Trigger, ...], *rest: Any) -> Any:
        if triggers[0].rule.policy.name == "broken":
            raise KeyError
        return usual(triggers, *rest)

    monkeypatch.setattr(updaterequestwriter, "update_requests", breaking)

    async def act(world: World) -> None:
        target = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "t", "namespace": "default"}]
        changes = {"targets": target, "patchStrategicMerge": {"data": {"a": "b"}}}
        names = ("a-sound", "broken", "sound")
        await world.make(POLICIES, *(policy(name, rule("x", mutate=changes)) for name in names))
        await world.client.create(CONFIG_MAPS, config_map("one"), "default")
        assert ["a-sound", "sound"] == sorted(each["policy"] for each in await world.work())

        async def is_reported() -> bool:
            notes = [each["note"] for each in await world.events("PolicyError")]
            return ["policy broken error: an internal error occurred; see the log"] == notes

        await world.until(is_reported)

    in_cluster(act)
