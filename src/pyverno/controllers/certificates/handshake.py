"""A self-check of TLS: every minute a replica makes a handshake with its own port, as the API server would.

It verifies against the authority of the Secrets, so that a broken chain, a wrong name or an expired certificate is
noticed before a request fails. `serving.py` compares it with what the API server trusts.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final

# trust rows: own-process

__all__ = ["OwnHandshake"]

_LOOK_SECONDS: Final = 60.0
_AGAIN_SECONDS: Final = 2.0
"""Delay before a failed handshake is retried: certificate and bundle do not change at the same moment."""
_HANDSHAKE_SECONDS: Final = 10.0
_HERE: Final = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - nothing is bound to it

log = logging.getLogger("pyverno.admission")


class OwnHandshake:
    """Checks the port of this replica as the API server does."""

    def __init__(self, name: str, bundle: Callable[[], bytes], seconds: float = _LOOK_SECONDS) -> None:
        """Take the server name that the API server uses, its current CA bundle (PEM), and the interval."""
        self._name = name
        self._bundle = bundle
        self._seconds = seconds
        self._problem = ""

    def problem(self) -> str:
        """Return why the API server would not trust this replica, or the empty text."""
        return self._problem

    async def run(self, address: str, port: int) -> None:
        """Check periodically until cancelled; `address` is the server's listen address."""
        here = _HERE.get(address, address)
        while True:
            problem = await self._look(here, port)
            if problem:
                await asyncio.sleep(_AGAIN_SECONDS)
                problem = await self._look(here, port)
            if problem and problem != self._problem:
                log.error("the API server would not trust this replica", extra={"fields": {"problem": problem}})
            self._problem = problem
            await asyncio.sleep(self._seconds)

    async def _look(self, address: str, port: int) -> str:
        try:
            context = ssl.create_default_context(cadata=self._bundle().decode("ascii"))
            async with asyncio.timeout(_HANDSHAKE_SECONDS):
                _, writer = await asyncio.open_connection(address, port, ssl=context, server_hostname=self._name)
        except ssl.SSLCertVerificationError as error:
            return f"its certificate is not good for `{self._name}`: {error.verify_message}"
        except (OSError, TimeoutError, ValueError) as error:
            return f"no handshake with its own port {port}: {str(error) or 'no answer in time'}"
        try:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
        finally:
            writer.transport.abort()  # a task that is cancelled here does not wait for the end of TLS
        return ""
