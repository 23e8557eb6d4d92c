"""Leader election against a real server: one candidate works at a time, and stops before another can begin."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
from aiohttp import web

from kubesandbox import Sandbox
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.cluster.leases import LEASES, LeaderElection, LeaseTimes
from tests.support.apiserver import serving, status

TIMES = LeaseTimes(duration=1.2, renew=1.0, retry=0.1)
STEADY = LeaseTimes(duration=120, renew=100, retry=0.1)
"""A lease that a process keeps although it stands still for a while."""
LATE = LeaseTimes(duration=30, renew=1.0, retry=0.1)
"""A lease that lasts much longer than its holder works without a renewal."""
PATH = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


class _Work:
    """Records its runs."""

    def __init__(self) -> None:
        self.began: list[float] = []
        self.ended: list[float] = []

    async def __call__(self) -> None:
        self.began.append(time.monotonic())
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.append(time.monotonic())


class _Candidates:
    """Creates candidates for one lease, and follows the lease."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __call__(self, name: str) -> LeaderElection:
        """Create a candidate with this name."""
        return LeaderElection(self._client, "kyverno", "default", name, STEADY)

    async def renewed_for(self, seconds: float) -> None:
        """Wait until the lease was renewed for this many seconds."""
        first = await self._renewed()
        async with asyncio.timeout(60):
            while await self._renewed() < first + timedelta(seconds=seconds):
                await asyncio.sleep(0.02)

    async def _renewed(self) -> datetime:
        lease = await self._client.get(LEASES, "kyverno", "default")
        return datetime.fromisoformat(lease["spec"]["renewTime"])


@asynccontextmanager
async def _sandbox() -> AsyncIterator[_Candidates]:
    async with (
        Sandbox(controllers=False) as sandbox,
        Client(load_kubeconfig(sandbox.kubeconfig), qps=0) as client,
    ):
        yield _Candidates(client)


async def _until(holds: Callable[[], object], seconds: float = 60) -> None:
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.01)


