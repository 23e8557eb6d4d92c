"""The client of a request, by which limits are shared fairly: the user, or the address without a login."""

from __future__ import annotations

from aiohttp import web

from pyverno.ui.access.login import known_user

__all__ = ["client_of"]


def client_of(request: web.Request) -> str:
    """Return the name of the user of a request, or the address of its connection without a login."""
    user = known_user()
    if user:
        return f"user {user}"
    peer = None if request.transport is None else request.transport.get_extra_info("peername")
    return f"address {peer[0]}" if isinstance(peer, tuple) and peer else ""
