"""Requests to an API server: one HTTP session, typed errors, a budget of requests, and streams of watch events.

Answers are plain JSON; a refusal of the server is a StatusError, a failed call a HostError. No redirect is followed and
no proxy is taken from the environment.
"""

from __future__ import annotations

import asyncio
import random
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import aiohttp
import orjson

from pyverno.cluster.access import Access
from pyverno.cluster.answers.pages import METADATA_LIST, read_list, read_pages
from pyverno.cluster.answers.reading import (
    MAX_ANSWER_BYTES,
    decode_answer,
    expect_object,
    read_body,
    read_lines,
    retry_seconds,
)
from pyverno.cluster.channels import Channels, request_head
from pyverno.cluster.credentials import Credentials, Identity
from pyverno.cluster.queries import WATCH
from pyverno.cluster.requestbudget import RequestBudget
from pyverno.cluster.servertime import ServerTime
from pyverno.cluster.sockets import open_socket, set_keep_alive, tls_context
from pyverno.connector import Connector, connection_fault
from pyverno.errors import DocumentError, HostError
from pyverno.kube.apipath import object_path, resource_path
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSON, JSONObject, decode
from pyverno.version import __version__

# trust rows: api-answer

__all__ = [
    "APPLY_PATCH",
    "JSON_PATCH",
    "JSON_TYPE",
    "MERGE_PATCH",
    "METADATA",
    "METADATA_LIST",
    "STRATEGIC_PATCH",
    "Client",
]

_CHANCE: Final = random.SystemRandom()

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
JSON_TYPE: Final = "application/json"
METADATA: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_ATTEMPTS: Final = 5
_HEAD_SECONDS: Final = 30.0
_SHORT_SECONDS: Final = 30.0
_SHORT: Final = 4 * 1024 * 1024
_UNREAD_HEADERS: Final = {"Accept": METADATA, "Content-Type": JSON_TYPE}
_STORED_HEADERS: Final = {"Accept": JSON_TYPE, "Content-Type": JSON_TYPE}

Query = Mapping[str, str] | Sequence[tuple[str, str]]


class _Sent(NamedTuple):
    """One request as it goes out."""

    method: str
    path: str
    query: Query
    data: bytes | None
    headers: Mapping[str, str]


_Send = Callable[[_Sent, int], Awaitable[tuple[int, bytes, float | None]]]


