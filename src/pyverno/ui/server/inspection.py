"""`/api/v1/policies`, `/api/v1/exceptions` and explanations of results: from the clusters' current state."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

import orjson
from aiohttp import web

from pyverno.errors import HostError, UsageError
from pyverno.kube.json import JSONObject
from pyverno.ui.store.pool import ReaderPool
from pyverno.ui.store.rows import StoredResult
from pyverno.ui.store.scope import SCOPE

# trust rows: browser

__all__ = ["InspectionRoutes", "Inspector"]

_SECONDS: Final = 20.0


class Inspector(Protocol):
    """Reads one cluster for the pages, and gives nothing that the viewer of the request may not read there.

    Raises UsageError for missing objects, AccessDeniedError for those of others, HostError where no answer comes.
    """

    async def policies(self, key: str) -> list[JSONObject]:
        """Return the policies with a key: `name`, or `namespace/name`."""

    async def exceptions(self) -> list[JSONObject]:
        """Return all exceptions."""

    async def problems(self) -> Sequence[str]:
        """Return what could not be read."""

    async def explain(self, result: StoredResult) -> JSONObject:
        """Return the explanation why an object passes or fails a policy now."""

    async def draft(self, result: StoredResult) -> JSONObject:
        """Return the narrowest exception for a result, and its effect."""


class InspectionRoutes:
    """Handlers that read the clusters; the store names the results."""

    def __init__(self, readers: ReaderPool, inspectors: Mapping[str, Inspector]) -> None:
        """Take the readers of the store, and the inspector of each cluster by its name."""
        self._readers = readers
        self._inspectors = inspectors

    def routes(self) -> Iterable[web.RouteDef]:
        """Return the routes, relative to the base path."""
        return [
            web.get("/api/v1/policies/{key:.+}", self._policies),
            web.get("/api/v1/exceptions", self._exceptions),
            web.get("/api/v1/results/{id}/explanation", self._explanation),
            web.get("/api/v1/results/{id}/exception", self._draft),
        ]

    async def _policies(self, request: web.Request) -> web.Response:
        """Return the policies with a key in every cluster, and the exceptions for them."""
        key = request.match_info["key"]
        found: list[JSONObject] = []
        problems: list[str] = []
        for cluster, inspector in self._inspectors.items():
            try:
                async with asyncio.timeout(_SECONDS):
                    listed = [each for each in await inspector.policies(key) if _is_policy_in_scope(each)]
                    found += [{**each, "cluster": cluster, "exceptions": _own(each["exceptions"])} for each in listed]
                    problems += [f"{cluster}: {text}" for text in await inspector.problems()]
            except (HostError, TimeoutError) as error:
                problems.append(f"{cluster}: {_reason(error)}")
        return _json({"items": found, "problems": problems})

    async def _exceptions(self, _: web.Request) -> web.Response:
        """Return the exceptions of every cluster, each with the number of open results that it explains."""
        uses = await self._readers.ask(lambda reader: reader.exception_uses())
        found: list[JSONObject] = []
        problems: list[str] = []
        for cluster, inspector in self._inspectors.items():
            try:
                async with asyncio.timeout(_SECONDS):
                    listed = await inspector.exceptions()
                    problems += [f"{cluster}: {text}" for text in await inspector.problems()]
            except (HostError, TimeoutError) as error:
                problems.append(f"{cluster}: {_reason(error)}")
                continue
            listed = [each for each in listed if _is_in_scope(each["namespace"])]
            found += [{**each, "cluster": cluster, "uses": uses.get((cluster, each["name"]), 0)} for each in listed]
        return _json({"items": found, "problems": problems})

    async def _explanation(self, request: web.Request) -> web.Response:
        inspector, result = await self._inspect(request)
        return _json(await _in_time(inspector.explain(result)))

    async def _draft(self, request: web.Request) -> web.Response:
        inspector, result = await self._inspect(request)
        return _json(await _in_time(inspector.draft(result)))

    async def _inspect(self, request: web.Request) -> tuple[Inspector, StoredResult]:
        text = request.match_info["id"]
        if not (text.isascii() and text.isdigit() and len(text) < 17):
            raise web.HTTPNotFound(text="an id is a number")
        result = await self._readers.ask(lambda reader: reader.result(int(text)))
        if result is None:
            raise web.HTTPNotFound(text="there is no such result")
        inspector = self._inspectors.get(result.cluster)
        if inspector is None:
            raise UsageError("this result comes from a file: there is no cluster to ask")
        return inspector, result


def _is_in_scope(namespace: str) -> bool:
    scope = SCOPE.get()
    return scope is None or namespace in scope


def _is_policy_in_scope(policy: JSONObject) -> bool:
    """Policies without namespace are in every scope; the inspector asks whether the user may read them."""
    return not policy["namespace"] or _is_in_scope(policy["namespace"])


def _own(exceptions: Iterable[JSONObject]) -> list[JSONObject]:
    return [each for each in exceptions if _is_in_scope(each["namespace"])]


async def _in_time(work: Coroutine[Any, Any, JSONObject]) -> JSONObject:
    try:
        async with asyncio.timeout(_SECONDS):
            return await work
    except (HostError, TimeoutError) as error:
        raise web.HTTPServiceUnavailable(text=_reason(error)) from error


def _reason(error: HostError | TimeoutError) -> str:
    return error.message if isinstance(error, HostError) else f"no answer within {_SECONDS:g} seconds"


def _json(value: JSONObject) -> web.Response:
    return web.Response(body=orjson.dumps(value), content_type="application/json")
