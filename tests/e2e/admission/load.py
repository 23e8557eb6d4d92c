"""Reviews without end over connections that stay and over new ones, and every answer that is not the right one.

This module must never repeat a request that failed: an API server may not either.
"""

from __future__ import annotations

import asyncio
import itertools
import ssl
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import aiohttp

from pyverno.connector import Connector
from pyverno.kube.json import JSONObject
from tests.e2e.admission.mixture import Asked, Mixture

__all__ = ["Load", "Wrong", "config_map", "team_labels"]


def config_map(name: str, *, team: str = "") -> dict[str, Any]:
    """Return a ConfigMap, with the label `team` or without."""
    metadata: dict[str, Any] = {"name": name, "namespace": "default"}
    if team:
        metadata["labels"] = {"team": team}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def team_labels(policy: JSONObject) -> Iterator[Asked]:
    """Yield reviews of a ConfigMap with and without the label `team`, which a policy requires."""
    known = Mixture((policy,), (), (), (), {})
    for team in itertools.cycle(("blue", "")):
        request = {
            "operation": "CREATE",
            "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
            "resource": {"group": "", "version": "v1", "resource": "configmaps"},
            "name": "a",
            "namespace": "default",
            "userInfo": {"username": "alice", "groups": ["devs"]},
            "object": config_map("a", team=team),
            "oldObject": None,
        }
        yield known.with_answer("/validate/fail", request)


@dataclass(frozen=True, slots=True)
class Wrong:
    """A failed request or a wrong answer: its uid, the time of the request and the complaint."""

    uid: str
    at: float
    complaint: str


class Load:
    """Sends reviews while the context is open, or `most` times; `wrong` holds failures and wrong answers.

    `staying` connections are kept alive, each of the `fresh` ones reconnects for every request. `pause` separates the
    requests of one connection, in seconds.
    """

    def __init__(
        self,
        port: int,
        context: ssl.SSLContext,
        reviews: Iterable[Asked],
        *,
        staying: int = 2,
        fresh: int = 2,
        pause: float = 0.01,
        most: int = 0,
    ) -> None:
        self.asked = self.handshakes = 0
        self.wrong: list[Wrong] = []
        self.slowest = 0.0
        self.context = context
        """The TLS context of new connections."""
        self.is_away = False
        """Set while the API server is away: reviews that need it may then be denied."""
        self._reviews = iter(reviews)
        self._url = f"https://127.0.0.1:{port}"
        self._kinds = [False] * staying + [True] * fresh
        self._pause = pause
        self._most = most
        self._is_over = False
        self._began = time.monotonic()
        self.seconds = 0.0

    async def __aenter__(self) -> Self:
        self._began = time.monotonic()
        self._tasks = [asyncio.create_task(self._ask(is_fresh)) for is_fresh in self._kinds]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over = not self._most or error is not None
        await asyncio.gather(*self._tasks)
        self.seconds = time.monotonic() - self._began

    async def _ask(self, is_fresh: bool) -> None:
        timeout = aiohttp.ClientTimeout(total=60)
        async with aiohttp.ClientSession(
            connector=Connector(force_close=is_fresh), timeout=timeout, trust_env=False
        ) as session:
            while not self._is_over and not (self._most and self.asked >= self._most):
                self.asked += 1
                self.handshakes += is_fresh
                await self._one(session, next(self._reviews), f"load-{self.asked:06}", is_fresh=is_fresh)
                await asyncio.sleep(self._pause)

    async def _one(self, session: aiohttp.ClientSession, asked: Asked, uid: str, *, is_fresh: bool) -> None:
        at = time.time()
        began = time.monotonic()
        was_away = self.is_away
        try:
            async with session.post(
                f"{self._url}{asked.path}?timeout=10s",
                data=asked.bytes_for(uid),
                headers={"Content-Type": "application/json"},
                ssl=self.context,
            ) as reply:
                body = await reply.read()
                complaint = asked.complaint(uid, reply.status, body, is_away=was_away or self.is_away)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            complaint = repr(error)
        self.slowest = max(self.slowest, time.monotonic() - began)
        if complaint:
            self.wrong.append(Wrong(uid, at, f"{'fresh' if is_fresh else 'staying'} connection: {complaint}"))
