"""Compression of large responses for clients that accept it, as in a real API server."""

from __future__ import annotations

import gzip

from aiohttp import web

from pyverno.threads import in_thread

__all__ = ["LARGE", "compress"]

LARGE = 128 * 1024
"""The size in bytes from which responses are compressed."""
_FASTEST = 1


async def compress(request: web.BaseRequest, response: web.StreamResponse) -> None:
    """Compress a large response that has not begun, if the client takes gzip, without blocking other work."""
    body = response.body if isinstance(response, web.Response) else None
    if not isinstance(body, bytes) or len(body) < LARGE or "Content-Encoding" in response.headers:
        return
    accepted = {part.strip() for part in request.headers.get("Accept-Encoding", "").split(",")}
    if "gzip" not in accepted:
        return
    assert isinstance(response, web.Response)  # noqa: S101  # it has a body
    response.body = await in_thread(gzip.compress, body, _FASTEST, mtime=0)
    response.headers["Content-Encoding"] = "gzip"
    varies = {part.strip() for part in response.headers.get("Vary", "").split(",") if part.strip()}
    response.headers["Vary"] = ", ".join(("Accept-Encoding", *sorted(varies - {"Accept-Encoding"})))
