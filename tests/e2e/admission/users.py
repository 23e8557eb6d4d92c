"""Users that keep sending forbidden and allowed requests to the API server.

This module must never contact a replica: only the API server's answers count.
"""

from __future__ import annotations

import asyncio
import time
from types import TracebackType
from typing import Self

from pyverno.cluster.client import Client
from pyverno.errors import HostError
from pyverno.kube.status import StatusError
from tests.e2e.admission.deployment import CONFIG_MAPS
from tests.e2e.admission.load import Wrong, config_map

__all__ = ["Users"]

_PAUSE = 0.01


class Users:
    """Create ConfigMaps with and without the label `team` as long as it is entered; nothing is stored."""

    def __init__(self, client: Client, denial: str, *, count: int = 3) -> None:
        """Take the client, the text that every denial contains, and the number of concurrent users."""
        self.asked = self.denied = 0
        self.wrong: list[Wrong] = []
        self._client = client
        self._denial = denial
        self._count = count
        self._is_over = False

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(self._ask()) for _ in range(self._count)]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over = True
        await asyncio.gather(*self._tasks)

    async def _ask(self) -> None:
        while not self._is_over:
            self.asked += 1
            is_good = self.asked % 2 == 0
            name, at = f"asked-{self.asked:06}", time.time()
            said = await self._said(name, "blue" if is_good else "")
            if is_good != (not said) or (said and self._denial not in said):
                self.wrong.append(
                    Wrong(name, at, f"{'a good' if is_good else 'a forbidden'} object: {said or 'let in'}")
                )
            self.denied += self._denial in said
            await asyncio.sleep(_PAUSE)

    async def _said(self, name: str, team: str) -> str:
        """Return why an object is refused, the empty text when it is let in."""
        try:
            await self._client.create(CONFIG_MAPS, config_map(name, team=team), "default", query={"dryRun": "All"})
        except (StatusError, HostError) as error:
            return error.message
        return ""
