"""Errors as JSON: one object with the reason, never a traceback.

The reason of a store that does not answer may name machines and files: it is for the log only.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import HttpVersion10, web

from pyverno.errors import HostError, PyvernoError
from pyverno.kube.status import StatusError
from pyverno.telemetry.throttle import Throttle
from pyverno.ui.access.identity import AccessDeniedError
from pyverno.ui.store.database import StoreUnavailableError
from pyverno.webhook.connections import MalformedRequestError

# trust rows: browser

__all__ = ["errors_as_json"]

_LOG: Final = logging.getLogger("pyverno.ui")
_LINES: Final = Throttle()

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@web.middleware
async def errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer bad requests with 400, what cannot be answered now with 503, and bugs with 500 and nothing of the request.

    Raises ConnectionResetError for a client that has gone.
    """
    try:
        if request.version < HttpVersion10:
            raise MalformedRequestError("a request line has no version")
        return await handler(request)
    except StoreUnavailableError as error:
        _log(logging.WARNING, "the store cannot answer", request, error)
        return _answer(503, "the store of results does not answer now: see the log of the server")
    except StatusError as error:
        return _answer(error.status, error.message)
    except MalformedRequestError as error:
        response = _answer(error.status, error.message)
        response.force_close()
        return response
    except AccessDeniedError as error:
        return _answer(403, error.message)
    except HostError as error:
        return _answer(503, error.message)
    except PyvernoError as error:
        return _answer(400, str(error))
    except web.HTTPException as error:
        if error.status < web.HTTPBadRequest.status_code:
            raise
        return _answer(error.status, error.text or error.reason)
    except (json.JSONDecodeError, UnicodeDecodeError):
        return _answer(400, "the body is not JSON")
    except ConnectionResetError:
        raise
    except Exception as error:
        _log(logging.ERROR, "request failed", request, error)
        return _answer(500, "internal error: see the log of the server")


def _answer(status: int, text: str) -> web.Response:
    return web.json_response({"error": text}, status=status)


def _log(level: int, what: str, request: web.Request, error: Exception) -> None:
    """Log an error at a limited rate; the log shows the text of typed errors, and only the places of all others."""
    held_back = _LINES.held_back(type(error).__name__)
    if held_back is not None:
        fields = {"path": request.path, "held_back": held_back}
        if isinstance(error, PyvernoError):
            fields["error"] = error.message
        _LOG.log(level, what, extra={"fields": fields}, exc_info=level == logging.ERROR)
