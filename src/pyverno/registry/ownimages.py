"""Images of registries for command lines and libraries that are not asynchronous."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

import aiohttp

from pyverno.connector import ForeignConnector
from pyverno.errors import HostUnavailableError
from pyverno.images.verification.trust import TrustRoot
from pyverno.loopthread import LoopThread
from pyverno.registry.client import RegistryClient
from pyverno.registry.images import BlockingImages, Credentials, RegistryImages
from pyverno.registry.transport import RegistrySettings, Transport

if TYPE_CHECKING:
    from pyverno.registry.providers.publickeys import PublicKeys

# trust rows: environment

__all__ = ["OwnRegistryImages"]


class OwnRegistryImages:
    """Images of registries for a process without an event loop: an image source, and the thread that serves it."""

    def __init__(
        self,
        credentials: Credentials,
        *,
        trust_root: Callable[[], TrustRoot] | None = None,
        public_key: Callable[[str], str] | None = None,
        settings: RegistrySettings | None = None,
        connector: Callable[[], aiohttp.BaseConnector] | None = None,
    ) -> None:
        """Start the thread; registries are read only when a rule needs them.

        Without `public_key`, keys of key management systems are fetched with the identity of the process.
        """
        self._thread = LoopThread("registry")
        self._images = RegistryImages(RegistryClient(Transport(settings, connector or ForeignConnector)), credentials)
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
