"""Work that survives: processes that are killed, an API server that is away or answers badly, two replicas.

The history of what was generated is the judge: each object was written, and none of them twice. With PYVERNO_E2E the
runs have their full size.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

import pytest
import yaml

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import Access, load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.controllers.admission.settings import AdmissionSettings
from pyverno.controllers.background.controller import BackgroundController, BackgroundSettings
from pyverno.controllers.runtime.workqueue import Backoff
from pyverno.errors import HostError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.policy.updaterequest import UPDATE_REQUESTS
from pyverno.telemetry.observer import Observers
from pyverno.testing import BACKGROUND, PolicySandbox
from pyverno.value import replace
from tests.support.history import History, following
from tests.support.stormproxy import stormy

IS_FULL: Final = bool(os.environ.get("PYVERNO_E2E"))
IS_NIGHTLY: Final = bool(os.environ.get("PYVERNO_NIGHTLY"))
USER: Final = BACKGROUND.user("kyverno")
POLICIES: Final = GVR("kyverno.io", "v1", "clusterpolicies")
MAPS: Final = GVR("", "v1", "configmaps")
BINDINGS: Final = GVR("rbac.authorization.k8s.io", "v1", "clusterrolebindings")
GENERATED: Final = "app.kubernetes.io/managed-by=kyverno"
STUCK_SECONDS: Final = 60.0
CONFIGURATION: Final[JSONObject] = {
    # more than there are triggers: beyond the threshold and what memory holds, work is refused with an event
    "data": {"updateRequestThreshold": "20000"},
}
POLICY: Final[JSONObject] = {
    "apiVersion": "kyverno.io/v1",
    "kind": "ClusterPolicy",
    "metadata": {"name": "answer"},
    "spec": {
        "rules": [
            {
                "name": "answer",
                "match": {
                    "any": [{"resources": {"kinds": ["ConfigMap"], "selector": {"matchLabels": {"asks": "yes"}}}}]
                },
                "generate": {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "name": "answer-{{request.object.metadata.name}}",
                    "namespace": "default",
                    "synchronize": True,
                    "data": {"data": {"to": "{{request.object.metadata.name}}"}},
                },
            }
        ]
    },
}


@dataclass
class Scene:
    """A cluster with the policy, and the history of what it generates."""

    cluster: PolicySandbox
    client: Client
    history: History

    async def ask(self, names: list[str]) -> None:
        """Create triggers."""
        waiting = list(names)

        async def work() -> None:
            while waiting:
                metadata = {"name": waiting.pop(), "labels": {"asks": "yes"}}
                await self.client.create(
                    MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}, "default"
                )

        await asyncio.gather(*(work() for _ in range(4)))

    async def done(self, names: list[str]) -> None:
        """Wait until no request is left, and hold the history against what should have been generated.

        There must be progress all the time: nothing is stuck for a minute.
        """

        async def is_done() -> bool:
            are_left = await self.client.has_any(UPDATE_REQUESTS, "kyverno")
            return self.cluster.controller.is_idle and not are_left

        seen = -1
        while seen < len(self.history.events):
            seen = len(self.history.events)
            with suppress(TimeoutError):
                await until(is_done)
                break
        else:
            left = (await self.client.list(UPDATE_REQUESTS, "kyverno"))["items"]
            raise TimeoutError(f"nothing was generated for a minute, after {seen} objects: {left[:3]}")
        await self.history.catch_up()
        assert [] == self.history.problems({("default", f"answer-{name}") for name in names})
        listed = await self.client.list(MAPS, "default", query={"labelSelector": GENERATED})
        assert {name: {"to": name} for name in names} == {each["data"]["to"]: each["data"] for each in listed["items"]}


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(STUCK_SECONDS):
        while not await holds():
            await asyncio.sleep(0.05)


@asynccontextmanager
async def scene() -> AsyncIterator[Scene]:
    """Run a cluster without a background controller, and watch the generated objects."""
    settings = AdmissionSettings(background_account=USER, qps=0)
    async with (
        PolicySandbox(Sandbox(Settings(controllers=False)), Observers(), settings) as cluster,
        Client(load_kubeconfig(cluster.sandbox.kubeconfig), qps=0) as client,
    ):
        group = "rbac.authorization.k8s.io"
        binding = {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "background"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "User", "name": USER, "apiGroup": group}],
        }
        await client.create(BINDINGS, binding)
        await client.patch(MAPS, "kyverno", CONFIGURATION, "kyverno")
        await client.create(POLICIES, POLICY)
        await cluster.settle()
        async with following(client, MAPS, GENERATED) as history:
            yield Scene(cluster, client, history)


def as_background(access: Access) -> Access:
    """Return the access of the background controller."""
    groups = ["system:serviceaccounts", "system:serviceaccounts:kyverno"]
    return replace(access, impersonate={"as": USER, "as-groups": groups})


@asynccontextmanager
async def controller(access: Access, name: str = "one", shards: int = 2, retry: float = 1.0) -> AsyncIterator[None]:
    """Run a replica in this process; one that cannot start is started again, as a Deployment does.

    Leases that another replica shall take need a short `retry`; on a busy machine they are lost now and then.
    """
    settings = BackgroundSettings(
        identity=name, account=USER, qps=0, lease_retry=retry, shards=shards, backoff=Backoff(first=0.05, longest=1.0)
    )
    stop = asyncio.Event()

    async def work() -> None:
        while not stop.is_set():
            try:
                await BackgroundController(access, settings).run(stop)
            except (HostError, StatusError):
                await asyncio.sleep(0.1)

    task = asyncio.create_task(work())
    try:
        yield
        assert not task.done()
    finally:
        stop.set()
        await asyncio.gather(task, return_exceptions=True)


class Process:
    """The controller as a process, as a Deployment runs it."""

    def __init__(self, kubeconfig: Path, number: int) -> None:
        self._kubeconfig = kubeconfig
        self.log = kubeconfig.with_name(f"pod-{number}.log")
        self._name = f"pod-{number}"
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it without waiting until it works; its log stays beside the kubeconfig."""
        # with a shorter period the lease of a replica on a busy machine ends again and again
        words = ["--kubeconfig", str(self._kubeconfig), "--leaderElectionRetryPeriod=500ms", "--disableMetrics"]
        words += ["--healthPort=0", "--clientRateLimitQPS=1000", "--clientRateLimitBurst=1000"]
        with self.log.open("wb") as stream:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "pyverno", "controller", "background", *words),
                env={**os.environ, "KYVERNO_POD_NAME": self._name},
                stdout=stream,
                stderr=stream,
            )

    async def kill(self) -> None:
        """End it without a word."""
        if self._process is not None:
            self._process.kill()
            await self._process.wait()


