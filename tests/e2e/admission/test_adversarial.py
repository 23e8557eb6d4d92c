"""Adversarial reviews from users with the right to create pods must not slow the webhook down for others.

All policies of the library judge objects that cost as much as they can, while another process probes its health. Small
in `make test`, where only answers are looked at; `make e2e` asserts the figures and writes them to `build/e2e.json`.
"""

from __future__ import annotations

import asyncio
import io
import itertools
import ssl
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import aiohttp

from pyverno.cluster.client import Client
from pyverno.connector import Connector
from tests.e2e.admission.adversary import SHAPES, adversarial, large
from tests.e2e.admission.deployment import Deployment, Replica, trusted
from tests.e2e.admission.mixture import mixture
from tests.e2e.admission.probe import Probe
from tests.e2e.admission.scene import IS_FULL, apply_all, note, play

_MIXTURE = mixture(1 if IS_FULL else 12)
_SHAPES: Final = tuple(SHAPES) if IS_FULL else ("200 containers", "long texts", "wildcards", "deep", "huge numbers")
_TIMES: Final = 2 if IS_FULL else 1
_LARGE, _AT_ONCE = (128, 32) if IS_FULL else (8, 4)
_DISTINCT: Final = 10_000 if IS_FULL else 60
_DEADLINE: Final = 5.0
_MEBIBYTE: Final = 1024 * 1024
_ANSWERS: Final = {200, 504, 503}
"""A verdict, no verdict in time, too much at once: what the API server can act upon."""


class Attack:
    """Sends bodies to paths, so many at once, and keeps the codes of the answers and the slowest of each name."""

    def __init__(self, port: int, context: ssl.SSLContext) -> None:
        self.codes: dict[int, int] = {}
        self.slowest: dict[str, float] = {}
        self._url = f"https://127.0.0.1:{port}"
        self._context = context

    async def send(self, bodies: Iterable[tuple[str, str, bytes]], *, at_once: int = 1) -> None:
        """Send all (name, path, body), which are made when they are needed."""
        left = iter(bodies)
        async with aiohttp.ClientSession(trust_env=False, connector=Connector(limit=0)) as session:
            await asyncio.gather(*(self._one_after_the_other(session, left) for _ in range(at_once)))

    async def _one_after_the_other(
        self, session: aiohttp.ClientSession, left: Iterable[tuple[str, str, bytes]]
    ) -> None:
        for name, path, body in left:
            began = time.monotonic()
            async with session.post(
                f"{self._url}{path}?timeout={_DEADLINE:g}s",
                data=io.BytesIO(body),
                headers={"Content-Type": "application/json"},
                ssl=self._context,
            ) as reply:
                await reply.read()
            self.codes[reply.status] = self.codes.get(reply.status, 0) + 1
            self.slowest[name] = max(self.slowest.get(name, 0.0), time.monotonic() - began)


def _memory(replica: Replica, field: str) -> float:
    """Return a memory figure of a process in MiB (VmRSS: current, VmHWM: peak)."""
    lines = Path(f"/proc/{replica.process.pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(f"{field}:")).split()[1]) / 1024


def _forget_peak(replica: Replica) -> None:
    Path(f"/proc/{replica.process.pid}/clear_refs").write_text("5")


def test_adversarial_reviews_end_in_time_while_probes_are_answered(tmp_path: Path) -> None:
    """Each ends within its deadline and 0.2 seconds, takes at most 128 MiB, and probes at most 0.25 seconds."""

    async def scene(client: Client, deployment: Deployment) -> None:
        await apply_all(client, _MIXTURE)
        [replica] = deployment.replicas
        context = await trusted(client)
        attack = Attack(replica.port, context)
        most = 0.0
        made = [(shape, adversarial(shape, number)) for shape, number in itertools.product(_SHAPES, range(_TIMES))]
        async with Probe(replica.port, context) as probe:
            for shape, body in made:
                before = _memory(replica, "VmRSS")
                _forget_peak(replica)
                await attack.send((shape, path, body) for path in _MIXTURE.paths)
                most = max(most, _memory(replica, "VmHWM") - before)
        print({name: round(seconds, 2) for name, seconds in attack.slowest.items()})
        slowest = max(attack.slowest.values())
        note(
            "adversarial reviews",
            reviews=sum(attack.codes.values()),
            out_of_time=attack.codes.get(504, 0),
            slowest_seconds=slowest,
            max_mebibytes=most,
            slowest_probe_seconds=probe.slowest,
        )
        assert _ANSWERS.issuperset(attack.codes)
        assert None is replica.process.returncode
        assert probe.asked > 0
        if IS_FULL:
            assert slowest <= _DEADLINE + 0.2
            assert most <= 128
            assert probe.slowest <= 0.25

    play(scene, tmp_path)


def test_many_large_reviews_at_once_do_not_hold_up_the_loop(tmp_path: Path) -> None:
    """Thirty-two of 1.5 MB at a time: all are answered, probes take at most 0.25 seconds, memory at most 768 MiB."""

    async def scene(client: Client, deployment: Deployment) -> None:
        await apply_all(client, _MIXTURE)
        [replica] = deployment.replicas
        context = await trusted(client)
        attack = Attack(replica.port, context)
        bodies = [("large", path, large(each)) for each, path in zip(range(_LARGE), itertools.cycle(_MIXTURE.paths))]
        _forget_peak(replica)
        async with Probe(replica.port, context) as probe:
            await attack.send(bodies, at_once=_AT_ONCE)
        peak = _memory(replica, "VmHWM")
        note(
            "large reviews at once",
            reviews=_LARGE,
            at_once=_AT_ONCE,
            refused=attack.codes.get(503, 0) + attack.codes.get(504, 0),
            slowest_seconds=attack.slowest["large"],
            peak_mebibytes=peak,
            slowest_probe_seconds=probe.slowest,
        )
        assert _ANSWERS.issuperset(attack.codes)
        if IS_FULL:
            assert (_LARGE, True) == (attack.codes[200], probe.slowest <= 0.25)
            assert peak <= 768

    play(scene, tmp_path)


def test_memory_is_flat_after_many_distinct_reviews(tmp_path: Path) -> None:
    """Resident memory does not grow over ten thousand distinct reviews, one in a hundred of them large."""

    async def scene(client: Client, deployment: Deployment) -> None:
        await apply_all(client, _MIXTURE)
        [replica] = deployment.replicas
        attack = Attack(replica.port, await trusted(client))
        paths = itertools.cycle(_MIXTURE.paths)
        levels: list[float] = []
        for half in range(2):
            numbers = range(half * _DISTINCT // 2, (half + 1) * _DISTINCT // 2)
            sizes = (500_000 if number % 100 == 0 else 20_000 for number in numbers)
            bodies = (("any", next(paths), large(*each)) for each in zip(numbers, sizes, strict=True))
            await attack.send(bodies, at_once=4)
            levels.append(_memory(replica, "VmRSS"))
        note("distinct reviews", reviews=_DISTINCT, half_mebibytes=levels[0], end_mebibytes=levels[1])
        assert {200: _DISTINCT} == attack.codes
        if IS_FULL:
            assert levels[1] - levels[0] <= 16

    play(scene, tmp_path)
