"""Connections of the HTTP server: what can not even be read as a request is answered as Go's server does.

Bodies stay as they were sent: an API server knows no compressed ones. This module must never look into a request.
"""

from __future__ import annotations

import logging
from http import HTTPStatus

from aiohttp import web
from aiohttp.http_exceptions import BadHttpMessage, LineTooLong

__all__ = ["Connections"]

_log = logging.getLogger(__name__)
_MAX_HEADER = 1 << 20
_MAX_HEADERS = 10_000
_NOT_RAISED_HERE = (BadHttpMessage, web.RequestPayloadError)
"""What clients have done, not this server."""


class Connections(web.Server):
    """The factory of connections."""

    def __call__(self) -> web.RequestHandler:
        """Make a connection."""
        return _Connection(
            self,
            loop=self._loop,
            max_line_size=_MAX_HEADER,
            max_field_size=_MAX_HEADER,
            max_headers=_MAX_HEADERS,
            auto_decompress=False,
            access_log=None,  # type: ignore[arg-type]  # none is allowed, and said so elsewhere
        )


class _Connection(web.RequestHandler):
    __slots__ = ()

    def log_exception(self, *args: object, **kw: object) -> None:
        """Log what went wrong, unless a client is at fault."""
        if isinstance(kw.get("exc_info"), _NOT_RAISED_HERE):
            _log.debug("a request can not be read")
        else:
            super().log_exception(*args, **kw)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what is no request; the connection is closed afterwards."""
        if not isinstance(exc, BadHttpMessage):
            return super().handle_error(request, status, exc, message)
        known = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE if isinstance(exc, LineTooLong) else HTTPStatus.BAD_REQUEST
        response = web.Response(status=known, text=f"{known.value} {known.phrase}", content_type="text/plain")
        response.force_close()
        return response
