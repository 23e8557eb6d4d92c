"""The Secret with the keys of image records: made once, rotated, read by all replicas, and never shown."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kubesandbox import Sandbox
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.controllers.state.recordkeys import RECORD_KEYS, ROTATION_SECONDS, StoredRecordKeys
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject

SECRETS = GVR("", "v1", "secrets")
SPACE = "default"


def play(scene: Callable[[Client], Awaitable[None]]) -> None:
    """Run a scene with the Secrets of a sandbox."""

    async def run() -> None:
        async with (
            Sandbox(controllers=False) as sandbox,
            Client(load_kubeconfig(sandbox.kubeconfig), qps=0) as client,
        ):
            await scene(client)

    asyncio.run(run())


async def _stored(client: Client) -> JSONObject:
    found: JSONObject = (await client.get(SECRETS, RECORD_KEYS, SPACE))["data"]
    return found


class Replica:
    """A replica that follows the keys; its clock is that of a test."""

    def __init__(self, client: Client) -> None:
        self.now = 1_700_000_000.0
        self.stored = StoredRecordKeys(client, SPACE, lambda: self.now)
        self._task = asyncio.ensure_future(self.stored.follow())

    async def read(self) -> None:
        """Have the replica read the Secret now, as it does every minute."""
        await self.stored.look()

    async def stop(self) -> None:
        """End it."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


def test_what_one_replica_seals_the_other_reads() -> None:
    """Both make the Secret at once; one of them wins, and the other one adopts its keys."""

    async def scene(client: Client) -> None:
        replicas = [Replica(client), Replica(client)]
        await asyncio.gather(*(each.stored.reconcile() for each in replicas))
        for each in replicas:
            await each.read()
        first, second = (each.stored.keys for each in replicas)
        assert (True, True) == (bool(first), second.holds(b"text", first.seal(b"text")))
        await asyncio.gather(*(each.stop() for each in replicas))

    play(scene)


def test_a_key_is_rotated_and_the_one_before_still_counts() -> None:
    """After two periods it does not."""

    async def scene(client: Client) -> None:
        replica = Replica(client)
        seals = []
        held = []
        for _ in range(3):
            await replica.stored.reconcile()
            seals.append(replica.stored.keys.seal(b"text"))
            held.append([replica.stored.keys.holds(b"text", each) for each in seals])
            replica.now += ROTATION_SECONDS - 1
            await replica.stored.reconcile()
            assert seals[-1] == replica.stored.keys.seal(b"text")
            replica.now += 2
        assert [[True], [True, True], [False, True, True]] == held
        await replica.stop()

    play(scene)


def _encoded(**values: str) -> JSONObject:
    return {name: base64.b64encode(text.encode()).decode() for name, text in values.items()}


@pytest.mark.parametrize(
    "data",
    [
        None,
        {},
        _encoded(current="short", previous="k" * 32, made="1700000000"),
        _encoded(current="k" * 32),
        _encoded(current="k" * 32, made="9" * 15),
        _encoded(current="k" * 32, made="soon"),
    ],
    ids=str,
)
def test_an_unusable_secret_gets_a_new_key(data: JSONObject | None) -> None:
    """A Secret that was deleted, emptied or written by hand leads to new keys, not to an error."""

    async def scene(client: Client) -> None:
        replica = Replica(client)
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": RECORD_KEYS}}
        await client.create(SECRETS, {**body, **({"data": data} if data is not None else {})}, SPACE)
        await replica.stored.reconcile()
        made = await _stored(client)
        assert (32, b"1700000000") == (
            len(base64.b64decode(made["current"])),
            base64.b64decode(made["made"]),
        )
        await client.delete(SECRETS, RECORD_KEYS, SPACE)
        await replica.read()
        assert not replica.stored.keys
        await replica.stored.reconcile()
        assert made["current"] != (await _stored(client))["current"]
        await replica.stop()

    play(scene)


def test_no_key_reaches_a_log_or_an_error(caplog: pytest.LogCaptureFixture) -> None:
    """A canary in the Secret comes out nowhere, while it is read, rotated and refused."""
    canary = "canary-" + "x" * 32

    async def scene(client: Client) -> None:
        body: Any = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": RECORD_KEYS}}
        await client.create(SECRETS, {**body, "data": _encoded(current=canary, made="1")}, SPACE)
        replica = Replica(client)
        await replica.read()
        shown = repr(replica.stored.keys)
        await replica.stored.reconcile()
        seal = replica.stored.keys.seal(b"text")
        texts = [
            shown,
            repr(seal),
            str(vars(replica.stored)),
            caplog.text,
            *(str(each.__dict__) for each in caplog.records),
        ]
        encoded = base64.b64encode(canary.encode()).decode()
        assert [] == [text for text in texts for each in (canary, encoded, canary.encode().hex()) if each in text]
        await replica.stop()

    with caplog.at_level(logging.DEBUG):
        play(scene)
