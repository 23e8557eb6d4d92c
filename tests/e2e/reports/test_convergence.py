"""Reports converge to the library's results despite faults on the way."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.controllers.admission.controller import AdmissionSettings
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.telemetry.observer import Observers
from pyverno.testing import REPORTS, PolicySandbox, install_definitions
from pyverno.webhook.policyreviews import ExceptionSettings
from tests.support.reportoracle import Changes, Shown, actual_reports, expected_reports

IS_FULL = bool(os.environ.get("PYVERNO_E2E"))
CHANGES = 500 if IS_FULL else 60
KILLS = 50 if IS_FULL else 3
LEADERS = 20 if IS_FULL else 2
_PATIENCE = 30.0
_NAMESPACES = GVR("", "v1", "namespaces")
_LEASES = GVR("coordination.k8s.io", "v1", "leases")
_LEASE = "kyverno-reports-controller"
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
            while changes.made < CHANGES:
                for _ in range(20):
                    await changes.make()
                assert [] == await differences(client)
            assert await actual_reports(client)

    asyncio.run(check())


def test_reports_are_exact_after_kills(tmp_path: Path) -> None:
    """Two replicas, of which one is killed without warning, again and again, while everything changes."""

    async def check() -> None:
        async with _cluster(tmp_path) as (client, replicas):
            changes, moments = Changes(client, 11), random.Random(3)  # noqa: S311 - the same moments every time
            await changes.begin()
            for kill in range(KILLS):
                for _ in range(8):
                    await changes.make()
                if kill == 0:
                    assert [] == await differences(client)
                await asyncio.sleep(moments.uniform(0, 2.0))  # from before the lease is won to the middle of work
                await replicas.kill(kill % 2)
            assert replicas.killed == KILLS
            assert [] == await differences(client)
            assert await actual_reports(client)

    asyncio.run(check())


def test_reports_are_exact_after_changes_of_leader(tmp_path: Path) -> None:
    """The replica that holds the lease is killed while it works off changes; the lease counts who took over."""

    async def check() -> None:
        async with _cluster(tmp_path) as (client, replicas):
            changes, moments = Changes(client, 23), random.Random(5)  # noqa: S311 - the same moments every time
            await changes.begin()
            leader, first = await replicas.wait_for_leader()
            transitions = first
            for _ in range(LEADERS):
                for _ in range(8):
                    await changes.make()
                await asyncio.sleep(moments.uniform(0, 0.5))  # a scan waits for a tenth of a second for more changes
                await replicas.kill(leader)
                leader, transitions = await replicas.wait_for_leader(after=transitions)
            assert replicas.killed == LEADERS
            assert transitions - first >= LEADERS
            assert [] == await differences(client)
            assert await actual_reports(client)

    asyncio.run(check())


@asynccontextmanager
async def _cluster(folder: Path) -> AsyncIterator[tuple[Client, _Replicas]]:
    """Yield the client of a cluster, and two reports controllers that run in it."""
    async with (
        Sandbox(Settings(kubelet=False)) as sandbox,
        Client(load_kubeconfig(sandbox.kubeconfig, environment={}), qps=0) as client,
    ):
        await install_definitions(client)
        await client.create(_NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kyverno"}})
        replicas = _Replicas(client, sandbox.kubeconfig, folder)
        try:
            await replicas.start()
            yield client, replicas
        finally:
            await replicas.end()


class _Replicas:
    """Two processes of the reports controller; `killed` counts those that were killed while they ran."""

    def __init__(self, client: Client, kubeconfig: str, folder: Path) -> None:
        self.killed = 0
        self._client = client
        self._kubeconfig = kubeconfig
        self._folder = folder
        self._running: list[asyncio.subprocess.Process] = []

    async def start(self) -> None:
        for _ in range(2):
            self._running.append(await _start(self._kubeconfig, self._folder))

    async def end(self) -> None:
        for process in self._running:
            process.kill()
            await process.wait()

    async def kill(self, index: int) -> None:
        """Kill one without warning, and start another in its place."""
        victim = self._running[index]
        os.kill(victim.pid, signal.SIGKILL)
        assert -signal.SIGKILL == await victim.wait()
        self.killed += 1
        self._running[index] = await _start(self._kubeconfig, self._folder)

    async def wait_for_leader(self, *, after: int = -1) -> tuple[int, int]:
        """Return which replica holds the lease, and how often the lease has changed hands: more than `after` times."""
        async with asyncio.timeout(2 * _PATIENCE):
            while True:
                spec = await self._lease()
                pids = [f"-{process.pid}" for process in self._running]
                holders = [number for number, pid in enumerate(pids) if spec["holderIdentity"].endswith(pid)]
                if holders and spec["leaseTransitions"] > after:
                    return holders[0], spec["leaseTransitions"]
                await asyncio.sleep(0.05)

    async def _lease(self) -> JSONObject:
        try:
            found = await self._client.get(_LEASES, _LEASE, "kyverno")
        except StatusError as error:
            if error.status != 404:
                raise
            return {"holderIdentity": "", "leaseTransitions": 0}
        spec: JSONObject = found["spec"]
        return spec


async def _start(kubeconfig: str, folder: Path) -> asyncio.subprocess.Process:
    flags = ("--leaderElectionRetryPeriod=500ms", "--disableMetrics", "--healthPort=0", "--enablePolicyException")
    words = ("-m", "pyverno", "controller", "reports", "--kubeconfig", kubeconfig, *flags, "--exceptionNamespace=*")
    with (folder / "log").open("ab") as log:
        return await asyncio.create_subprocess_exec(sys.executable, *words, stdout=log, stderr=log)
