"""The status of policies: the controller restores it within seconds after foreign changes and failed writes."""

from __future__ import annotations

import asyncio

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.controllers.admission.settings import AdmissionSettings
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.telemetry.observer import Observers
from pyverno.testing import PolicySandbox
from tests.unit.controllers.reports.policies import policy
from tests.unit.controllers.state.test_evaluationsettings import LARGE

POLICIES = GVR("kyverno.io", "v1", "clusterpolicies")


async def until_ready(client: Client) -> None:
    """Wait until the policy is `Ready`."""
    async with asyncio.timeout(60):
        while True:
            status: JSONObject = (await client.get(POLICIES, "large")).get("status") or {}
            if [("Ready", "True")] == [(each["type"], each["status"]) for each in status.get("conditions") or ()]:
                return
            await asyncio.sleep(0.05)


def test_a_status_that_another_writer_changed_is_restored() -> None:
    """The restored status does not wait for a change of the policy or for a resync."""

    async def run() -> None:
        async with (
            PolicySandbox(Sandbox(Settings(controllers=False)), Observers()) as cluster,
            Client(load_kubeconfig(cluster.sandbox.kubeconfig), qps=0) as client,
        ):
            await client.create(POLICIES, LARGE)
            await until_ready(client)
            for changed in ({"conditions": []}, None):
                await client.patch(POLICIES, "large", {"status": changed}, subresource="status")
                await until_ready(client)

    asyncio.run(run())


def test_a_policy_names_what_its_reports_cannot_cover() -> None:
    """The policy stays `Ready`, and its message names the resource that the reports account may not list."""
    account = "system:serviceaccount:kyverno:kyverno-reports-controller"
    settings = AdmissionSettings(reports_account=account)

    async def run() -> str:
        async with (
            PolicySandbox(Sandbox(Settings(controllers=False)), Observers(), settings=settings) as cluster,
            Client(load_kubeconfig(cluster.sandbox.kubeconfig), qps=0) as client,
        ):
            await client.create(POLICIES, policy("large", "Secret"))
            await until_ready(client)
            [condition] = (await client.get(POLICIES, "large"))["status"]["conditions"]
            return str(condition["message"])

    expected = "Ready, but not for reporting, missing permissions: list /v1, Resource=secrets: "
    assert asyncio.run(run()).startswith(expected)
