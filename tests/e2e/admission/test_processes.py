"""A replica of several processes at one port: one verdict from all of them, one end; one that is killed comes back."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sys
from pathlib import Path

import aiohttp
import pytest

from pyverno.cluster.client import Client
from tests.e2e.admission.deployment import Deployment, trusted, until
from tests.e2e.admission.load import Load
from tests.e2e.admission.mixture import mixture
from tests.e2e.admission.scene import IS_FULL, apply_all, note, play, pool
from tests.support.ports import free_port

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")

_MIXTURE = mixture(1 if IS_FULL else 8)
_REVIEWS = 5_000 if IS_FULL else 300


def children(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def scraped(port: int) -> dict[str, float]:
    """Return the metrics by name, the values of all labels added up."""
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/metrics") as reply:
        text = await reply.text()
    found: dict[str, float] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name = line.partition("{")[0].partition(" ")[0]
            found[name] = found.get(name, 0) + float(line.rpartition(" ")[2])
    return found


async def _counted(metrics: int) -> float:
    return (await scraped(metrics)).get("kyverno_http_requests_total", 0)


def test_several_processes_answer_as_one(tmp_path: Path) -> None:
    """Each process serves reviews with the expected answers, metrics add up, and SIGTERM stops all processes."""
    metrics = free_port()

    async def scene(client: Client, deployment: Deployment) -> None:
        await apply_all(client, _MIXTURE)
        reviews = pool(_MIXTURE.reviews(seed=5), _REVIEWS)
        [replica] = deployment.replicas
        both = children(replica.process.pid)
        assert 2 == len(both)
        # a busy process may miss a scrape
        await until("requests are counted", lambda: _counted(metrics))
        before = await _counted(metrics)
        cpu = [_cpu_seconds(pid) for pid in both]
        context = await trusted(client)
        async with Load(deployment.balancer.port, context, reviews, staying=4, pause=0, most=_REVIEWS) as load:
            pass
        used = [_cpu_seconds(pid) - start for pid, start in zip(both, cpu, strict=True)]
        note("two processes", requests=load.asked, seconds=load.seconds, cpu_seconds=sum(used), wrong=len(load.wrong))
        assert [] == load.wrong, deployment.complaints(load.wrong)
        assert min(used) > 0, "one of the processes was asked nothing"

        async def are_counted() -> bool:
            return _REVIEWS <= await _counted(metrics) - before

        await until("all reviews are counted", are_counted)
        after = await scraped(metrics)
        assert after["process_resident_memory_bytes"] > 100_000_000, "the memory of all processes is told"
        replica.terminate()
        assert 0 == await deployment.forget(replica)
        assert [] == [pid for pid in both if Path(f"/proc/{pid}").exists()]

    arguments = ["--webhookProcesses=2", "--disableMetrics=false", f"--metricsPort={metrics}", "--shutdownDelay=100ms"]
    play(scene, tmp_path, arguments=arguments)


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_process_that_is_killed_comes_back(tmp_path: Path) -> None:
    """The replica is unready until a new process is ready; no answer is wrong meanwhile."""

    async def scene(client: Client, deployment: Deployment) -> None:
        await apply_all(client, _MIXTURE)
        [replica] = deployment.replicas
        reviews = itertools.cycle(pool(_MIXTURE.reviews(seed=6), 100))
        # who is asked is the port itself: a Service would send nobody here meanwhile
        async with Load(replica.port, await trusted(client), reviews) as load:
            victim, survivor = children(replica.process.pid)
            os.kill(victim, signal.SIGKILL)
            await until("the replica says that it is not whole", lambda: b"process " in _readiness(deployment))
            await deployment.ready(replica)
            fresh = children(replica.process.pid)
            await asyncio.sleep(0.5)
        assert (2, True, False) == (len(fresh), survivor in fresh, victim in fresh)
        # what the killed one had begun, or had not taken yet from its own queue, is lost; nothing else is
        wrong = [each for each in load.wrong if "Error" not in each.complaint]
        assert ([], True) == (wrong, len(load.wrong) <= 8), deployment.complaints(load.wrong)

    play(scene, tmp_path, arguments=["--webhookProcesses=2", "--shutdownDelay=100ms"])


def _readiness(deployment: Deployment) -> bytes:
    """Return the last answer to a question about readiness."""
    return b"".join(deployment.balancer.said.values())
