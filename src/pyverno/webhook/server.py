"""The HTTPS server of the webhook: limits, threads, health and an orderly end; what it answers is decided elsewhere.

A small review that needs nothing of the world runs on the event loop; a large one, or one that takes time, runs in a
worker thread from the first byte to the last, with the deadline that the API server gave. Whatever is wrong with one
request is the answer to that request and disturbs no other. This module must never judge.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Protocol, TypeVar

import orjson
from aiohttp import HttpVersion10, web

from pyverno.engine.host import Host
from pyverno.errors import HostError, PyvernoError
from pyverno.kube.admissionreview import AdmissionRequest, AdmissionResponse, BadReviewError, read_admission_review
from pyverno.kube.names import MAX_NAME
from pyverno.kube.status import StatusError, server_timeout
from pyverno.telemetry.observer import AdmissionOutcome, Observer
from pyverno.webhook.admission import ClusterFacts, answer
from pyverno.webhook.bodies import Bodies
from pyverno.webhook.connections import BoundedServer, BoundedSite, MalformedRequestError
from pyverno.webhook.nonblocking import ComputesLongError, NeedsWorkerError, NonblockingHost
from pyverno.webhook.routes import Route, read_route
from pyverno.webhook.tls import ServerTls
from pyverno.webhook.turns import Turns
from pyverno.webhook.workers import Workers

__all__ = ["Health", "Limits", "Special", "WebhookServer"]

_T = TypeVar("_T")
_SPARE_SECONDS = 0.25
"""How long before the API server stops waiting a review ends."""

_QUIET_SECONDS = 0.5
"""For how long no request may have come before the connections that are left are closed."""

_LAST_BODY_SECONDS = 0.5
"""How long a body may still take to arrive once the server has lingered: callers that are alive have sent theirs."""

_LAST_SECONDS = 1.0
"""How long connections take to close when nothing is in work any more."""

_LARGE_BYTES = 128 * 1024
"""From this size on a body is read, judged and answered in a worker thread: it takes milliseconds."""

_EXHAUSTED_SECONDS = 30.0
"""After how long without a thread that works the process counts as dead."""

Special = Callable[[AdmissionRequest], Coroutine[Any, Any, AdmissionResponse]]
"""What answers a path that asks no policies: validation of policies, exceptions, global context entries, TTL labels."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the server takes: bytes of one body and of all bodies in work, seconds, connections, threads.

    `spare_workers` is how many threads may take the place of those that go on after their deadline, `heavy_reviews` how
    many large or slow reviews compute at once.
    A connection is closed after `idle_seconds`, or for a new one at the limit once it has been idle for
    `reclaim_seconds`.
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
    reclaim_seconds: float = 1.0
    connections: int = 2000
    workers: int = 8
    spare_workers: int = 8
    heavy_reviews: int = 2
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


