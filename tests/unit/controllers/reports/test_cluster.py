"""The reports controller with an API server: the reports that it writes, needless writes, and forbidden lists."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.cluster.informer import Informer, Notice
from pyverno.controllers.reports.controller import ReportsController, ReportsSettings
from pyverno.controllers.reports.settings import ScanSettings
from pyverno.install.component import component_identity
from pyverno.install.reports import REPORTS
from pyverno.install.settings import InstallSettings
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.reportapis import OPENREPORTS, POLICY_REPORTS
from pyverno.report.ephemeral import EPHEMERAL_REPORTS
from pyverno.telemetry.metrics import Metrics
from pyverno.testing import install_definitions
from pyverno.value import replace
from tests.support.recordkeys import SEALS, SECRETS, key_secret
from tests.unit.controllers.reports.policies import policy, validating

PODS = GVR("", "v1", "pods")
NAMESPACES = GVR("", "v1", "namespaces")
CLUSTER_POLICIES = GVR("kyverno.io", "v1", "clusterpolicies")
VALIDATING_POLICIES = GVR("policies.kyverno.io", "v1", "validatingpolicies")
ROLES = GVR("rbac.authorization.k8s.io", "v1", "clusterroles")
_RBAC = "rbac.authorization.k8s.io"
_IDENTITY = {
    "ServiceAccount": GVR("", "v1", "serviceaccounts"),
    "ClusterRole": ROLES,
    "ClusterRoleBinding": GVR(_RBAC, "v1", "clusterrolebindings"),
    "Role": GVR(_RBAC, "v1", "roles"),
    "RoleBinding": GVR(_RBAC, "v1", "rolebindings"),
}
EVENTS = GVR("events.k8s.io", "v1", "events")
SETTINGS = ReportsSettings(qps=0, settle_seconds=0.05)
_SECONDS = 60.0


@dataclass
class Stage:
    """A cluster with a reports controller."""

    sandbox: Sandbox
    client: Client
    controller: ReportsController

    async def settle(self) -> None:
        """Wait until the reports reflect every earlier write."""
        for _ in range(15):  # the watches are in this event loop, which may stand still for a while
            await asyncio.sleep(0.02)
        async with asyncio.timeout(_SECONDS):
            while not self.controller.is_idle:
                await asyncio.sleep(0.02)

    async def until(self, holds: Callable[[], Awaitable[Any]]) -> Any:
        """Wait until a condition holds, and return its value."""
        async with asyncio.timeout(_SECONDS):
            while not (found := await holds()):
                await asyncio.sleep(0.05)
        return found

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Run the controller."""
        stop = asyncio.Event()
        running = asyncio.create_task(self.controller.run(stop))
        try:
            yield
        finally:
            stop.set()
            await running

    async def reports(self, gvr: GVR = POLICY_REPORTS.namespaced) -> dict[str, JSONObject]:
        """Return the reports by the name of their object."""
        return {each["scope"]["name"]: each for each in (await self.client.list(gvr))["items"]}


@asynccontextmanager
async def stage(
    settings: ReportsSettings = SETTINGS,
    account: str = "",
    *,
    starts: bool = True,
    log_request: Callable[[str], None] | None = None,
) -> AsyncIterator[Stage]:
    """Run a cluster and a reports controller, with all permissions or those of an account; the test may start it."""
    async with Sandbox(Settings(kubelet=False, log_request=log_request)) as sandbox:
        access = load_kubeconfig(sandbox.kubeconfig, environment={})
        async with Client(access, qps=0) as client:
            await install_definitions(client)
            for name in ("kyverno", "team"):
                await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
                await client.create(SECRETS, key_secret(), name)
            if account:
                for body in component_identity(REPORTS, InstallSettings()):
                    await client.create(_IDENTITY[body["kind"]], body, body["metadata"].get("namespace", ""))
            own = replace(access, impersonate={"as": account}) if account else access
            made = Stage(sandbox, client, ReportsController(own, settings, Metrics()))
            if not starts:
                yield made
                return
            async with made.working():
                if not account:
                    await made.settle()
                yield made


