"""The server's side of TLS: which protocols and ciphers, and certificates that change while connections are made.

A context is never changed once it is in use: a new certificate gives a new context, and the next handshake takes it.
This module must never read a secret.
"""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path

__all__ = ["ServerTls"]

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


class ServerTls:
    """TLS 1.2 with AEAD ciphers and TLS 1.3, HTTP/1.1 only, with a certificate that can be swapped.

    With `client_ca` (PEM) a client must show a certificate of that authority, so that nobody but the API server is
    answered.
    """

    def __init__(self, certificate: bytes, key: bytes, *, client_ca: bytes = b"") -> None:
        """Take certificate chain and private key (PEM); raises ssl.SSLError when they do not belong together."""
        self._client_ca = client_ca
        self._current = self._make(certificate, key)
        self.listening = self._make(certificate, key)
        """The context to listen with; every handshake goes on with the newest one."""
        self.listening.sni_callback = self._choose

    def swap(self, certificate: bytes, key: bytes) -> None:
        """Use another certificate from the next handshake on; the old one stays when the new one can not be used."""
        self._current = self._make(certificate, key)

    def _choose(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = self._current

    def _make(self, certificate: bytes, key: bytes) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers(_CIPHERS)
        context.set_alpn_protocols(["http/1.1"])
        context.num_tickets = 0
        context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
        if self._client_ca:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cadata=self._client_ca.decode("ascii"))
        # Python reads key pairs from files only; the folder is this user's alone and is gone at once
        with tempfile.TemporaryDirectory(prefix="pyverno-tls-") as folder:
            pair = Path(folder) / "pair.pem"
            pair.touch(mode=0o600)
            pair.write_bytes(key.rstrip() + b"\n" + certificate)
            context.load_cert_chain(pair)
        return context
