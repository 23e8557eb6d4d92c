"""Reviews without end, over connections that stay and over new ones, and everything that goes wrong with them."""

from __future__ import annotations

import asyncio
import ssl
from types import TracebackType
from typing import Any, Self

import aiohttp

from tests.unit.webhook.conftest import review_body

__all__ = ["Load", "config_map"]

_PATH = "/validate/fail?timeout=10s"


def config_map(name: str, *, team: str = "") -> dict[str, Any]:
    """Return a ConfigMap, with the label `team` or without."""
    metadata: dict[str, Any] = {"name": name, "namespace": "default"}
    if team:
        metadata["labels"] = {"team": team}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


class Load:
    """Asks as long as it is entered; `wrong` are the failures and the verdicts that should be others."""

    def __init__(self, port: int, context: ssl.SSLContext, *, staying: int = 2, fresh: int = 2) -> None:
        self.asked = 0
        self.wrong: list[str] = []
        self.context = context
        """What is trusted by connections to come."""
        self._url = f"https://127.0.0.1:{port}{_PATH}"
        self._kinds = [False] * staying + [True] * fresh
        self._is_over = False

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(self._ask(is_fresh)) for is_fresh in self._kinds]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over = True
        await asyncio.gather(*self._tasks)

    async def _ask(self, is_fresh: bool) -> None:
        timeout = aiohttp.ClientTimeout(total=15)
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(force_close=is_fresh), timeout=timeout, trust_env=False
        ) as session:
            while not self._is_over:
                self.asked += 1
                is_good = self.asked % 2 == 0
                body = review_body(config_map("a", team="blue" if is_good else ""))
                try:
                    async with session.post(self._url, json=body, ssl=self.context) as reply:
                        answer = (await reply.json())["response"]["allowed"] if reply.status == 200 else reply.status
                except (aiohttp.ClientError, OSError, TimeoutError) as error:
                    answer = repr(error)
                if answer is not is_good:
                    self.wrong.append(f"{'staying' if not is_fresh else 'fresh'}: {answer}")
                await asyncio.sleep(0.01)