class WebhookServer:
    """Listens on HTTPS and answers AdmissionReviews."""

    def __init__(
        self,
        *,
        cluster: ClusterFacts,
        host: Host,
        tls: ServerTls,
        health: Health,
        observer: Observer,
        special: Mapping[str, Special] | None = None,
        limits: Limits | None = None,
        defers: bool = False,
    ) -> None:
        """Take what requests are judged by and who is told; `special` are the paths that ask no policies."""
        self._cluster = cluster
        self._host = host
        self._inline = NonblockingHost(host)
        self._tls = tls
        self._health = health
        self._observer = observer
        self._special = dict(special or {})
        self._limits = limits or Limits()
        self._defers = defers
        self._bodies = Bodies(self._limits.body_bytes, self._limits.bytes_in_work, self._limits.body_seconds)
        self._in_work = 0
        self._asked = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._is_draining = False
        limits = self._limits
        self._workers = Workers(limits.workers, limits.spare_workers, limits.heavy_reviews)
        self._turns = Turns()
        self._runner: web.ServerRunner | None = None
        self._http: BoundedServer
        self.port = 0

    @property
    def overdue(self) -> int:
        """How many threads go on with reviews whose callers have stopped waiting."""
        return self._workers.overdue

    async def start(self, address: str = "", port: int = 9443, *, shares_port: bool = False) -> None:
        """Listen; with port 0 the system chooses one, which `port` then tells."""
        self._http = BoundedServer(
            self._handle,
            head_seconds=self._limits.head_seconds,
            max_connections=self._limits.connections,
            handshake_seconds=self._limits.handshake_seconds,
            reclaim_seconds=self._limits.reclaim_seconds,
            complain=lambda error: self._observer.failed("", error),
            keepalive_timeout=self._limits.idle_seconds,
            max_line_size=8190,
            max_field_size=16 * 1024,
        )
        self._runner = web.ServerRunner(self._http, handle_signals=False, shutdown_timeout=_LAST_SECONDS)
        await self._runner.setup()
        site = BoundedSite(
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

        A request whose body has not arrived by then is refused. Every answer from now on ends its connection, so that
        the next request goes elsewhere.
        """
        self._is_draining = True
        await asyncio.sleep(self._limits.linger_seconds)
        self._bodies.hurry(_LAST_BODY_SECONDS)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._limits.drain_seconds):
                await self._be_quiet()
        if self._runner is not None:
            await self._runner.cleanup()
        self._workers.stop()

    async def _be_quiet(self) -> None:
        """Wait until nothing is in work and nothing more comes on the connections that are left."""
        before = -1
        while before != self._asked:
            before = self._asked
            await self._idle.wait()
            await asyncio.sleep(_QUIET_SECONDS if self._limits.linger_seconds else 0)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        if request.method == "GET" and path.startswith("/health/"):
            return self._tell_health(path)
        self._in_work += 1
        self._asked += 1
        self._idle.clear()
        try:
            if request.version < HttpVersion10:
                raise MalformedRequestError("a request line has no version")
            self._check_caller(request)
            response = await self._answer(request, path)
            if self._is_draining:
                response.force_close()
            return response
        except BadReviewError as error:
            self._observer.failed(path, error)
            return _refusal(StatusError(error.status, "BadRequest", error.message))
        except MalformedRequestError as error:
            self._http.report(error.message, request.transport)
            response = _refusal(StatusError(error.status, "BadRequest", error.message))
            response.force_close()
            return response
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
        deadline = time.monotonic() + _patience(request.raw_path.partition("?")[2], self._limits.review_seconds)
        held = _Held(self._bodies, await self._bodies.read(request))
        content_type = request.headers.get("Content-Type", "")
        try:
            began = time.perf_counter()
            if len(held.body) < _LARGE_BYTES and self._turns.is_open:
                admission_request = read_admission_review(held.body, content_type)
                found = None if route is None else self._judge_here(admission_request, route, deadline)
                outcome = found if isinstance(found, AdmissionOutcome) else None
                written = b"" if outcome is None else outcome.answer.to_bytes(admission_request)
                self._turns.take(time.perf_counter() - began)
                if route is not None and isinstance(found, NeedsWorkerError):
                    work = partial(self._judge, admission_request, route, deadline)
                    is_heavy = isinstance(found, ComputesLongError)
                    outcome, written = await self._in_thread(held, path, deadline, work, is_heavy=is_heavy)
            else:
                whole = partial(self._read_and_judge, held.body, content_type, route, deadline)
                is_heavy = len(held.body) >= _LARGE_BYTES
                admission_request, outcome, written = await self._in_thread(
                    held, path, deadline, whole, is_heavy=is_heavy
                )
            if outcome is None:
                outcome = await self._ask(special, admission_request, deadline)
                written = outcome.answer.to_bytes(admission_request)
        finally:
            held.release()
        self._observer.answered(admission_request, path, outcome, time.perf_counter() - began)
        return web.Response(body=written, content_type="application/json")

    def _read_and_judge(
        self, body: bytes, content_type: str, route: Route | None, deadline: float
    ) -> tuple[AdmissionRequest, AdmissionOutcome | None, bytes]:
        admission_request = read_admission_review(body, content_type)
        return (
            (admission_request, None, b"")
            if route is None
            else (admission_request, *self._judge(admission_request, route, deadline))
        )

    def _judge_here(
        self, admission_request: AdmissionRequest, route: Route, deadline: float
    ) -> AdmissionOutcome | NeedsWorkerError:
        """Judge on the event loop; returns why a review needs a worker thread."""
        try:
            return answer(admission_request, route, self._cluster, self._inline, deadline=deadline)
        except NeedsWorkerError as needed:
            return needed

    def _judge(
        self, admission_request: AdmissionRequest, route: Route, deadline: float
    ) -> tuple[AdmissionOutcome, bytes]:
        outcome = answer(admission_request, route, self._cluster, self._host, deadline=deadline, defers=self._defers)
        return outcome, outcome.answer.to_bytes(admission_request)

    async def _in_thread(
        self, held: _Held, path: str, deadline: float, work: Callable[[], _T], *, is_heavy: bool
    ) -> _T:
        until, ended = deadline + _SPARE_SECONDS / 2, held.also_elsewhere()
        try:
            return await self._workers.run(work, until=until, name=path, is_heavy=is_heavy, ended=ended)
        except TimeoutError:
            raise server_timeout("the review did not end within the time that the caller waits") from None

    async def _ask(
        self, special: Special | None, admission_request: AdmissionRequest, deadline: float
    ) -> AdmissionOutcome:
        if special is None:  # `_answer` has seen to that
            raise StatusError(404, "NotFound", "there is nothing at this path")
        try:
            async with asyncio.timeout(max(deadline - time.monotonic(), 0.1)):
                return AdmissionOutcome(await special(admission_request))
        except PyvernoError as error:
            return AdmissionOutcome(AdmissionResponse(allowed=False, message=error.message))
        except TimeoutError:
            raise server_timeout("the review did not end within the time that the caller waits") from None

    def _tell_health(self, path: str) -> web.Response:
        if path == "/health/liveness":
            is_dead = self._workers.exhausted_seconds > _EXHAUSTED_SECONDS
            return web.Response(status=500, text="no thread is left that works") if is_dead else web.Response(text="ok")
        if path != "/health/readiness":
            return _refusal(StatusError(404, "NotFound", "there is nothing at this path"))
        problem = "shutting down" if self._is_draining else self._problem()
        return web.Response(status=500, text=problem) if problem else web.Response(text="ok")

    def _problem(self) -> str:
        if self._workers.exhausted_seconds:
            return "all threads go on with reviews after their deadline"
        return self._health.problem()


class _Held:
    """A body whose bytes count until nobody works with them any more, here and in a thread."""

    __slots__ = ("_bodies", "_holders", "_size", "body")

    def __init__(self, bodies: Bodies, body: bytes) -> None:
        self.body = body
        self._bodies = bodies
        self._size = len(body)
        self._holders = 1

    def also_elsewhere(self) -> Callable[[], None]:
        """Count one more holder, and return what that one calls at its end."""
        self._holders += 1
        return self.release

    def release(self) -> None:
        """Count one holder less."""
        self._holders -= 1
        if not self._holders:
            self._bodies.release(self._size)


def _patience(query: str, otherwise: float) -> float:
    return _known_seconds(query, otherwise) if len(query) <= MAX_NAME else _seconds(query, otherwise)


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


_known_seconds = lru_cache(64)(_seconds)


def _refusal(error: StatusError) -> web.Response:
    headers = {"Retry-After": "1"} if error.status in (429, 503) else {}
    return web.Response(
        status=error.status, body=orjson.dumps(error.to_json()), content_type="application/json", headers=headers
    )
