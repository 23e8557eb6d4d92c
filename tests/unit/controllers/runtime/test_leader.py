"""A replica that may not use its lease says so: it waits without end, and its work is not done."""

from __future__ import annotations

import asyncio
import logging

import pytest

from pyverno.cluster.leases import LeaderElection, LeaseTimes
from pyverno.controllers.runtime.leader import Leader
from tests.support.apiserver import serving, status

PATH = "/apis/coordination.k8s.io/v1/namespaces/kyverno/leases"
FAST = LeaseTimes(duration=120, renew=100, retry=0.05)


class _Work:
    """Notes that it was begun."""

    def __init__(self) -> None:
        self.began = asyncio.Event()

    async def run(self) -> None:
        """Work until cancelled."""
        self.began.set()
        await asyncio.Event().wait()


@pytest.mark.parametrize("refused", ["GET", "POST", "PUT"])
def test_a_lease_that_cannot_be_used_is_logged_with_the_reason(caplog: pytest.LogCaptureFixture, refused: str) -> None:
    """Once, not for each try; that another holds it or was faster is no fault."""
    other = {"metadata": {"name": "a"}, "spec": {"holderIdentity": "other", "leaseDurationSeconds": 1}}
    free = {"metadata": {"name": "a"}, "spec": {"holderIdentity": ""}}
    forbidden = [status(403, "Forbidden") for _ in range(4)]
    replies = {
        "GET": {f"GET {PATH}/a": [*forbidden, other, free], f"PUT {PATH}/a": [free]},
        "POST": {f"GET {PATH}/a": [status(404, "NotFound")], f"POST {PATH}": [*forbidden, free]},
        "PUT": {f"GET {PATH}/a": [free], f"PUT {PATH}/a": [*forbidden, status(409, "Conflict"), free]},
    }

    async def run() -> None:
        async with serving() as (script, client):
            for what, answers in replies[refused].items():
                script.on(what, *answers)
            work = _Work()
            leader = Leader(LeaderElection(client, "a", "kyverno", "me", FAST), [work])
            campaign = asyncio.create_task(leader.campaign())
            async with asyncio.timeout(60):
                await work.began.wait()
            campaign.cancel()
            await asyncio.gather(campaign, return_exceptions=True)

    with caplog.at_level(logging.INFO, "pyverno.controllers"):
        asyncio.run(run())
    found = [(each.getMessage(), getattr(each, "fields", {}).get("error")) for each in caplog.records]
    assert [
        ("the lease kyverno/a cannot be used", "Forbidden"),
        ("the lease kyverno/a can be used again", None),
    ] == found
