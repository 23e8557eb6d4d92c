"""Admission: identifies and admits every request, and sets its scope, before a handler sees it.

Without a login the first page redirects to it, and the API answers 401. Only health, the files of the pages and the
login itself are open to all.
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Awaitable, Callable, Iterable
from contextvars import ContextVar
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Middleware

from pyverno.errors import HostError
from pyverno.ui.access.identity import AccessDeniedError, Admission, Identifier, Identity
from pyverno.ui.access.oidc import OidcLogins
from pyverno.ui.access.sessions import Sessions
from pyverno.ui.access.viewer import VIEWER, Rights, Viewer
from pyverno.ui.store.scope import SCOPE

# trust rows: browser

__all__ = ["LoginRoutes", "admit", "is_admitted", "is_logged_in", "known_user"]

_PERSON: Final[ContextVar[Identity | None]] = ContextVar("person", default=None)
_HOLDS: Final[ContextVar[Callable[[], bool]]] = ContextVar("holds", default=lambda: True)
_LOG: Final = logging.getLogger("pyverno.ui")
_STATE: Final = "pyverno_login"
_OPEN: Final = ("/healthz", "/ready", "/login", "/login/callback")  # guard: metrics are behind the login
_LOGIN_SECONDS: Final = 600

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def admit(
    identifier: Identifier,
    admission: Admission,
    rights: Rights | None,
    *,
    base_path: str = "",
    has_login: bool = False,
) -> Middleware:
    """Return a middleware that admits users.

    `rights` decides what a user may look at; with None every logged-in user sees everything. `has_login` means that
    this server has a login page to redirect to.
    """

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        path = request.path.removeprefix(base_path)
        if path in _OPEN or path.startswith("/static/"):
            return await handler(request)
        try:
            identity = identifier.identify(request)
        except AccessDeniedError as error:
            raise web.HTTPForbidden(text=error.message) from error
        if identity is None:
            if has_login and path in ("", "/"):
                raise web.HTTPFound(f"{base_path}/login")
            raise web.HTTPUnauthorized(text="log in first")
        if not admission.allows(identity):
            _LOG.warning("login is not admitted", extra={"fields": {"user": identity.user}})
            raise web.HTTPForbidden(
                text=f"`{identity.user}` may not see these pages: contact the operators of this server"
            )
        scope = None
        if rights is not None:
            try:
                scope = await rights.scope(identity)
            except HostError as error:
                raise web.HTTPServiceUnavailable(text=error.message) from error
        token, person = SCOPE.set(scope), _PERSON.set(identity)
        viewer = VIEWER.set(None if rights is None else Viewer(identity, rights))  # guard: requests have a viewer
        holds = _HOLDS.set(lambda: identifier.is_known(request))
        try:
            return await handler(request)
        finally:
            SCOPE.reset(token)
            VIEWER.reset(viewer)
            _PERSON.reset(person)
            _HOLDS.reset(holds)

    return check


class LoginRoutes:
    """Handlers of the login by OpenID Connect."""

    def __init__(self, logins: OidcLogins, sessions: Sessions, *, base_path: str = "") -> None:
        """Take the login provider and the store of sessions."""
        self._logins = logins
        self._sessions = sessions
        self._base_path = base_path

    def routes(self) -> Iterable[web.RouteDef]:
        """Return the routes, relative to the base path."""
        return [
            web.get("/login", self._begin),
            web.get("/login/callback", self._end),
            web.post("/logout", self._leave),
        ]

    async def _begin(self, _: web.Request) -> web.StreamResponse:
        try:
            address, state = await self._logins.begin()
        except HostError as error:
            raise web.HTTPBadGateway(text=f"{error.message}; `pyverno ui check-login` shows more") from error
        response = _redirect(address)
        # the login must end in the browser that began it
        self._sessions.set_cookie(response, _STATE, state, _LOGIN_SECONDS)
        return response

    async def _end(self, request: web.Request) -> web.StreamResponse:
        state, code = request.query.get("state", ""), request.query.get("code", "")
        if not state or not hmac.compare_digest(self._sessions.read_cookie(request, _STATE).encode(), state.encode()):
            raise web.HTTPForbidden(text="this login was begun in another browser: log in again")
        if not code:
            reason = request.query.get("error", "")[:100]
            raise web.HTTPForbidden(text=f"the issuer refuses the login{f' ({reason})' if reason else ''}")
        try:
            identity = await self._logins.end(state, code)
        except AccessDeniedError as error:
            _LOG.warning("login failed", extra={"fields": {"reason": error.message}})
            raise web.HTTPForbidden(text=error.message) from error
        except HostError as error:
            _LOG.warning("login failed", extra={"fields": {"reason": error.message}})
            raise web.HTTPBadGateway(text=error.message) from error
        response = _redirect(f"{self._base_path}/")
        self._sessions.open(response, identity)
        self._sessions.set_cookie(response, _STATE, "", 0)
        return response

    async def _leave(self, request: web.Request) -> web.StreamResponse:
        response = web.json_response({})
        self._sessions.close(request, response)
        return response


def is_logged_in() -> bool:
    """Return whether the login with which this request began still holds; True where there is no login."""
    return _HOLDS.get()()


def known_user() -> str:
    """Return the name of the request's user, empty without a login."""
    person = _PERSON.get()
    return person.user if person is not None else ""


def is_admitted(admission: Admission) -> bool:
    """Return whether the user of this request belongs to some users and groups; true without a login."""
    person = _PERSON.get()
    return person is None or admission.allows(person)


def _redirect(address: str) -> web.Response:
    """Return a redirect that can carry cookies."""
    return web.Response(status=302, headers={"Location": address})
