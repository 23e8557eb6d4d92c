"""Bodies of requests as JSON objects; they were read within the limits of `serving`."""

from __future__ import annotations

import orjson
from aiohttp import web

from pyverno.errors import UsageError
from pyverno.kube.json import JSONObject
from pyverno.ui.server.serving import BODY

__all__ = ["read_object"]


def read_object(request: web.Request, what: str) -> JSONObject:
    """Return the JSON object of a body; `what` describes it in the UsageError for another one.

    Raises json.JSONDecodeError for a body that is not JSON.
    """
    body = orjson.loads(request[BODY])
    if not isinstance(body, dict):
        raise UsageError(f"expected a JSON object with {what}")
    return body
