"""Logins by an authenticating proxy: headers that are trusted from listed peers, and refused from all others."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Final

from aiohttp import web

from pyverno.errors import UsageError
from pyverno.ui.access.identity import AccessDeniedError, Identity

# trust rows: proxy-header

__all__ = ["ProxyHeaders", "read_networks"]

_MOST: Final = 1024
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def read_networks(texts: Sequence[str]) -> tuple[Network, ...]:
    """Return addresses and networks; raises UsageError.

    >>> [str(each) for each in read_networks(["10.0.0.0/8", "::1"])]
    ['10.0.0.0/8', '::1/128']
    """
    found = []
    for text in texts:
        try:
            found.append(ipaddress.ip_network(text))
        except ValueError as error:
            raise UsageError(f"`{text}` is no address or network: {error}") from error
    return tuple(found)


class ProxyHeaders:
    """Reads user and groups from headers of requests that come from known peers."""

    def __init__(self, user: str, groups: str, peers: Sequence[Network]) -> None:
        """Take the names of both headers (`groups` may be empty), and the networks of the proxy."""
        self._user = user
        self._groups = groups
        self._peers = tuple(peers)

    def identify(self, request: web.Request) -> Identity | None:
        """Return the user that the proxy names for a request; raises AccessDeniedError for another peer."""
        if not self._is_known(request):
            raise AccessDeniedError("requests must come through the proxy: this peer is not in --proxy-peers")
        names = request.headers.getall(self._user, [])
        if len(names) != 1 or not names[0].strip():
            return None
        return Identity(_check_user(names[0]), self._read_groups(request))

    def is_known(self, request: web.Request) -> bool:
        """Return True: the proxy, which has the logins, ends the connections of those that end."""
        return True

    def _read_groups(self, request: web.Request) -> tuple[str, ...]:
        if not self._groups:
            return ()
        texts = request.headers.getall(self._groups, [])
        return tuple(_check_user(each) for text in texts for each in text.split(",") if each.strip())

    def _is_known(self, request: web.Request) -> bool:
        peer = None if request.transport is None else request.transport.get_extra_info("peername")
        if not isinstance(peer, tuple) or not peer:
            return False
        address = ipaddress.ip_address(str(peer[0]).partition("%")[0])
        mapped = getattr(address, "ipv4_mapped", None)
        return any((mapped or address) in network for network in self._peers)


def _check_user(text: str) -> str:
    text = text.strip()
    if len(text) > _MOST:
        raise AccessDeniedError("the proxy sends a name that is too long")
    return text
