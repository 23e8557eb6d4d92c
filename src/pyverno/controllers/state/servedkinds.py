"""The kinds that a cluster serves, as discovery told last, and for how long discovery has failed.

Kinds of an API that is silent stay known. This module must never watch anything.
"""

from __future__ import annotations

import asyncio
import logging
import time

from pyverno.cluster.client import Client
from pyverno.cluster.discovery import find_served
from pyverno.cluster.informer import STALE_SECONDS
from pyverno.errors import HostError
from pyverno.kube.kinds import KindTable
from pyverno.kube.status import StatusError

__all__ = ["ServedKinds"]

log = logging.getLogger("pyverno.admission")


class ServedKinds:
    """Holds the table of kinds; whoever calls `look` decides how often, and must do so more often than the bound."""

    def __init__(self, client: Client, bound: float = STALE_SECONDS) -> None:
        """Take the client and after how many seconds the table is stale."""
        self.kinds = KindTable()
        self.silent: frozenset[tuple[str, str]] = frozenset()
        """Groups with versions whose own server did not answer the last time."""
        self._client = client
        self._bound = bound
        self._found = time.monotonic()
        self._trouble = ""

    def problem(self) -> str:
        """Return why the table cannot be relied on; the empty text while it can."""
        if time.monotonic() - self._found <= self._bound:
            return ""
        reason = f": {self._trouble}" if self._trouble else ""
        return f"what the cluster serves has not been known for more than {self._bound:g} seconds{reason}"

    async def look(self) -> bool:
        """Ask the cluster; tell whether the answer differs from the last one. Raises HostError and StatusError."""
        before, silent = self.kinds, self.silent
        try:
            async with asyncio.timeout(self._bound):
                served = await find_served(self._client)
        except TimeoutError:
            self._trouble = f"no answer within {self._bound:g} seconds"
            raise HostError(self._trouble) from None
        except (HostError, StatusError) as error:
            self._trouble = error.message
            raise
        self._found, self._trouble = time.monotonic(), ""
        self.kinds, self.silent = served.completed(before), served.silent
        if served.silent:
            groups = ", ".join(sorted("/".join(each) for each in served.silent))
            log.warning("some APIs do not answer", extra={"fields": {"groups": groups}})
        return tuple(self.kinds) != tuple(before) or silent != served.silent
