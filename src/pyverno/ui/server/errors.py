"""Errors as JSON: one object with the reason, never a traceback."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from pyverno.errors import PyvernoError

__all__ = ["errors_as_json"]

_LOG: Final = logging.getLogger("pyverno.ui")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@web.middleware
async def errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer bad requests with 400 and the reason, bugs with 500 and nothing of the request."""
    try:
        return await handler(request)
    except PyvernoError as error:
        return web.json_response({"error": str(error)}, status=400)
    except web.HTTPException as error:
        if error.status < web.HTTPBadRequest.status_code:
            raise
        return web.json_response({"error": error.text or error.reason}, status=error.status)
    except (json.JSONDecodeError, UnicodeDecodeError):
        return web.json_response({"error": "the body is not JSON"}, status=400)
    except Exception as error:
        _LOG.exception("request failed", extra={"path": request.path, "error": type(error).__name__})
        return web.json_response({"error": "internal error: see the log of the server"}, status=500)
