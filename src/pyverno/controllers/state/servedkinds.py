"""The kinds that a cluster serves, from the last successful discovery, and for how long discovery has failed.

Kinds of an aggregated API that does not answer stay known.
"""

from __future__ import annotations

import asyncio
import logging
import time

from pyverno.cluster.client import Client
from pyverno.cluster.discovery import find_served
from pyverno.cluster.informer import STALE_SECONDS
from pyverno.controllers.runtime.recurring import RecurringFault
from pyverno.errors import HostError
from pyverno.kube.kinds import KindTable
from pyverno.kube.status import StatusError

__all__ = ["ServedKinds"]

log = logging.getLogger("pyverno.admission")


class ServedKinds:
    """Holds the table of kinds; the caller of `refresh` decides how often, more often than the bound."""

    def __init__(self, client: Client, bound: float = STALE_SECONDS) -> None:
        """Take the client and the age in seconds at which the table is stale."""
        self.kinds = KindTable()
        self.silent: frozenset[tuple[str, str]] = frozenset()
        """Group versions whose API server did not answer the last time."""
        self._client = client
        self._bound = bound
        self._found = time.monotonic()
        self._trouble = ""
        self._fault = RecurringFault(log, "some APIs do not answer", "all APIs answer again", reason="groups")

    def problem(self) -> str:
        """Return why the table is stale; the empty text while it is not."""
        if time.monotonic() - self._found <= self._bound:
            return ""
        reason = f": {self._trouble}" if self._trouble else ""
        return f"what the cluster serves has not been known for more than {self._bound:g} seconds{reason}"

    async def refresh(self) -> bool:
        """Run discovery; return whether the result has changed. Raises HostError and StatusError."""
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
            self._fault.failed(", ".join(sorted("/".join(each) for each in served.silent)))
        else:
            self._fault.succeeded()
        return tuple(self.kinds) != tuple(before) or silent != served.silent
