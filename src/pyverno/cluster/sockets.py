"""Sockets and TLS settings of connections to an API server."""

from __future__ import annotations

import socket
import ssl
import tempfile
from pathlib import Path
from typing import Final

import aiohttp

from pyverno.cluster.access import Access
from pyverno.errors import HostError

# trust rows: api-answer

__all__ = ["open_socket", "set_keep_alive", "tls_context"]

_KEEP_ALIVE: Final = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 30_000}


def open_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """Make a socket that detects a dead peer within half a minute; a watch is silent for minutes."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family=family, type=kind, proto=protocol)
    set_keep_alive(made)
    return made


def set_keep_alive(connected: socket.socket) -> None:
    """Let the system probe an idle connection, where it has the options for it."""
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE.items():
        option = getattr(socket, name, None)  # not every system has them
        if option is not None:
            connected.setsockopt(socket.IPPROTO_TCP, option, value)


def tls_context(access: Access, certificate: bytes, key: bytes) -> ssl.SSLContext:
    """Return the TLS settings of an access, with a client certificate (PEM, or empty); raises HostError."""
    try:
        context = ssl.create_default_context(cadata=access.ca.decode("ascii") if access.ca else None)
        if access.skips_verification:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if certificate:
            # Python reads key pairs from files only; the folder is this user's alone and is gone at once
            with tempfile.TemporaryDirectory(prefix="pyverno-tls-") as folder:
                pair = Path(folder) / "pair.pem"
                pair.touch(mode=0o600)
                pair.write_bytes(key.rstrip() + b"\n" + certificate)
                context.load_cert_chain(pair)
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise HostError(f"the certificates for `{access.server}` cannot be used: {error}") from None
    return context
