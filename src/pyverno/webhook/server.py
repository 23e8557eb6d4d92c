"""The HTTPS server of the webhook: limits, threads, health and an orderly end; what it answers is decided elsewhere.

A review that needs nothing of the world runs on the event loop; one that does is done in a worker thread, with the
deadline that the API server gave. Whatever is wrong with one request is the answer to that request and disturbs no
other. This module must never judge.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol

import orjson
from aiohttp import web

from pyverno.engine.host import Host
from pyverno.errors import HostError, PyvernoError
from pyverno.kube.status import StatusError, request_too_large, server_timeout, service_unavailable
from pyverno.webhook.admission import Judged, World, answer
from pyverno.webhook.connections import PatientServer, PatientSite
from pyverno.webhook.inline import InlineHost, NeedsWorkerError
from pyverno.webhook.question import Answer, BadReviewError, Question, read_question
from pyverno.webhook.routes import Route, read_route
from pyverno.webhook.tls import ServerTls

__all__ = ["Health", "Limits", "Observer", "Special", "WebhookServer"]

_SPARE_SECONDS = 0.25
"""How long before the API server stops waiting a review ends."""

_QUIET_SECONDS = 0.5
"""For how long no request may have come before the connections that are left are closed."""

Special = Callable[[Question], Coroutine[Any, Any, Answer]]
"""What answers a path that asks no policies: validation of policies, exceptions, global context entries, TTL labels."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the server takes: bytes of one body and of all bodies in work, seconds, connections, threads.

    `linger_seconds` is for how long it goes on as before when it is told to stop, because it takes a while until those
    who ask know it; `drain_seconds` is what reviews that have begun then have left.
    """

    body_bytes: int = 7 * 1024 * 1024
    bytes_in_work: int = 64 * 1024 * 1024
    handshake_seconds: float = 5.0
    head_seconds: float = 10.0
    body_seconds: float = 10.0
    review_seconds: float = 10.0
    idle_seconds: float = 300.0
    connections: int = 2000
    workers: int = 8
    drain_seconds: float = 10.0
    linger_seconds: float = 0.0

    def share(self, of: int) -> Limits:
        """Return what one of several servers takes that together are to take this.

        >>> Limits(connections=300).share(3).connections
        100
        """
        return replace(
            self,
            bytes_in_work=max(self.bytes_in_work // of, self.body_bytes),
            connections=max(self.connections // of, 1),
        )


class Health(Protocol):
    """Tells whether the process is fit to answer."""

    def problem(self) -> str:
        """Return why requests should go elsewhere, or the empty text."""
        ...


class Observer(Protocol):
    """Is told what was answered: metrics, logs, reports and events are made there, after the answer is sent."""

    def answered(self, question: Question, path: str, judged: Judged, seconds: float) -> None:
        """Take note of one answer."""
        ...

    def failed(self, path: str, error: BaseException) -> None:
        """Take note of a request that was refused or that broke something."""
        ...


class WebhookServer:
    """Listens on HTTPS and answers AdmissionReviews."""

    def __init__(
        self,
        *,
        world: World,
        host: Host,
        tls: ServerTls,
        health: Health,
        observer: Observer,
        special: Mapping[str, Special] | None = None,
        limits: Limits | None = None,
        defers: bool = False,
    ) -> None:
        """Take what requests are judged by and who is told; `special` are the paths that ask no policies."""
        self._world = world
        self._host = host
        self._inline = InlineHost(host)
        self._tls = tls
        self._health = health
        self._observer = observer
        self._special = dict(special or {})
        self._limits = limits or Limits()
        self._defers = defers
        self._bytes_in_work = 0
        self._in_work = 0
        self._asked = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._is_draining = False
        self._pool = ThreadPoolExecutor(self._limits.workers, thread_name_prefix="review")
        self._runner: web.ServerRunner | None = None
        self._http: PatientServer
        self.port = 0

    async def start(self, address: str = "", port: int = 9443, *, shares_port: bool = False) -> None:
        """Listen; with port 0 the system chooses one, which `port` then tells."""
        self._http = PatientServer(
            self._handle,
            head_seconds=self._limits.head_seconds,
            most_connections=self._limits.connections,
            access_log=None,
            keepalive_timeout=self._limits.idle_seconds,
            max_line_size=8190,
            max_field_size=16 * 1024,
        )
        self._runner = web.ServerRunner(self._http, handle_signals=False)
        await self._runner.setup()
        site = PatientSite(
            self._runner,
            address or None,
            port,
            ssl_context=self._tls.listening,
            backlog=1024,
            reuse_port=shares_port or None,
            handshake_seconds=self._limits.handshake_seconds,
        )
        try:
            await site.start()
        except OSError as error:
            where = f"{address or '*'}:{port}"
            raise HostError(f"nobody can listen at `{where}`: {(error.strerror or str(error)).lower()}") from None
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Stop in order: not ready, linger, finish what is in work, then close; requests are answered until the end.

        Every answer from now on ends its connection, so that the next request goes elsewhere.
        """
        self._is_draining = True
        await asyncio.sleep(self._limits.linger_seconds)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._limits.drain_seconds):
                await self._be_quiet()
        if self._runner is not None:
            await self._runner.cleanup()
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _be_quiet(self) -> None:
        """Wait until nothing is in work and nothing more comes on the connections that are left."""
        before = -1
        while before != self._asked:
            before = self._asked
            await self._idle.wait()
            await asyncio.sleep(_QUIET_SECONDS if self._limits.linger_seconds else 0)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        self._http.note(request)
        if request.method == "GET" and path.startswith("/health/"):
            return self._tell_health(path)
        self._in_work += 1
        self._asked += 1
        self._idle.clear()
        try:
            self._check_caller(request)
            response = await self._answer(request, path)
            if self._is_draining:
                response.force_close()
            return response
        except BadReviewError as error:
            self._observer.failed(path, error)
            return _refusal(StatusError(error.status, "BadRequest", error.message))
        except StatusError as error:
            self._observer.failed(path, error)
            return _refusal(error)
        except Exception as error:  # one request must never disturb another
            self._observer.failed(path, error)
            return _refusal(StatusError(500, "InternalError", "an internal error occurred; see the log"))
        finally:
            self._in_work -= 1
            if not self._in_work:
                self._idle.set()

    def _check_caller(self, request: web.BaseRequest) -> None:
        """Raise StatusError for who must show a certificate and did not; health is told to everybody."""
        transport = request.transport
        if not self._tls.admits(None if transport is None else transport.get_extra_info("peercert")):
            raise StatusError(401, "Unauthorized", "a client certificate of the API server is needed")

    async def _answer(self, request: web.BaseRequest, path: str) -> web.Response:
        special = self._special.get(path)
        route = None if special is not None else read_route(path)
        if special is None and route is None:
            raise StatusError(404, "NotFound", "there is nothing at this path")
        if request.method != "POST":
            raise StatusError(405, "MethodNotAllowed", "reviews are sent by POST")
        deadline = time.monotonic() + _seconds(request.raw_path.partition("?")[2], self._limits.review_seconds)
        size = request.content_length
        if size is not None and size > self._limits.body_bytes:
            raise request_too_large(f"the body is larger than {self._limits.body_bytes} bytes")
        reserved = self._limits.body_bytes if size is None else size
        if self._bytes_in_work + reserved > self._limits.bytes_in_work:
            raise service_unavailable("too many bytes are in work; try again")
        self._bytes_in_work += reserved
        try:
            body = await self._read(request)
            question = read_question(body, request.headers.get("Content-Type", ""))
            began = time.perf_counter()
            judged = await (
                self._judge(question, route, deadline) if route is not None else self._ask(special, question, deadline)
            )
            written = judged.answer.to_bytes(question)
        finally:
            self._bytes_in_work -= reserved
        self._observer.answered(question, path, judged, time.perf_counter() - began)
        return web.Response(body=written, content_type="application/json")

    async def _read(self, request: web.BaseRequest) -> bytes:
        if request.content_length is not None and request.content.is_eof():
            return request.content.read_nowait()  # it is all here, and its length was looked at
        parts: list[bytes] = []
        total = 0
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                async for part in request.content.iter_any():
                    total += len(part)
                    if total > self._limits.body_bytes:
                        raise request_too_large(f"the body is larger than {self._limits.body_bytes} bytes")
                    parts.append(part)
        except TimeoutError:
            raise StatusError(408, "Timeout", "the body took too long to arrive") from None
        return b"".join(parts)

    async def _judge(self, question: Question, route: Route, deadline: float) -> Judged:
        try:
            return answer(question, route, self._world, self._inline, deadline=deadline)
        except NeedsWorkerError:
            return await self._in_thread(
                lambda: answer(question, route, self._world, self._host, deadline=deadline, defers=self._defers),
                deadline,
            )

    async def _in_thread(self, work: Callable[[], Judged], deadline: float) -> Judged:
        running = asyncio.get_running_loop().run_in_executor(self._pool, work)
        try:
            async with asyncio.timeout(deadline - time.monotonic() + _SPARE_SECONDS / 2):
                return await asyncio.shield(running)
        except TimeoutError:
            raise server_timeout("the review did not end within the time that the caller waits") from None

    async def _ask(self, special: Special | None, question: Question, deadline: float) -> Judged:
        if special is None:  # `_answer` has seen to that
            raise StatusError(404, "NotFound", "there is nothing at this path")
        try:
            async with asyncio.timeout(max(deadline - time.monotonic(), 0.1)):
                return Judged(await special(question))
        except PyvernoError as error:
            return Judged(Answer(allowed=False, message=error.message))
        except TimeoutError:
            raise server_timeout("the review did not end within the time that the caller waits") from None

    def _tell_health(self, path: str) -> web.Response:
        if path == "/health/liveness":
            return web.Response(text="ok")
        if path != "/health/readiness":
            return _refusal(StatusError(404, "NotFound", "there is nothing at this path"))
        problem = "shutting down" if self._is_draining else self._health.problem()
        return web.Response(status=500, text=problem) if problem else web.Response(text="ok")


@lru_cache(64)
def _seconds(query: str, otherwise: float) -> float:
    """Return how long the caller waits (`timeout=10s`) with something to spare, and no longer than 30 seconds."""
    text = next((part[8:] for part in query.split("&") if part.startswith("timeout=")), "").removesuffix("s")
    try:
        wanted = float(text) if text and len(text) < 8 else otherwise
    except ValueError:
        wanted = otherwise
    if not 0 < wanted < float("inf"):
        wanted = otherwise
    return max(min(wanted, 30.0) - _SPARE_SECONDS, 0.1)


def _refusal(error: StatusError) -> web.Response:
    headers = {"Retry-After": "1"} if error.status in (429, 503) else {}
    return web.Response(
        status=error.status, body=orjson.dumps(error.to_json()), content_type="application/json", headers=headers
    )