class Client:
    """Client of one API server with one identity; close it, or use it as an async context manager."""

    def __init__(
        self,
        access: Access,
        *,
        qps: float = 100,
        burst: int = 200,
        agent: str = "pyverno",
        on_request: Callable[[str, str], None] = lambda _method, _path: None,
        server_time: ServerTime | None = None,
        on_fault: Callable[[str], None] = lambda _resource: None,
    ) -> None:
        """Take the access, the limits, and a callback for each request (method, or `WATCH`, and path).

        The session is opened with the first request. `server_time` is fed with the Date headers of all responses.
        `on_fault` counts changes of a resource that ran into a bug (`cluster/informer.py`).
        """
        self.on_fault = on_fault
        self._on_request = on_request
        self._server_time = server_time
        self.access = access
        self._credentials = Credentials(access)
        self._budget = RequestBudget(qps, burst)
        self._agent = f"{agent}/{__version__}"
        self._session: aiohttp.ClientSession | None = None
        self._channels = None if access.proxy else Channels(access.server, access.server_name, prepare=set_keep_alive)
        self._is_closed = False
        self._tls: tuple[tuple[bytes, bytes], ssl.SSLContext] | None = None

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections; later calls raise HostError."""
        self._is_closed = True
        if self._channels is not None:
            self._channels.close()
        if self._session is not None:
            await self._session.close()
            self._session = None

    # ------------------------------------------------------------------------------------------------------- verbs

    async def get(
        self, gvr: GVR, name: str, namespace: str = "", *, subresource: str = "", is_urgent: bool = False
    ) -> JSONObject:
        """Return one object."""
        path = object_path(gvr, namespace, name, subresource)
        return expect_object(await self.request("GET", path, is_urgent=is_urgent))

    async def list(
        self, gvr: GVR, namespace: str = "", *, query: Query = (), page: int = 500, accept: str = JSON_TYPE
    ) -> JSONObject:
        """Return a whole collection as one list object, read page by page, or at once if its pages expire."""
        path = resource_path(gvr, namespace)
        return await read_list(self.request, path, _pairs(query), limit=page, accept=accept)

    def pages(
        self, gvr: GVR, namespace: str = "", *, query: Query = (), page: int = 500, accept: str = JSON_TYPE
    ) -> AsyncIterator[JSONObject]:
        """Yield the pages of a collection, with at most `page` objects in each; fewer where they are large."""
        path = resource_path(gvr, namespace)
        return read_pages(self.request, path, _pairs(query), limit=page, accept=accept)

    async def has_any(self, gvr: GVR, namespace: str = "", *, selector: str = "") -> bool:
        """Return whether a collection has an object with these labels, by lists of one object's metadata."""
        query = {"labelSelector": selector} if selector else {}
        async for found in self.pages(gvr, namespace, query=query, page=1, accept=METADATA_LIST):
            if found.get("items"):
                return True
        return False

    async def create(
        self,
        gvr: GVR,
        body: JSONObject,
        namespace: str = "",
        *,
        query: Query = (),
        accept: str = JSON_TYPE,
        is_urgent: bool = False,
    ) -> JSONObject:
        """Create an object and return it as it was stored, with `accept=METADATA` its metadata alone."""
        path = resource_path(gvr, namespace)
        return expect_object(
            await self.request("POST", path, body=body, query=query, accept=accept, is_urgent=is_urgent)
        )

    async def store(self, gvr: GVR, body: JSONObject, namespace: str = "") -> JSONObject:
        """Create an object and return it as it was stored, at most 4 MiB, for half of what `create` costs."""
        path = resource_path(gvr, namespace)
        if self._channels is None:
            return await self.create(gvr, body, namespace)
        return expect_object(decode_answer("POST", path, *await self._send_short("POST", path, body, _STORED_HEADERS)))

    async def submit(self, gvr: GVR, body: JSONObject, namespace: str = "") -> None:
        """Create an object whose stored form does not matter, for a third of what `create` costs."""
        await self._send_unread("POST", resource_path(gvr, namespace), body)

    async def discard(self, gvr: GVR, name: str, namespace: str = "", *, options: JSONObject | None = None) -> None:
        """Delete an object whose last form does not matter, for a third of what `delete` costs."""
        await self._send_unread("DELETE", object_path(gvr, namespace, name), _delete_options(options))

    async def update(
        self,
        gvr: GVR,
        body: JSONObject,
        namespace: str = "",
        *,
        subresource: str = "",
        query: Query = (),
        is_urgent: bool = False,
    ) -> JSONObject:
        """Replace an object; its `resourceVersion` decides whether it is still the one that was read."""
        path = object_path(gvr, namespace, body["metadata"]["name"], subresource)
        return expect_object(await self.request("PUT", path, body=body, query=query, is_urgent=is_urgent))

    async def patch(
        self,
        gvr: GVR,
        name: str,
        body: JSON,
        namespace: str = "",
        *,
        kind: str = MERGE_PATCH,
        subresource: str = "",
        query: Query = (),
    ) -> JSONObject:
        """Patch an object; `kind` is the media type of the patch."""
        path = object_path(gvr, namespace, name, subresource)
        return expect_object(await self.request("PATCH", path, body=body, content_type=kind, query=query))

    async def delete(
        self, gvr: GVR, name: str, namespace: str = "", *, options: JSONObject | None = None
    ) -> JSONObject:
        """Delete an object; `options` are DeleteOptions."""
        path = object_path(gvr, namespace, name)
        return expect_object(await self.request("DELETE", path, body=_delete_options(options)))

    # ---------------------------------------------------------------------------------------------------- requests

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        body: JSON = None,
        content_type: str = JSON_TYPE,
        accept: str = JSON_TYPE,
        seconds: float = 30.0,
        max_bytes: int = MAX_ANSWER_BYTES,
        is_urgent: bool = False,
    ) -> Any:
        """Send one request and return the decoded answer, which may have `max_bytes`, inflated.

        A response 429, or 503 with Retry-After, is retried a few times. An urgent request does not wait for the limit
        of requests. Raises StatusError for a refusal, HostError without a response.
        """
        self._on_request(method, path)
        data = None if body is None else orjson.dumps(body)
        sent = _Sent(method, path, query, data, {"Accept": accept, **({"Content-Type": content_type} if data else {})})
        return decode_answer(method, path, *await self._repeat(sent, self._send, seconds, max_bytes, is_urgent))

    async def _send_unread(self, method: str, path: str, body: JSONObject) -> None:
        if self._channels is None:
            await self.request(method, path, body=body, accept=METADATA)
            return
        status, answer = await self._send_short(method, path, body, _UNREAD_HEADERS)
        if not 200 <= status < 300:
            decode_answer(method, path, status, answer)

    async def _send_short(
        self, method: str, path: str, body: JSONObject, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        """Send a request over the connections for short answers; return status and body of its answer."""
        self._on_request(method, path)
        sent = _Sent(method, path, (), orjson.dumps(body), headers)
        return await self._repeat(sent, self._send_directly, _SHORT_SECONDS, _SHORT)

    async def _repeat(
        self, sent: _Sent, send: _Send, seconds: float, max_bytes: int, is_urgent: bool = False
    ) -> tuple[int, bytes]:
        what = f"{sent.method} {sent.path}"
        for attempt in range(_ATTEMPTS):
            if not is_urgent:
                await self._budget.take()
            try:
                async with asyncio.timeout(seconds):
                    status, answer, wait = await send(sent, max_bytes)
            except TimeoutError:
                raise HostError(f"the API server did not answer `{what}` within {seconds:g} seconds") from None
            except (aiohttp.ClientError, OSError) as error:
                where = urlsplit(self.access.server).netloc.rpartition("@")[2]
                fault = connection_fault(error)
                raise HostError(f"the API server `{where}` cannot be reached for `{what}`: {fault}") from None
            if status == 401 and attempt == 0 and self._credentials.forget():
                continue
            if wait is None or attempt == _ATTEMPTS - 1:
                break
            await asyncio.sleep(wait * _CHANCE.uniform(1.0, 1.3))
        return status, answer

    async def _send(self, sent: _Sent, max_bytes: int) -> tuple[int, bytes, float | None]:
        options = await self._options(sent.headers)
        began = time.monotonic()
        async with self._open().request(
            sent.method, self.access.server + sent.path, params=sent.query, data=sent.data, **options
        ) as reply:
            self._note_time(reply.headers.get("Date", ""), began)
            answer = await read_body(reply, max_bytes, f"{sent.method} {sent.path}")
            return reply.status, answer, retry_seconds(reply.status, reply.headers.get("Retry-After", ""))

    async def _send_directly(self, sent: _Sent, max_bytes: int) -> tuple[int, bytes, float | None]:
        if self._is_closed or self._channels is None:
            raise HostError("the client of the API server is closed")
        identity = await self._credentials.identity()
        data = sent.data or b""
        fields = (*sent.headers.items(), ("User-Agent", self._agent), *self._identify(identity))
        head = request_head(sent.method, self.access.server, sent.path, fields)
        context = self._context(identity) if self.access.server.startswith("https:") else None
        began = time.monotonic()
        message = b"%bContent-Length: %d\r\n\r\n%b" % (head, len(data), data)
        reply = await self._channels.exchange(message, context, max_bytes)
        self._note_time(reply.fields.get("date", ""), began)
        return reply.status, reply.body, retry_seconds(reply.status, reply.fields.get("retry-after", ""))

    async def stream(
        self,
        path: str,
        *,
        query: Query = (),
        idle_seconds: float = 300.0,
        opened: Callable[[], None] = lambda: None,
        accept: str = JSON_TYPE,
    ) -> AsyncIterator[JSONObject]:
        """Yield the lines of a watch as they come, decoded; `opened` is called when the server has begun to answer.

        Ends when the server ends it. Raises StatusError for a refusal, HostError when the connection breaks or says
        nothing for `idle_seconds`; a line that was cut off is dropped.
        """
        self._on_request(WATCH, path)
        await self._budget.take()
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=30, sock_read=idle_seconds)
        try:
            options = await self._options({"Accept": accept})
            began = time.monotonic()
            # a watch may say nothing for long, but a server begins to answer at once
            async with asyncio.timeout(_HEAD_SECONDS):
                opening = self._open().get(self.access.server + path, params=query, timeout=timeout, **options)
                reply = await opening
            async with reply:
                self._note_time(reply.headers.get("Date", ""), began)
                if reply.status != 200:
                    decode_answer("GET", path, reply.status, await read_body(reply, MAX_ANSWER_BYTES, f"GET {path}"))
                opened()
                lines = read_lines(reply.content)
                while True:
                    # bytes that never become a line say nothing: a proxy in between may send them for ever
                    async with asyncio.timeout(idle_seconds):
                        line = await anext(lines, None)
                    if line is None:
                        return
                    yield decode(line)
        except DocumentError as error:
            raise HostError(f"the watch of `{path}` sent something that is no JSON: {error.message}") from None
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise HostError(f"the watch of `{path}` broke off: {connection_fault(error)}") from None

    def _note_time(self, date: str, sent: float) -> None:
        if self._server_time is not None:
            self._server_time.note(date, sent)

    def _open(self) -> aiohttp.ClientSession:
        if self._is_closed:
            raise HostError("the client of the API server is closed")
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=Connector(limit=0, ssl=False, socket_factory=open_socket),
                headers={"User-Agent": self._agent},
                # no cookies and no timeouts of aiohttp, which cost as much as the rest: `_send` has its own limit
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None),
                trust_env=False,
                auto_decompress=True,
                read_bufsize=2**18,
            )
        return self._session

    async def _options(self, headers: Mapping[str, str]) -> dict[str, Any]:
        identity = await self._credentials.identity()
        options: dict[str, Any] = {"headers": [*headers.items(), *self._identify(identity)], "allow_redirects": False}
        if self.access.server.startswith("https:"):
            options["ssl"] = self._context(identity)
            if self.access.server_name:
                options["server_hostname"] = self.access.server_name
        if self.access.proxy:
            options["proxy"] = self.access.proxy
        return options

    def _identify(self, identity: Identity) -> Iterator[tuple[str, str]]:
        yield from self.access.impersonation()
        if identity.authorization:
            yield "Authorization", identity.authorization

    def _context(self, identity: Identity) -> ssl.SSLContext:
        pair = (identity.certificate, identity.key)
        if self._tls is None or self._tls[0] != pair:
            self._tls = (pair, tls_context(self.access, *pair))
        return self._tls[1]


def _pairs(query: Query) -> Sequence[tuple[str, str]]:
    return [*query.items()] if isinstance(query, Mapping) else query


def _delete_options(options: JSONObject | None) -> JSONObject:
    return {"kind": "DeleteOptions", "apiVersion": "v1", **(options or {})}