async def _end(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def test_of_two_candidates_one_works_until_it_gives_the_lease_back() -> None:
    """The other waits, and begins soon after the release."""

    async def run() -> None:
        async with _sandbox() as candidate:
            first, second = candidate("one"), candidate("two")
            work, other = _Work(), _Work()
            leading = asyncio.create_task(first.run(work))
            await _until(lambda: work.began)
            waiting = asyncio.create_task(second.run(other))
            await candidate.renewed_for(1.5)
            assert (True, False, []) == (first.is_leader, second.is_leader, other.began)
            await _end(leading)
            await first.release()
            await _until(lambda: other.began, STEADY.duration / 2)
            assert work.ended[0] <= other.began[0]
            await _end(waiting)

    asyncio.run(run())


def test_a_lease_that_its_holder_left_is_taken_when_it_ends() -> None:
    """The candidate measures the duration itself, whatever time the holder wrote."""

    async def run() -> None:
        async with (
            Sandbox(controllers=False) as sandbox,
            Client(load_kubeconfig(sandbox.kubeconfig), qps=0) as client,
        ):
            spec = {
                "holderIdentity": "gone",
                "leaseDurationSeconds": 1,
                "renewTime": "2099-01-01T00:00:00.000000Z",
                "leaseTransitions": 7,
            }
            await client.create(LEASES, {"metadata": {"name": "kyverno"}, "spec": spec}, "default")
            work = _Work()
            began = time.monotonic()
            leading = asyncio.create_task(LeaderElection(client, "kyverno", "default", "new", TIMES).run(work))
            await _until(lambda: work.began)
            assert work.began[0] - began >= 1
            found = (await client.get(LEASES, "kyverno", "default"))["spec"]
            assert ("new", 8) == (found["holderIdentity"], found["leaseTransitions"])
            await _end(leading)

    asyncio.run(run())


def test_a_renewal_does_not_wait_behind_the_requests_of_the_work() -> None:
    """The work of this leader has used up the limit of requests for minutes."""

    async def run() -> None:
        async with Sandbox(controllers=False) as sandbox:
            access = load_kubeconfig(sandbox.kubeconfig)
            async with Client(access, qps=0) as other, Client(access, qps=1, burst=1) as client:
                waiting: list[asyncio.Task[Any]] = []

                async def work() -> None:
                    waiting.extend(asyncio.create_task(client.has_any(LEASES)) for _ in range(100))
                    await asyncio.Event().wait()

                leading = asyncio.create_task(LeaderElection(client, "kyverno", "default", "one", STEADY).run(work))
                await _until(lambda: waiting)
                first = (await other.get(LEASES, "kyverno", "default"))["spec"]["renewTime"]
                async with asyncio.timeout(30):
                    while (await other.get(LEASES, "kyverno", "default"))["spec"]["renewTime"] == first:
                        await asyncio.sleep(0.05)
                assert not all(each.done() for each in waiting)
                await _end(leading)
                for each in waiting:
                    each.cancel()
                await asyncio.gather(*waiting, return_exceptions=True)

    asyncio.run(run())


def test_work_ends_when_another_holds_the_lease() -> None:
    """The next renewal notices an edited lease."""

    async def run() -> None:
        async with (
            Sandbox(controllers=False) as sandbox,
            Client(load_kubeconfig(sandbox.kubeconfig), qps=0) as client,
        ):
            work = _Work()
            leading = asyncio.create_task(LeaderElection(client, "kyverno", "default", "one", TIMES).run(work))
            await _until(lambda: work.began)
            await client.patch(LEASES, "kyverno", {"spec": {"holderIdentity": "two"}}, "default")
            await asyncio.wait_for(leading, 60)
            assert 1 == len(work.ended)

    asyncio.run(run())


def _stored(name: str) -> dict[str, Any]:
    spec = {"holderIdentity": name, "leaseDurationSeconds": 1, "renewTime": "x", "leaseTransitions": 0}
    return {"kind": "Lease", "metadata": {"name": "kyverno"}, "spec": spec}


def test_work_ends_before_the_lease_does_when_the_server_is_away() -> None:
    """Refused or unanswered renewals end it shortly before another candidate may take the lease."""

    async def silence(_: web.BaseRequest) -> web.StreamResponse:
        await asyncio.Event().wait()
        return web.Response()

    async def lasted(answer: Any) -> float:
        async with serving() as (script, client):
            script.on(f"GET {PATH}/kyverno", status(404, "NotFound"), answer)
            script.on(f"POST {PATH}", _stored("one"))
            work = _Work()
            await asyncio.wait_for(LeaderElection(client, "kyverno", "default", "one", LATE).run(work), 60)
            return work.ended[0] - work.began[0]

    for answer in (status(500, "InternalError"), silence):
        seconds = asyncio.run(lasted(answer))
        assert LATE.renew - 0.3 < seconds < LATE.duration, seconds


def test_a_lease_that_took_too_long_to_get_is_not_held() -> None:
    """Other candidates count from the time of the write, so a late response must not start the work."""
    slow = TIMES.duration + 0.1

    async def run() -> None:
        async with serving() as (script, client):

            async def create(_: web.BaseRequest) -> web.StreamResponse:
                await asyncio.sleep(slow)
                return web.json_response(_stored("one"))

            script.on(f"GET {PATH}/kyverno", status(404, "NotFound"))
            script.on(f"POST {PATH}", create)
            work = _Work()
            leading = asyncio.create_task(LeaderElection(client, "kyverno", "default", "one", TIMES).run(work))
            await _until(lambda: script.count(f"GET {PATH}/kyverno") > 1)
            assert [] == work.began
            await _end(leading)

    asyncio.run(run())


def test_an_error_of_the_work_is_raised() -> None:
    """It is not mistaken for a lost lease."""

    async def breaks() -> None:
        raise ValueError("broken")

    async def run() -> str:
        async with _sandbox() as candidate:
            try:
                await candidate("one").run(breaks)
            except ValueError as error:
                return str(error)
        return ""

    assert "broken" == asyncio.run(run())


@pytest.mark.parametrize(
    "forged",
    [
        {"leaseTransitions": 2**31 - 1, "leaseDurationSeconds": 1},
        {"leaseTransitions": 0, "leaseDurationSeconds": 2**31 - 1},
        {"leaseDurationSeconds": None, "renewTime": None, "leaseTransitions": None},
    ],
    ids=["transitions", "duration", "nulls"],
)
def test_a_forged_lease_is_taken_too(forged: dict[str, Any]) -> None:
    """Whatever stands in it: a holder that never renews it must not keep everybody from leading."""

    async def run() -> None:
        async with (
            Sandbox(controllers=False) as sandbox,
            Client(load_kubeconfig(sandbox.kubeconfig), qps=0) as client,
        ):
            spec = {"holderIdentity": "nobody", **{key: value for key, value in forged.items() if value is not None}}
            await client.create(LEASES, {"metadata": {"name": "kyverno"}, "spec": spec}, "default")
            work, times = _Work(), LeaseTimes(0.3, 0.25, 0.05)
            leading = asyncio.create_task(LeaderElection(client, "kyverno", "default", "new", times).run(work))
            await _until(lambda: work.began)
            found = (await client.get(LEASES, "kyverno", "default"))["spec"]
            assert ("new", 1) == (found["holderIdentity"], found["leaseDurationSeconds"])
            await _end(leading)

    asyncio.run(run())


def test_the_times_are_kyvernos_proportions() -> None:
    """The lease lasts six retry periods, and its holder gives up after five."""
    assert LeaseTimes(12, 10, 2) == LeaseTimes.of_retry(2)


def test_a_bug_of_the_renewal_is_logged_and_ends_the_term(caplog: pytest.LogCaptureFixture) -> None:
    """The work stops before the lease could be another's, and the log says why."""

    async def run() -> None:
        async with _sandbox() as candidate:
            election, work = candidate("one"), _Work()

            async def broken() -> bool:
                raise KeyError("canary-5c1e")

            async def begin() -> None:
                election._try = broken  # type: ignore[method-assign]
                await work()

            await election.run(begin)
            assert (1, 1, False) == (len(work.began), len(work.ended), election.is_leader)

    asyncio.run(run())
    assert ["the renewal of a lease ran into a bug"] == [each.getMessage() for each in caplog.records if each.exc_info]
