"""Response headers that keep foreign content out, and the check that a request was made by our own pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Final, Literal
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Middleware

# trust rows: browser

__all__ = [
    "CONTENT_SECURITY_POLICY",
    "HEADERS",
    "LOOPBACK_NAMES",
    "add_headers",
    "host_of",
    "known_hosts",
    "own_requests",
]

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; worker-src 'self'"
)
HEADERS: Final = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}
"""Headers of every answer that does not set them itself: no cache keeps what one user sees for another."""
_SAFE_METHODS: Final = ("GET", "HEAD", "OPTIONS")

LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@web.middleware
async def own_requests(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse changes requested from another site."""
    if request.method not in _SAFE_METHODS and not _is_own(request):
        return web.json_response({"error": "the request comes from another site, or is not JSON"}, status=403)
    return await handler(request)


async def add_headers(_: web.Request, response: web.StreamResponse) -> None:
    """Add the headers to a response, right before it is sent."""
    for name, text in HEADERS.items():
        response.headers.setdefault(name, text)


def host_of(request: web.Request) -> str:
    """Return the host and port that a request names; empty where it names none.

    `web.Request.host` would look up the name of this machine instead, and hold up everything else meanwhile.
    """
    return request.headers.get("Host", "")


def known_hosts(names: Collection[str]) -> Middleware:
    """Return a middleware that refuses requests for other hosts.

    A site whose name resolves to this machine could otherwise read everything with the browser of a visitor.
    """

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        if _name_of(f"//{host_of(request)}", "hostname") not in names:
            return web.json_response({"error": "this server has another name"}, status=421)
        return await handler(request)

    return check


def _name_of(url: str, part: Literal["hostname", "netloc"]) -> str | None:
    """Return a part of an address, None for one that is none."""
    try:
        found: str | None = getattr(urlsplit(url), part)
    except ValueError:
        return None
    return found


def _is_own(request: web.Request) -> bool:
    """Return whether a request that may change something was made by our pages, or by no browser at all.

    Browsers send `Origin` with every such request, and cannot send JSON to another site without a preflight request.
    """
    origin = request.headers.get("Origin")
    if origin is not None and _name_of(origin, "netloc") != host_of(request):
        return False
    return request.content_type == "application/json"