def test_a_controller_that_is_killed_loses_and_repeats_nothing(tmp_path: Path) -> None:
    """Killed again and again at random points of its work; another one takes over when the lease ends."""
    count, kills = (10_000, 200 if IS_NIGHTLY else 20) if IS_FULL else (120, 2)
    names = [f"question-{number}" for number in range(count)]
    chance = Random(7)  # noqa: S311 - a test that can be repeated

    async def run() -> None:
        async with scene() as found:
            kubeconfig = tmp_path / "kubeconfig"
            body = yaml.safe_load(Path(found.cluster.sandbox.kubeconfig).read_text())
            body["users"][0]["user"].update({"as": USER, "as-groups": ["system:serviceaccounts"]})
            kubeconfig.write_text(json.dumps(body))
            asking = asyncio.create_task(found.ask(names))
            for number in range(kills):
                process = Process(kubeconfig, number)
                await process.start()
                written = len(found.history.events)

                async def has_begun(written: int = written) -> bool:
                    return len(found.history.events) > written

                try:
                    await until(has_begun)
                    await asyncio.sleep(chance.uniform(0.0, 0.3))
                finally:
                    await process.kill()
            await asking
            last = Process(kubeconfig, kills)
            await last.start()
            try:
                await found.done(names)
            except TimeoutError as error:
                raise TimeoutError(f"{error}\n{last.log.read_text()}") from None
            finally:
                await last.kill()

    asyncio.run(run())


def test_an_api_server_that_is_away_delays_the_work() -> None:
    """The controller resumes its work when the API server is back."""
    away, count = (60.0, 500) if IS_FULL else (1.5, 30)
    names = [f"question-{number}" for number in range(count)]

    async def run() -> None:
        async with scene() as found:
            upstream = Client(as_background(found.client.access), qps=0)
            async with upstream, stormy(upstream, 0, 0.0) as (proxy, access), controller(access):
                await found.ask(names[: count // 2])
                await asyncio.sleep(0.1)
                proxy.is_away = True
                await found.ask(names[count // 2 :])
                await asyncio.sleep(away)
                proxy.is_away = False
                await found.done(names)
                assert proxy.broken

    asyncio.run(run())


@pytest.mark.parametrize("seed", range(50 if IS_FULL else 2))
def test_objects_generated_in_a_storm_agree_with_the_policy(seed: int) -> None:
    """A fifth of all requests is refused, or performed without an answer, and watches expire."""
    names = [f"question-{number}" for number in range(300 if IS_FULL else 40)]

    async def run() -> None:
        async with scene() as found:
            upstream = Client(as_background(found.client.access), qps=0)
            async with upstream, stormy(upstream, seed, 0.2) as (proxy, access), controller(access):
                await found.ask(names)
                await found.done(names)
                assert proxy.broken > len(names) / 10

    asyncio.run(run())


def test_replicas_do_not_repeat_each_others_writes() -> None:
    """Two work, one ends in the middle, a third one comes."""
    names = [f"question-{number}" for number in range(2000 if IS_FULL else 90)]
    third = len(names) // 3

    async def run() -> None:
        async with scene() as found:
            access = as_background(found.client.access)
            async with controller(access, "a", retry=0.3):
                async with controller(access, "b", retry=0.3):
                    await found.ask(names[:third])
                await found.ask(names[third : 2 * third])
                async with controller(access, "c", retry=0.3):
                    await found.ask(names[2 * third :])
                    await found.done(names)

    asyncio.run(run())
