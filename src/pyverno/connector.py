"""Connections of HTTP clients that all end when their session does.

aiohttp forgets a TLS connection that it closes before its session (an abandoned watch, an answer that was too long),
and asyncio keeps the socket open until the server agrees to the end, for half a minute if it never does. A loop that
ends before leaves the socket to the garbage collector.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from functools import partial
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

import aiohttp

from pyverno.addresses import leads_to_metadata

if TYPE_CHECKING:
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace

# trust rows: name-server

__all__ = ["Connector", "ForeignConnector", "connection_fault", "read_at_most"]


class Connector(aiohttp.TCPConnector):
    """Makes the connections of a session; `close` ends every connection at once, whatever its server does."""

    def __init__(self, **options: Any) -> None:
        """Take the options of `aiohttp.TCPConnector`."""
        super().__init__(**options)
        # transports of uvloop cannot be in weak sets
        self._transports: set[asyncio.Transport] = set()

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        """Return an idle connection, or a new one."""
        connection = await super().connect(req, traces, timeout)
        transport, protocol = connection.transport, connection.protocol
        if transport is not None and protocol is not None and transport not in self._transports:
            lost = protocol.closed
            if lost is not None:
                self._transports.add(transport)
                lost.add_done_callback(partial(self._forget, transport))
        return connection

    async def close(self, *, abort_ssl: bool = False) -> None:
        """Close all connections, also those that wait for their server to agree to the end of TLS."""
        for transport in tuple(self._transports):
            transport.abort()
        await super().close(abort_ssl=abort_ssl)
        # asyncio closes a socket in the next turn of the loop
        await asyncio.sleep(0)

    def _forget(self, transport: asyncio.Transport, lost: asyncio.Future[None]) -> None:
        self._transports.discard(transport)
        # why it was lost is for the request that used it; asyncio would log what is never read
        if not lost.cancelled():
            lost.exception()


class ForeignConnector(Connector):
    """Makes connections to addresses that peers choose, by redirects or names: never to a metadata service."""

    def __init__(self) -> None:
        """Guard every address, also those that names resolve to."""
        super().__init__(socket_factory=_open_foreign)


def _open_foreign(address: aiohttp.AddrInfoType) -> socket.socket:
    family, kind, protocol, _, place = address
    if leads_to_metadata(ip_address(str(place[0]).partition("%")[0])):
        raise PermissionError("the address is that of a metadata service")
    return socket.socket(family=family, type=kind, proto=protocol)


async def read_at_most(content: aiohttp.StreamReader, most: int) -> bytes:
    """Return the body of an answer, and no more than `most + 1` bytes of it: one that is longer is too long."""
    found = bytearray()
    while len(found) <= most and (part := await content.read(most + 1 - len(found))):
        found += part
    return bytes(found)


def connection_fault(error: BaseException) -> str:
    """Return in a few words why a connection failed: no address, and no object of Python.

    >>> connection_fault(ConnectionRefusedError(111, "Connect call failed ('127.0.0.1', 443)"))
    'connection refused'
    """
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return connection_fault(error.certificate_error)
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return f"the proxy cannot be reached: {connection_fault(error.os_error)}"
    if isinstance(error, (aiohttp.ClientConnectorDNSError, socket.gaierror)):
        return "the name of the host cannot be resolved"
    if isinstance(error, aiohttp.ClientConnectorError):
        return connection_fault(error.os_error)
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate cannot be verified: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {(error.reason or 'unknown reason').replace('_', ' ').lower()}"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the server closed the connection"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, OSError) and error.errno:
        text = os.strerror(error.errno)
        return text[:1].lower() + text[1:]
    return str(error) or "the connection failed"