def pod(name: str, image: str = "nginx:1") -> JSONObject:
    """Return a Pod to create."""
    spec = {"containers": [{"name": "c", "image": image}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "team"}, "spec": spec}


def ephemeral(subject: JSONObject, uid: str, *items: JSONObject) -> JSONObject:
    """Return an ephemeral report on a Pod, as the admission controller writes it."""
    return SEALS.seal(foreign(subject, uid, *items))


def foreign(subject: JSONObject, uid: str, *items: JSONObject) -> JSONObject:
    """Return an ephemeral report on a Pod without a seal."""
    labels = {"uid": uid, "group": "", "version": "v1", "kind": "Pod"}
    name = subject["metadata"]["name"]
    return {
        "apiVersion": "reports.kyverno.io/v1",
        "kind": "EphemeralReport",
        "metadata": {
            "generateName": "request-",
            "namespace": "team",
            "labels": {
                **{f"audit.kyverno.io/resource.{key}": value for key, value in labels.items()},
                "app.kubernetes.io/managed-by": "kyverno",
            },
            "annotations": {"audit.kyverno.io/resource.name": name, "audit.kyverno.io/resource.namespace": "team"},
        },
        "spec": {"owner": {"apiVersion": "", "kind": "", "name": "", "uid": ""}, "results": list(items)},
    }


def item(name: str, result: str = "fail", rule: str = "tag", seconds: int | None = None) -> JSONObject:
    """Return a result of an admission request."""
    timestamp = {"seconds": int(time.time()) if seconds is None else seconds, "nanos": 0}
    return {"source": "kyverno", "policy": name, "rule": rule, "result": result, "scored": True, "timestamp": timestamp}


def results(report: JSONObject) -> list[tuple[str, str]]:
    """Return policies and results."""
    return [(each["policy"], each["result"]) for each in report["results"]]


@pytest.mark.parametrize("memory", [0, 1])
def test_objects_that_exist_are_reported(memory: int) -> None:
    """Their bodies stay in memory, or are read again when an evaluation needs them."""

    async def check() -> None:
        settings = replace(SETTINGS, scan=ScanSettings(memory_bytes=memory))
        async with stage(settings) as made:
            for name, image in (("good", "nginx:1"), ("bad", "nginx:latest"), ("other", "nginx:2")):
                await made.client.create(PODS, pod(name, image), "team")
            await made.client.create(CLUSTER_POLICIES, policy("latest"))
            await made.settle()
            found = await made.reports()
            assert {"good": "pass", "bad": "fail", "other": "pass"} == {
                name: report["results"][0]["result"] for name, report in found.items()
            }
            body = await made.client.get(PODS, "good", "team")
            body["spec"]["containers"][0]["image"] = "nginx:latest"
            await made.client.update(PODS, body, "team")
            await made.settle()
            assert [("latest", "fail")] == results((await made.reports())["good"])

    asyncio.run(check())


def test_a_scan_that_finds_nothing_new_writes_nothing() -> None:
    """A policy for another kind and a new term of the controller write no report again."""

    async def check() -> None:
        async with stage() as made:
            for name in ("a", "b"):
                await made.client.create(PODS, pod(name), "team")
            await made.client.create(CLUSTER_POLICIES, policy("latest"))
            await made.settle()
            before = {name: each["metadata"]["resourceVersion"] for name, each in (await made.reports()).items()}
            await made.client.create(VALIDATING_POLICIES, validating("maps", "configmaps"))
            await made.settle()
            access = load_kubeconfig(made.sandbox.kubeconfig, environment={})
            stop = asyncio.Event()
            again = ReportsController(access, replace(SETTINGS, namespace="team"), Metrics())
            running = asyncio.create_task(again.run(stop))
            other = Stage(made.sandbox, made.client, again)
            await other.settle()
            stop.set()
            await running
            after = {name: each["metadata"]["resourceVersion"] for name, each in (await made.reports()).items()}
            assert before == {name: after[name] for name in before}

    asyncio.run(check())


