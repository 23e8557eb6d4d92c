"""`/api/v1`: results, resources, counts, history and exports; every list takes the same filter.

The filter is the query of the URL (see `ui.store.filters`), so that the address of a page is its filter.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Final

import orjson
from aiohttp import web

from pyverno.errors import UsageError
from pyverno.kube.json import JSONObject
from pyverno.report.collected import Collected
from pyverno.report.csvtext import csv_text
from pyverno.report.formats.registry import FORMATTERS
from pyverno.report.html import html_page
from pyverno.report.markdown import markdown_table
from pyverno.report.overview import overview_of
from pyverno.threads import in_thread
from pyverno.ui.server.security import host_of
from pyverno.ui.store.filters import Filter, read_filter
from pyverno.ui.store.pool import ReaderPool
from pyverno.ui.store.reader import FACETS, MOST_ROWS, Reader

# trust rows: browser

__all__ = ["ResultRoutes"]

_PAGING: Final = ("limit", "cursor", "order", "offset", "by", "days", "after", "fields", "format")
_MOST_EXPORTED: Final[Mapping[str, int]] = {"csv": 100_000, "markdown": 100_000, "html": 100_000, "sarif": 20_000}
_MOST_OF_OTHERS: Final = 40_000
"""Results of one export: it is made in memory, of which each result takes 2 KiB to 11 KiB by the format."""
_MOST_TEXT: Final = 32 * 1024 * 1024
"""Characters of all messages and properties of one export."""

_MOST_DAYS: Final = 3650
_EXPORTS: Final = 1
"""Exports that are made at once: each holds all of its results in memory."""
_EXPORT_SECONDS: Final = 120.0
_TURN_SECONDS: Final = 30.0
_CONTENT_TYPES: Final[Mapping[str, str]] = {
    "csv": "text/csv",
    "json": "application/json",
    "html": "text/html",
    "sarif": "application/sarif+json",
    "junit": "application/xml",
    "markdown": "text/markdown",
    "yaml": "application/yaml",
}
_COLUMNS: Final = ("status", "severity", "policy", "rule", "namespace", "kind", "name", "message")


class ResultRoutes:
    """Handlers of the routes about results; they only read."""

    def __init__(self, readers: ReaderPool, *, now: Callable[[], float] = time.time) -> None:
        """Take the readers of the store, and the clock that spans in filters count from."""
        self._readers = readers
        self._now = now
        self._exports = asyncio.Semaphore(_EXPORTS)

    def routes(self) -> Iterable[web.RouteDef]:
        """Return the routes, relative to the base path."""
        table: Mapping[str, Callable[[web.Request], Awaitable[web.StreamResponse]]] = {
            "results": self._results,
            "results/{id}": self._result,
            "resources": self._resources,
            "resources/{id}": self._resource,
            "facets": self._facets,
            "facets/keys": self._facet_keys,
            "summary": self._summary,
            "policies": self._grouping_handler("policy"),
            "namespaces": self._grouping_handler("namespace"),
            "sources": self._grouping_handler("source"),
            "history": self._history,
            "trend": self._trend,
            "export": self._export,
        }
        return [web.get(f"/api/v1/{path}", handler) for path, handler in table.items()]

    async def _results(self, request: web.Request) -> web.Response:
        chosen, limit = self._filter(request), _number(request, "limit", 50, MOST_ROWS)
        order, cursor = request.query.get("order", "worst"), request.query.get("cursor", "")
        page = await self._readers.ask(lambda reader: reader.results(chosen, order=order, limit=limit, cursor=cursor))
        return _json(
            {
                "items": [each.to_json() for each in page.items],
                "total": page.total,
                "isLowerBound": page.is_lower_bound,
                "cursor": page.cursor,
            }
        )

    async def _result(self, request: web.Request) -> web.Response:
        number = _id(request)
        found = await self._readers.ask(lambda reader: reader.result(number))
        if found is None:
            raise web.HTTPNotFound(text="there is no such result")
        return _json(found.to_json())

    async def _resources(self, request: web.Request) -> web.Response:
        chosen, limit = self._filter(request), _number(request, "limit", 50, MOST_ROWS)
        offset = _number(request, "offset", 0, 10_000_000)
        return _json(await self._readers.ask(lambda reader: reader.resources(chosen, limit=limit, offset=offset)))

    async def _resource(self, request: web.Request) -> web.Response:
        number = _id(request)
        found = await self._readers.ask(lambda reader: reader.resource(number))
        if found is None:
            raise web.HTTPNotFound(text="there is no such resource")
        return _json(found)

    async def _facets(self, request: web.Request) -> web.Response:
        chosen = self._filter(request)
        fields = tuple(filter(None, request.query.get("fields", "").split(","))) or FACETS
        return _json(await self._readers.ask(lambda reader: reader.facets(chosen, fields)))

    async def _facet_keys(self, request: web.Request) -> web.Response:
        chosen = self._filter(request)
        return _json({"items": list(await self._readers.ask(lambda reader: reader.facet_keys(chosen)))})

    async def _summary(self, request: web.Request) -> web.Response:
        chosen, by = self._filter(request), request.query.get("by", "")
        return _json(await self._readers.ask(lambda reader: reader.summary(chosen, by)))

    def _grouping_handler(self, field: str) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """Return the handler of the values of a field with their results by status."""

        async def handle(request: web.Request) -> web.Response:
            chosen = self._filter(request)
            found = await self._readers.ask(lambda reader: reader.summary(chosen, field))
            return _json({"items": found["groups"]})

        return handle

    async def _history(self, request: web.Request) -> web.Response:
        chosen, limit = self._filter(request, state="all"), _number(request, "limit", 100, MOST_ROWS)
        after = _number(request, "after", 0, 2**53)
        return _json(await self._readers.ask(lambda reader: reader.changes(chosen, limit=limit, after=after)))

    async def _trend(self, request: web.Request) -> web.Response:
        chosen, days, now = self._filter(request), _number(request, "days", 30, _MOST_DAYS), int(self._now())
        return _json(await self._readers.ask(lambda reader: reader.trend(chosen, days, now)))

    async def _export(self, request: web.Request) -> web.Response:
        """Return the selected results as a file; too many are an error, since a cut file looks complete."""
        chosen, form = self._filter(request), request.query.get("format", "csv")
        content_type = _CONTENT_TYPES.get(form)
        if content_type is None:
            raise UsageError(f"unknown format `{form[:40]}`: expected {', '.join(_CONTENT_TYPES)}")
        title = f"Results of {host_of(request)}, {request.query_string or 'all'}"
        async with _turn(self._exports):
            found = await self._readers.ask(lambda reader: _collect(reader, chosen, form), seconds=_EXPORT_SECONDS)
            text = await in_thread(_export, form, found, title)
        suffix = {"markdown": "md", "junit": "xml"}.get(form, form)
        headers = {"Content-Disposition": f'attachment; filename="results.{suffix}"'}
        return web.Response(text=text, content_type=content_type, charset="utf-8", headers=headers)

    def _filter(self, request: web.Request, *, state: str = "") -> Filter:
        query = [(name, text) for name, text in request.query.items() if text]
        if state and "state" not in request.query:
            query.append(("state", state))
        return read_filter(query, int(self._now()), also=_PAGING)


@asynccontextmanager
async def _turn(slots: asyncio.Semaphore) -> AsyncIterator[None]:
    """Hold a slot inside; raises HTTPServiceUnavailable when none becomes free in time."""
    try:
        async with asyncio.timeout(_TURN_SECONDS):
            await slots.acquire()
    except TimeoutError:
        raise web.HTTPServiceUnavailable(text="other exports are being made: try again in a moment") from None
    try:
        yield
    finally:
        slots.release()


def _collect(reader: Reader, chosen: Filter, form: str) -> list[Collected]:
    """Return the selected results; raises UsageError for more than fit into an export of this format."""
    found: list[Collected] = []
    most, left = _MOST_EXPORTED.get(form, _MOST_OF_OTHERS), _MOST_TEXT
    for each in reader.each_result(chosen):
        found.append(each.collected)
        finding = each.collected.finding
        left -= len(finding.message) + sum(len(key) + len(text) for key, text in finding.properties.items())
        if len(found) > most:
            raise UsageError(f"more than {most} results are selected for {form}: narrow the filter")
        if left < 0:
            raise UsageError(f"the selected results have more than {_MOST_TEXT} characters: narrow the filter")
    return found


def _export(form: str, results: list[Collected], title: str) -> str:
    if form == "csv":
        return csv_text(results)
    if form == "html":
        return html_page(overview_of(results), made=title)
    if form == "markdown":
        return markdown_table([each.upper() for each in _COLUMNS], [_cells(each) for each in results])
    return FORMATTERS[form](each.finding for each in results)


def _cells(result: Collected) -> tuple[str, ...]:
    found, ref = result.finding, result.finding.resource
    return (found.status, found.severity, found.policy, found.rule, ref.namespace, ref.kind, ref.name, found.message)


def _number(request: web.Request, name: str, default: int, most: int) -> int:
    text = request.query.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 17 and int(text) <= most):
        raise UsageError(f"`{name}` is `{text[:40]}`: expected a number up to {most}")
    return int(text)


def _id(request: web.Request) -> int:
    text = request.match_info["id"]
    if not (text.isascii() and text.isdigit() and len(text) < 17):
        raise web.HTTPNotFound(text="an id is a number")
    return int(text)


def _json(value: JSONObject | list[JSONObject]) -> web.Response:
    return web.Response(body=orjson.dumps(value), content_type="application/json")
