"""Reports converge to the library's results despite faults on the way."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from pathlib import Path

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.controllers.admission.controller import AdmissionSettings
from pyverno.kube.gvk import GVR
from pyverno.telemetry.observer import Observers
from pyverno.testing import REPORTS, PolicySandbox, install_definitions
from pyverno.webhook.policyreviews import ExceptionSettings
from tests.support.reportoracle import Changes, Shown, actual_reports, expected_reports

IS_FULL = bool(os.environ.get("PYVERNO_E2E"))
CHANGES = 500 if IS_FULL else 60
KILLS = 50 if IS_FULL else 3
_PATIENCE = 30.0
_NAMESPACES = GVR("", "v1", "namespaces")
_SETTINGS = AdmissionSettings(port=0, lease_retry=60, qps=0, exceptions=ExceptionSettings(enabled=True, namespace="*"))


async def differences(client: Client) -> list[tuple[str, str, object]]:
    """Return missing and superfluous report results, after waiting for the reports to converge."""
    end = asyncio.get_running_loop().time() + _PATIENCE
    while True:
        expected, actual = _flat(await expected_reports(client)), _flat(await actual_reports(client))
        lacking = [(uid, "lacks", item) for uid, item in sorted(expected - actual)]
        found = [*lacking, *((uid, "has", item) for uid, item in sorted(actual - expected))]
        if not found or asyncio.get_running_loop().time() > end:
            return found
        await asyncio.sleep(0.2)


def _flat(shown: Shown) -> set[tuple[str, object]]:
    return {(uid, item) for uid, items in shown.items() for item in items}


def test_reports_follow_random_changes() -> None:
    """Of objects, policies, exceptions, labels of namespaces and a ConfigMap, beside the admission controller."""

    async def check() -> None:
        cluster = PolicySandbox(Sandbox(Settings(kubelet=False)), Observers(), _SETTINGS, further=(REPORTS,))
        async with cluster, Client(load_kubeconfig(cluster.sandbox.kubeconfig, environment={}), qps=0) as client:
            changes = Changes(client, 7)
            await changes.begin()
            for number in range(CHANGES):
                await changes.make()
                if number % 20 == 19:
                    assert [] == await differences(client)
            assert [] == await differences(client)

    asyncio.run(check())


def test_reports_are_exact_after_kills_and_changes_of_leader(tmp_path: Path) -> None:
    """Two replicas, of which one is killed without warning, again and again, while everything changes."""

    async def check() -> None:
        async with Sandbox(Settings(kubelet=False)) as sandbox:
            access = load_kubeconfig(sandbox.kubeconfig, environment={})
            async with Client(access, qps=0) as client:
                await install_definitions(client)
                await client.create(
                    _NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kyverno"}}
                )
                changes = Changes(client, 11)
                await changes.begin()
                moments = random.Random(3)  # noqa: S311 - the same moments every time
                replicas = [await _start(sandbox.kubeconfig, tmp_path) for _ in range(2)]
                try:
                    for kill in range(KILLS):
                        for _ in range(8):
                            await changes.make()
                        if kill == 0:
                            assert [] == await differences(client)
                        await asyncio.sleep(
                            moments.uniform(0, 2.0)
                        )  # from before the lease is won to the middle of work
                        victim = replicas[kill % 2]
                        os.kill(victim.pid, signal.SIGKILL)
                        await victim.wait()
                        replicas[kill % 2] = await _start(sandbox.kubeconfig, tmp_path)
                    found = await differences(client)
                finally:
                    for replica in replicas:
                        replica.kill()
                        await replica.wait()
                assert [] == found
                assert await actual_reports(client)

    asyncio.run(check())


async def _start(kubeconfig: str, folder: Path) -> asyncio.subprocess.Process:
    flags = ("--leaderElectionRetryPeriod=500ms", "--disableMetrics", "--healthPort=0", "--enablePolicyException")
    words = ("-m", "pyverno", "controller", "reports", "--kubeconfig", kubeconfig, *flags, "--exceptionNamespace=*")
    with (folder / "log").open("ab") as log:
        return await asyncio.create_subprocess_exec(sys.executable, *words, stdout=log, stderr=log)