def test_ephemeral_reports_are_merged_and_deleted() -> None:
    """Results of admission-only policies stay, the scan replaces the others, and reports of other tools are kept."""

    async def check() -> None:
        async with stage() as made:
            body = await made.client.create(PODS, pod("web"), "team")
            uid = body["metadata"]["uid"]
            await made.client.create(CLUSTER_POLICIES, policy("latest"))
            await made.client.create(CLUSTER_POLICIES, policy("requests", background=False))
            await made.settle()
            falco = {**item("shell", rule=""), "source": "falco"}
            report = ephemeral(body, uid, item("requests"), item("latest", seconds=9**10), item("gone"), falco)
            await made.client.create(EPHEMERAL_REPORTS[0], report, "team")
            await made.settle()
            found = (await made.reports())["web"]
            assert [("latest", "pass"), ("requests", "fail"), ("shell", "fail")] == results(found)
            assert [] == (await made.client.list(EPHEMERAL_REPORTS[0]))["items"]
            await made.client.delete(CLUSTER_POLICIES, "requests")
            await made.settle()
            assert [("latest", "pass"), ("shell", "fail")] == results((await made.reports())["web"])

    asyncio.run(check())


def test_ephemeral_reports_of_a_burst_are_one_write() -> None:
    """They are collected for a second from the first one, whose time is not prolonged, and visible until then."""

    async def check() -> None:
        times: list[float] = []
        async with stage() as made:
            await made.client.create(CLUSTER_POLICIES, policy("requests", background=False))
            body = await made.client.create(PODS, pod("web"), "team")
            await made.settle()

            def note(_notice: Notice, _body: JSONObject) -> None:
                times.append(asyncio.get_running_loop().time())

            async def send(number: int) -> None:
                found = {**item("requests"), "message": str(number)}
                report = ephemeral(body, body["metadata"]["uid"], found)
                await made.client.create(EPHEMERAL_REPORTS[0], report, "team")

            reports = Informer(made.client, POLICY_REPORTS.namespaced)
            reports.listen(note)
            following = asyncio.create_task(reports.run())
            await reports.synced.wait()
            began = asyncio.get_running_loop().time()
            for number in range(5):
                await send(number)
            assert 5 == len((await made.client.list(EPHEMERAL_REPORTS[0]))["items"])
            await made.settle()
            following.cancel()
            assert 1 == len(times)
            assert times[0] - began >= SETTINGS.collect_seconds
            assert ["4"] == [each["message"] for each in (await made.reports())["web"]["results"]]
            assert [] == (await made.client.list(EPHEMERAL_REPORTS[0]))["items"]

    asyncio.run(check())


def test_the_first_report_of_a_burst_is_adopted_by_its_object() -> None:
    """Kyverno makes the object the owner of ephemeral reports; here one write for each burst is enough."""

    async def check() -> None:
        async with stage(replace(SETTINGS, collect_seconds=2.0)) as made:
            await made.client.create(CLUSTER_POLICIES, policy("latest"))
            body = await made.client.create(PODS, pod("web"), "team")
            uid = body["metadata"]["uid"]
            await made.settle()
            for _ in range(2):
                await made.client.create(EPHEMERAL_REPORTS[0], ephemeral(body, uid, item("latest")), "team")
            await made.client.patch(PODS, "web", {"metadata": {"labels": {"a": "b"}}}, "team")

            async def owners() -> list[JSONObject]:
                found = (await made.client.list(EPHEMERAL_REPORTS[0]))["items"]
                return [owner for each in found for owner in each["metadata"].get("ownerReferences") or ()]

            assert [{"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": uid}] == await made.until(owners)
            await made.settle()
            assert [] == (await made.client.list(EPHEMERAL_REPORTS[0]))["items"]

    asyncio.run(check())


