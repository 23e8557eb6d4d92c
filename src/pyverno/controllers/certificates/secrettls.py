"""TLS of ports other than the webhook: certificates in two Secrets of their own, created, watched and renewed here."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from pyverno.cluster.access import Access
from pyverno.cluster.client import Client
from pyverno.controllers.certificates.secrets import CertificateSettings
from pyverno.controllers.certificates.serving import ServingCertificates
from pyverno.errors import HostError
from pyverno.value import dataclass

__all__ = ["SecretTls"]


@dataclass(frozen=True, slots=True)
class SecretTls:
    """The cluster and the Secrets that hold the certificates."""

    access: Access
    certificates: CertificateSettings

    @asynccontextmanager
    async def open(self) -> AsyncIterator[ssl.SSLContext]:
        """Yield the context to listen with; raises HostError when the certificates can be neither read nor made."""
        async with Client(self.access) as client:
            certificates = ServingCertificates(client, self.certificates, _Readers())
            await certificates.start()
            if certificates.tls is None:
                raise HostError("there is no certificate for the metrics")
            tasks = [asyncio.create_task(certificates.follow()), asyncio.create_task(certificates.controller.run())]
            try:
                yield certificates.tls.listening
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)


class _Readers:
    """Clients of such a port: they read the authority from its Secret."""

    async def publish(self) -> None:
        """Publish nothing."""

    async def published(self) -> Sequence[bytes]:
        """Return nothing: there is no configuration to compare with."""
        return ()
