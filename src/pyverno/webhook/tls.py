"""TLS of the server: protocols, ciphers, client certificates, and certificates that are replaced at run time.

A context in use is never changed: a new certificate gives a new context, which the next handshake uses.
"""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Clients", "PeerCertificate", "ServerTls", "is_usable_pair"]

_CIPHERS = ":".join(
    (
        "ECDHE-ECDSA-AES128-GCM-SHA256",
        "ECDHE-RSA-AES128-GCM-SHA256",
        "ECDHE-ECDSA-AES256-GCM-SHA384",
        "ECDHE-RSA-AES256-GCM-SHA384",
        "ECDHE-ECDSA-CHACHA20-POLY1305",
        "ECDHE-RSA-CHACHA20-POLY1305",
    )
)


PeerCertificate = Mapping[str, Any]
"""The client's certificate in the form of Python's ssl module; empty or None if it presented none."""


@dataclass(frozen=True, slots=True)
class Clients:
    """Admitted clients: all, or those with a certificate of `authority` (PEM), restricted to `names` if given.

    >>> Clients().admit(None)
    True
    >>> Clients(b"...", ("apiserver",)).admit({"subject": ((("commonName", "apiserver"),),)})
    True
    """

    authority: bytes = b""
    names: tuple[str, ...] = ()

    def admit(self, certificate: PeerCertificate | None) -> bool:
        """Return whether a client with this certificate is admitted; TLS has verified the authority."""
        if not self.authority:
            return True
        return bool(certificate) and (not self.names or not set(self.names).isdisjoint(_names(certificate or {})))


def _names(certificate: PeerCertificate) -> Iterator[str]:
    for parts in certificate.get("subject") or ():
        yield from (value for key, value in parts if key == "commonName")
    yield from (value for key, value in certificate.get("subjectAltName") or () if key == "DNS")


class ServerTls:
    """TLS 1.2 with AEAD ciphers and TLS 1.3, HTTP/1.1 only, with a replaceable certificate.

    If `clients` has an authority, a presented certificate must be issued by it. `admits` decides per request whether
    one is required, because the kubelet probes health without a certificate.
    """

    def __init__(self, certificate: bytes, key: bytes, *, clients: Clients | None = None) -> None:
        """Take certificate chain and private key (PEM); raises ssl.SSLError when they do not match."""
        self._clients = clients or Clients()
        self._current = self._make(certificate, key)
        self.listening = self._make(certificate, key)
        """The context to listen with; every handshake switches to the newest one."""
        self.listening.sni_callback = self._choose

    def swap(self, certificate: bytes, key: bytes) -> None:
        """Use another certificate from the next handshake on; an unusable one changes nothing."""
        self._current = self._make(certificate, key)

    def admits(self, certificate: PeerCertificate | None) -> bool:
        """Return whether a client with this certificate (`peercert` of the connection) is admitted."""
        return self._clients.admit(certificate)

    @property
    def authenticates(self) -> bool:
        """Whether every admitted client has proved its identity by a certificate."""
        return bool(self._clients.authority)

    def _choose(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = self._current

    def _make(self, certificate: bytes, key: bytes) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers(_CIPHERS)
        context.set_alpn_protocols(["http/1.1"])
        context.num_tickets = 0
        context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
        if self._clients.authority:
            context.verify_mode = ssl.CERT_OPTIONAL
            context.load_verify_locations(cadata=self._clients.authority.decode("ascii"))
        # Python reads key pairs from files only; the folder is private and deleted at once
        with tempfile.TemporaryDirectory(prefix="pyverno-tls-") as folder:
            pair = Path(folder) / "pair.pem"
            pair.touch(mode=0o600)
            pair.write_bytes(key.rstrip() + b"\n" + certificate)
            context.load_cert_chain(pair)
        return context


def is_usable_pair(certificate: bytes, key: bytes) -> bool:
    """Return whether a server can use a certificate chain and its private key (PEM)."""
    try:
        ServerTls(certificate, key)
    except (OSError, ValueError):  # ssl.SSLError is an OSError
        return False
    return True