def test_a_report_about_a_request_finds_an_object_without_a_uid() -> None:
    """A request to create an object has no uid when it is mutated."""

    async def check() -> None:
        async with stage() as made:
            await made.client.create(CLUSTER_POLICIES, policy("requests", background=False))
            body = await made.client.create(PODS, pod("web"), "team")
            await made.settle()
            await made.client.create(EPHEMERAL_REPORTS[0], ephemeral(body, "", item("requests")), "team")
            await made.settle()
            found = (await made.reports())["web"]
            assert (body["metadata"]["uid"], [("requests", "fail")]) == (found["metadata"]["name"], results(found))
            assert [] == (await made.client.list(EPHEMERAL_REPORTS[0]))["items"]

    asyncio.run(check())


def test_reports_of_other_tools_are_left_alone() -> None:
    """This holds even for a report with the name of one of ours."""

    async def check() -> None:
        async with stage() as made:
            body = await made.client.create(PODS, pod("web"), "team")
            reference = {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": body["metadata"]["uid"]}
            other = {
                "apiVersion": POLICY_REPORTS.api_version,
                "kind": "PolicyReport",
                "metadata": {"name": "trivy", "namespace": "team", "labels": {"app.kubernetes.io/managed-by": "trivy"}},
                "scope": reference,
                "results": [item("latest")],
            }
            await made.client.create(POLICY_REPORTS.namespaced, other, "team")
            await made.client.create(CLUSTER_POLICIES, policy("latest"))
            await made.settle()
            listed = (await made.client.list(POLICY_REPORTS.namespaced))["items"]
            found = {each["metadata"]["name"]: each for each in listed}
            assert {"trivy", body["metadata"]["uid"]} == set(found)
            assert [item("latest")] == found["trivy"]["results"]

    asyncio.run(check())


def test_a_changed_or_deleted_report_is_written_again() -> None:
    """The watch of reports delivers the change."""

    async def check() -> None:
        async with stage() as made:
            body = await made.client.create(PODS, pod("web"), "team")
            name = body["metadata"]["uid"]
            await made.client.create(CLUSTER_POLICIES, policy("latest"))
            await made.settle()
            patch = {"results": [item("latest")]}
            await made.client.patch(POLICY_REPORTS.namespaced, name, patch, "team")
            await made.settle()
            assert [("latest", "pass")] == results((await made.reports())["web"])
            await made.client.delete(POLICY_REPORTS.namespaced, name, "team")
            await made.settle()
            assert [("latest", "pass")] == results((await made.reports())["web"])

    asyncio.run(check())


def test_reports_go_with_their_object_and_with_their_policy() -> None:
    """Deleting the object or the policy removes its results."""

    async def check() -> None:
        async with stage() as made:
            for name in ("a", "b"):
                await made.client.create(PODS, pod(name), "team")
            await made.client.create(CLUSTER_POLICIES, policy("latest"))
            await made.settle()
            await made.client.delete(PODS, "a", "team", options={"gracePeriodSeconds": 0})
            await made.settle()
            assert {"b"} == set(await made.reports())
            await made.client.delete(CLUSTER_POLICIES, "latest")
            await made.settle()
            assert {} == await made.reports()

    asyncio.run(check())


def test_reports_are_openreports_by_flag() -> None:
    """With the flag no PolicyReports are written."""

    async def check() -> None:
        async with stage(replace(SETTINGS, uses_openreports=True)) as made:
            await made.client.create(PODS, pod("web"), "team")
            await made.client.create(CLUSTER_POLICIES, policy("latest"))
            await made.settle()
            assert ({"web"}, set()) == (set(await made.reports(OPENREPORTS.namespaced)), set(await made.reports()))

    asyncio.run(check())


def test_the_flag_for_openreports_deletes_our_policy_reports() -> None:
    """Old results would be shown beside the new ones; reports of other tools stay."""
    ours = {"app.kubernetes.io/managed-by": "kyverno"}

    async def check() -> None:
        async with stage(replace(SETTINGS, uses_openreports=True, aggregates=False), starts=False) as made:
            for gvr, kind, name, labels in (
                (POLICY_REPORTS.namespaced, "PolicyReport", "old", ours),
                (POLICY_REPORTS.cluster, "ClusterPolicyReport", "old", ours),
                (POLICY_REPORTS.namespaced, "PolicyReport", "other", {}),
            ):
                namespace = "team" if kind == "PolicyReport" else ""
                body = {"apiVersion": POLICY_REPORTS.api_version, "kind": kind}
                await made.client.create(gvr, {**body, "metadata": {"name": name, "labels": labels}}, namespace)
            async with made.working():

                async def names() -> list[str] | None:
                    lists = [await made.client.list(POLICY_REPORTS.resource(place)) for place in ("team", "")]
                    found = [each["metadata"]["name"] for listed in lists for each in listed["items"]]
                    return found if "old" not in found else None

                assert ["other"] == await made.until(names)

    asyncio.run(check())


def test_without_scans_only_requests_are_reported() -> None:
    """With `--backgroundScan=false` admission results remain; without aggregation ephemeral reports stay."""

    async def check() -> None:
        async with stage(replace(SETTINGS, scans=False)) as made:
            body = await made.client.create(PODS, pod("web"), "team")
            await made.client.create(CLUSTER_POLICIES, policy("latest"))
            await made.settle()
            assert {} == await made.reports()
            report = ephemeral(body, body["metadata"]["uid"], item("latest"))
            await made.client.create(EPHEMERAL_REPORTS[0], report, "team")
            await made.settle()
            assert [("latest", "fail")] == results((await made.reports())["web"])

    asyncio.run(check())


def test_a_kind_that_may_not_be_listed_is_an_error_of_its_policies() -> None:
    """The error is a report result, an event and a metric, never "no violations"; it ends with its reason."""
    user = "system:serviceaccount:kyverno:kyverno-reports-controller"

    async def check() -> None:
        async with stage(account=user) as made:
            await made.client.create(PODS, pod("web"), "team")
            await made.client.create(CLUSTER_POLICIES, policy("latest", "Secret"))

            async def error() -> JSONObject | None:
                return (await made.reports(POLICY_REPORTS.cluster)).get("latest")

            found = await made.until(error)
            assert ([("latest", "error")], 1) == (results(found), found["summary"]["error"])
            assert found["results"][0]["message"].startswith("secrets cannot be listed: ")

            async def events() -> list[JSONObject]:
                listed = (await made.client.list(EVENTS))["items"]
                return [each for each in listed if each["reason"] == "PolicyError"]

            [event] = await made.until(events)
            assert "secrets cannot be listed" in event["note"]
            readings = {each.name: each for each in made.controller.metrics.read()}
            assert [("secrets",)] == [tuple(labels) for labels in readings["kyverno_scan_unreadable_resources"].numbers]
            label = {"rbac.kyverno.io/aggregate-to-reports-controller": "true"}
            rule = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["list", "watch"]}
            role = {
                "apiVersion": f"{_RBAC}/v1",
                "kind": "ClusterRole",
                "metadata": {"name": "more", "labels": label},
                "rules": [rule],
            }
            await made.client.create(ROLES, role)

            async def is_gone() -> bool:
                return not await error()

            await made.until(is_gone)

    asyncio.run(check())


def test_a_result_that_is_cut_is_written_once() -> None:
    """A message beyond the limit of reports is cut the same way each time, so the report keeps its timestamps."""

    async def check() -> None:
        async with stage() as made:
            await made.client.create(PODS, pod("web", "nginx:latest"), "team")
            long = policy("latest")
            long["spec"]["rules"][0]["validate"]["message"] = "x" * 20_000
            await made.client.create(CLUSTER_POLICIES, long)
            await made.settle()
            before = (await made.reports())["web"]
            await asyncio.sleep(1.1)  # timestamps have a resolution of one second
            await made.client.create(CLUSTER_POLICIES, policy("other"))
            await made.settle()
            after = (await made.reports())["web"]
            assert [("latest", "fail"), ("other", "fail")] == results(after)
            assert before["results"][0] == after["results"][0]
            assert 2 == after["metadata"]["generation"]

    asyncio.run(check())
