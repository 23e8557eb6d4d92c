"""Replicas of `pyverno controller admission` as processes, behind one address, and the definitions they need.

This module must never know a policy.
"""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import ssl
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pyverno.cluster.client import Client
from pyverno.install.definitions import definitions
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from tests.e2e.admission.balancer import Balancer
from tests.e2e.admission.load import Wrong
from tests.support.ports import free_port

__all__ = ["CONFIG_MAPS", "POLICIES", "SECRETS", "VALIDATING", "Deployment", "Replica", "install", "until"]

CONFIG_MAPS = GVR("", "v1", "configmaps")
SECRETS = GVR("", "v1", "secrets")
NAMESPACES = GVR("", "v1", "namespaces")
POLICIES = GVR("kyverno.io", "v1", "clusterpolicies")
VALIDATING = GVR("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations")
_DEFINITIONS = GVR("apiextensions.k8s.io", "v1", "customresourcedefinitions")
_SECONDS = 180.0
_MAX_KNOWN, _MOST_TOLD = 20, 5


async def until(what: str, holds: object, *, seconds: float = _SECONDS) -> None:
    """Wait until a function (or coroutine function) returns something true; fails with `what` after some time."""
    assert callable(holds)
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        found = holds()
        if asyncio.iscoroutine(found):
            found = await found
        if found:
            return
        assert asyncio.get_running_loop().time() < deadline, f"not within {seconds:g} seconds: {what}"
        await asyncio.sleep(0.05)


async def install(client: Client) -> None:
    """Create the definitions of the policy kinds and the namespace of the controllers."""
    for definition in definitions():
        await _create(client, _DEFINITIONS, definition)
    await _create(client, NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kyverno"}})

    async def are_served() -> bool:
        try:
            await client.list(POLICIES)
        except StatusError:
            return False
        return True

    await until("policies are served", are_served)


async def _create(client: Client, gvr: GVR, body: JSONObject) -> None:
    try:
        await client.create(gvr, body)
    except StatusError as error:
        if error.reason != "AlreadyExists":
            raise


@dataclass(slots=True)
class Replica:
    """One process, and the port that it listens on."""

    port: int
    process: asyncio.subprocess.Process
    log: Path

    def terminate(self) -> None:
        """Ask it to end, as the kubelet does."""
        self.process.send_signal(signal.SIGTERM)

    async def gone(self) -> int:
        """Wait for its end and return its code."""
        return await asyncio.wait_for(self.process.wait(), _SECONDS)


class Deployment:
    """Replicas behind one address; an async context manager that leaves no process behind."""

    def __init__(self, kubeconfig: str, folder: Path, *arguments: str) -> None:
        """Take the access to the cluster, where logs go, and further arguments of every replica."""
        self._arguments = arguments
        self.replicas: list[Replica] = []
        self.balancer = Balancer()
        self._kubeconfig = kubeconfig
        self._folder = folder
        self._number = 0

    async def __aenter__(self) -> Deployment:
        await self.balancer.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        for replica in list(self.replicas):
            with suppress(ProcessLookupError):
                replica.process.kill()
            await replica.gone()
        await self.balancer.stop()

    async def start(self, count: int = 1) -> list[Replica]:
        """Start replicas; they are not ready yet."""
        started = [await self._start() for _ in range(count)]
        self.replicas.extend(started)
        return started

    async def _start(self) -> Replica:
        self._number += 1
        port = free_port()
        log = self._folder / f"replica-{self._number}.log"
        command = [
            *(sys.executable, "-m", "pyverno", "controller", "admission", "--kubeconfig", self._kubeconfig),
            *("--webhookServerHost", "127.0.0.1", "--webhookServerPort", str(port)),
            *("--serverIP", f"127.0.0.1:{self.balancer.port}", "--leaderElectionRetryPeriod", "500ms"),
            *("--disableMetrics", "--loggingFormat", "json", "-v", "4", *self._arguments),
        ]
        environment = {**os.environ, "KYVERNO_POD_NAME": f"replica-{self._number}"}
        with log.open("wb") as stream:
            process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=stream, stderr=stream)
        self.balancer.add(port)
        return Replica(port, process, log)

    async def ready(self, *replicas: Replica) -> None:
        """Wait until replicas get connections."""

        def are_ready() -> bool:
            for replica in replicas:
                code = replica.process.returncode
                assert code is None, f"a replica ended with {code}: {replica.log.read_text()}"
            return all(self.balancer.is_ready(replica.port) for replica in replicas)

        try:
            await until("replicas are ready", are_ready)
        except AssertionError as error:
            logs = "\n".join(f"{each.port}: {each.log.read_text()}" for each in replicas)
            raise AssertionError(f"{error}: {self.balancer.said}\n{logs}") from None

    async def forget(self, replica: Replica) -> int:
        """Wait for the end of a replica, and return its code."""
        code = await replica.gone()
        self.balancer.remove(replica.port)
        self.replicas.remove(replica)
        return code

    def evidence(self, uid: str) -> str:
        """Return the log lines of the replicas that name one review, and the admission log lines before them.

        Logs of stopped replicas are included.
        """
        lines: list[str] = []
        for log in sorted(self._folder.glob("replica-*.log")):
            known: list[str] = []
            for line in log.read_text(errors="replace").splitlines():
                if f'"{uid}"' in line:
                    lines += [f"{log.stem}: {each}" for each in (*known[-_MAX_KNOWN:], line)]
                    known = []
                elif '"logger":"pyverno.admission"' in line:
                    known.append(line)
        return "\n".join(lines) or f"no replica wrote of {uid}"

    def complaints(self, wrong: Sequence[Wrong]) -> str:
        """Return the first wrong answers of a load with what explains them."""
        told = [f"{each.at:.3f} {each.uid}: {each.complaint}\n{self.evidence(each.uid)}" for each in wrong[:_MOST_TOLD]]
        troubles = "\n".join(f"{at:.3f} balancer: {text}" for at, text in self.balancer.troubles[:_MAX_KNOWN])
        return "\n\n".join((f"{len(wrong)} wrong answers", *told, troubles))

    async def kill_all(self) -> None:
        """End all replicas at once and without notice."""
        for replica in list(self.replicas):
            replica.process.kill()
            await self.forget(replica)


async def trusted(client: Client) -> ssl.SSLContext:
    """Return what an API server trusts now: the bundle in the webhook configuration of policies."""
    found = await client.get(VALIDATING, "kyverno-policy-validating-webhook-cfg")
    bundle = base64.b64decode(found["webhooks"][0]["clientConfig"]["caBundle"]).decode()
    return ssl.create_default_context(cadata=bundle)
