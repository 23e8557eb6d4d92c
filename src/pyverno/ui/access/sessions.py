"""Sessions of logged-in users: random names in a cookie, everything else in the memory of this server."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from aiohttp import web

from pyverno.ui.access.identity import Identity

# trust rows: session

__all__ = ["Sessions"]

_NAME: Final = "pyverno_session"
_MOST: Final = 10_000
_SECONDS: Final = 8 * 3600.0
_IDLE_SECONDS: Final = 3600.0


class Sessions:
    """Finds the user of a request by its cookie; sessions end after eight hours, or an hour without a request."""

    def __init__(self, *, path: str, is_secure: bool, now: Callable[[], float] = time.monotonic) -> None:
        """Take the path of the cookie, and whether the server's public address is HTTPS."""
        self._path = path or "/"
        self._is_secure = is_secure
        # browsers take such names from this server alone, over HTTPS: no other host of the domain can set them
        self._prefix = "" if not is_secure else "__Host-" if self._path == "/" else "__Secure-"
        self._now = now
        self._sessions: OrderedDict[str, tuple[Identity, float, float]] = OrderedDict()

    def identify(self, request: web.Request) -> Identity | None:
        """Return the user of a request; None without a session."""
        if not self.is_known(request):
            return None
        key = self.read_cookie(request, _NAME)
        identity, begun, _ = self._sessions[key]
        self._sessions[key] = (identity, begun, self._now())
        self._sessions.move_to_end(key)
        return identity

    def is_known(self, request: web.Request) -> bool:
        """Return whether the session of a request has not ended, without prolonging it."""
        key = self.read_cookie(request, _NAME)
        found = self._sessions.get(key)
        if found is None:
            return False
        _, begun, used = found
        now = self._now()
        if now - begun > _SECONDS or now - used > _IDLE_SECONDS:
            del self._sessions[key]
            return False
        return True

    def open(self, response: web.StreamResponse, identity: Identity) -> None:
        """Begin a session; beyond the limit the one that was used least recently ends."""
        while len(self._sessions) >= _MOST:
            self._sessions.popitem(last=False)
        key, now = secrets.token_urlsafe(32), self._now()
        self._sessions[key] = (identity, now, now)
        self.set_cookie(response, _NAME, key, round(_SECONDS))

    def close(self, request: web.Request, response: web.StreamResponse) -> None:
        """End the session of a request."""
        self._sessions.pop(self.read_cookie(request, _NAME), None)
        self.set_cookie(response, _NAME, "", 0)

    def read_cookie(self, request: web.Request, name: str) -> str:
        """Return the text of a cookie that `set_cookie` has set, empty without one."""
        return request.cookies.get(f"{self._prefix}{name}", "")

    def set_cookie(self, response: web.StreamResponse, name: str, text: str, seconds: int) -> None:
        """Set a cookie that scripts cannot read (HttpOnly) and other sites cannot send with changes (SameSite)."""
        response.set_cookie(
            f"{self._prefix}{name}",
            text,
            max_age=seconds,
            path=self._path,
            httponly=True,
            secure=self._is_secure,
            samesite="Lax",
        )
