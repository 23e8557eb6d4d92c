"""An event loop on a separate thread, for command lines and libraries that read registries from plain functions."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import aiohttp

from pyverno.errors import HostError, HostUnavailableError, PyvernoError
from pyverno.images.verification.trust import TrustRoot
from pyverno.registry.client import RegistryClient
from pyverno.registry.images import BlockingImages, Credentials, RegistryImages
from pyverno.registry.transport import RegistrySettings, Transport

if TYPE_CHECKING:
    from pyverno.registry.providers.publickeys import PublicKeys

__all__ = ["LoopThread", "OwnRegistryImages"]

T = TypeVar("T")


class LoopThread:
    """Runs coroutines on its own loop; use it as a context manager, or `close` it at the end."""

    def __init__(self, seconds: float = 60.0) -> None:
        """Start the thread; `seconds` is how long an answer may take."""
        self._seconds = seconds
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="registry", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def ask(self, asking: Coroutine[Any, Any, T], what: str) -> T:
        """Return the answer of a coroutine; raises HostError when it takes too long."""
        running = asyncio.run_coroutine_threadsafe(asking, self._loop)
        try:
            # an error is not raised where the loop keeps it: its traceback would keep the frames of the caller as well
            error = running.exception(self._seconds)
        except TimeoutError:
            running.cancel()
            raise HostError(f"{what}: no answer within {self._seconds:g} seconds") from None
        if error is None:
            return running.result()
        raise error.copied() if isinstance(error, PyvernoError) else error

    def close(self) -> None:
        """Stop the loop and its thread."""
        if self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class OwnRegistryImages:
    """Images of registries for a process without a loop: the source that its rules ask, and the thread behind it."""

    def __init__(
        self,
        credentials: Credentials,
        *,
        trust_root: Callable[[], TrustRoot] | None = None,
        public_key: Callable[[str], str] | None = None,
        settings: RegistrySettings | None = None,
        connector: Callable[[], aiohttp.BaseConnector] | None = None,
    ) -> None:
        """Start the thread; nothing is read before a rule needs it.

        Without `public_key`, keys of key management systems are fetched with the identity of the process.
        """
        self._thread = LoopThread()
        self._images = RegistryImages(
            RegistryClient(Transport(settings, connector or aiohttp.TCPConnector)), credentials
        )
        self._keys: PublicKeys | None = None
        self.source = BlockingImages(
            self._images, self._thread.ask, trust_root=trust_root, public_key=public_key or self._public_key
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections and stop the thread."""
        self._thread.ask(self._images.close(), "the end of the connections")
        self._thread.close()

    def _public_key(self, reference: str) -> str:
        if reference.startswith("k8s://"):
            raise HostUnavailableError(f"no cluster is available to read the key `{reference}`")
        if self._keys is None:
            from pyverno.registry.providers.ambient import Ambient
            from pyverno.registry.providers.publickeys import PublicKeys

            self._keys = PublicKeys(Ambient(os.environ))
        return self._thread.ask(self._keys.fetch(reference), f"the key `{reference}`")
