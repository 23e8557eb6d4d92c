"""Watches of objects with a TTL, and the events after a restore of the cluster."""

from __future__ import annotations

import asyncio

from pyverno.cluster.informer import Notice
from pyverno.controllers.cleanup.ttlwatches import TtlWatches
from pyverno.kube.gvk import GVK
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import BUILTIN_KINDS
from tests.support.apiserver import serving, status, watch

PODS = BUILTIN_KINDS.find(GVK("", "v1", "Pod"))


def test_after_a_restore_every_object_is_looked_at_again() -> None:
    """The backup may contain an object that was just deleted, so unchanged objects are due again."""
    taken: list[str] = []
    pod = {"metadata": {"name": "a", "namespace": "team", "resourceVersion": "7"}}

    def listed(version: str) -> JSONObject:
        return {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": version}, "items": [pod]}

    def take(_number: int, notice: Notice, body: JSONObject) -> None:
        taken.append(f"{notice} {body['metadata']['name']}")

    async def run() -> None:
        assert PODS is not None
        async with serving() as (script, client):
            script.on("GET /api/v1/pods", listed("90"), listed("95"), listed("50"))
            script.on("WATCH /api/v1/pods", status(410, "Expired"), status(410, "Expired"), watch())
            watches = TtlWatches(client, take)
            await watches.follow([PODS])
            async with asyncio.timeout(60):
                while len(taken) < 2:
                    await asyncio.sleep(0.01)
            await watches.end()

    asyncio.run(run())
    assert ["ADDED a", "MODIFIED a"] == taken
