"""Replicas that serve certificates to an API server in memory, which accepts what they serve or does not."""

from __future__ import annotations

import ssl
from collections.abc import Sequence

from pyverno.cluster.client import Client
from pyverno.controllers.certificates.secrets import CertificateSettings
from pyverno.controllers.certificates.serving import ServingCertificates
from pyverno.webhook.tls import ServerTls

__all__ = ["ApiServer", "Replica", "accepts"]


class ApiServer:
    """The bundles that the webhook configurations hold; none before the first leader writes them."""

    def __init__(self) -> None:
        """Trust nothing, and call nothing."""
        self.bundles: list[bytes] = []

    def accepts(self, replica: Replica) -> bool:
        """Return whether calls to this replica succeed, whichever configuration they are for."""
        return bool(self.bundles) and all(replica.is_accepted(bundle) for bundle in self.bundles)


class Replica:
    """Certificates as a replica serves them, and the bundles that it published."""

    def __init__(self, client: Client, settings: CertificateSettings, server: ApiServer | None = None) -> None:
        """Take the client of the Secrets, the settings, and the API server that calls this replica."""
        self._name = settings.server_name
        self._server = server or ApiServer()
        self.history: list[bytes] = []
        self.certificates = ServingCertificates(client, settings, self)

    async def publish(self) -> None:
        """Have the API server trust the bundle of this replica."""
        self.history.append(self.certificates.bundle)
        self._server.bundles = [self.certificates.bundle]

    async def published(self) -> Sequence[bytes]:
        """Return what the API server trusts."""
        return tuple(self._server.bundles)

    @property
    def leaf(self) -> bytes:
        """Return the served certificate."""
        found = self.certificates._leaf
        return b"" if found is None else found.certificates

    def is_accepted(self, bundle: bytes) -> bool:
        """Return whether a client with a bundle accepts what this replica serves."""
        assert self.certificates.tls is not None
        return accepts(bundle, self.certificates.tls, self._name)


def accepts(bundle: bytes, tls: ServerTls, name: str) -> bool:
    """Return whether a handshake succeeds, in memory."""
    client_in, client_out, server_in, server_out = (ssl.MemoryBIO() for _ in range(4))
    context = ssl.create_default_context(cadata=bundle.decode())
    client = context.wrap_bio(client_in, client_out, server_hostname=name)
    server = tls.listening.wrap_bio(server_in, server_out, server_side=True)
    is_done = [False, False]
    for _ in range(10):
        for number, (each, out, to) in enumerate(((client, client_out, server_in), (server, server_out, client_in))):
            try:
                each.do_handshake()
                is_done[number] = True
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError:
                return False
            to.write(out.read())
    return all(is_done)
