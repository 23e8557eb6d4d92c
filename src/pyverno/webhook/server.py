"""The HTTPS server of the webhook: limits, threads, health and graceful shutdown.

A small review without I/O runs on the event loop; a large or slow one runs in a worker thread, with the deadline of the
API server. An error in one request becomes its response and never affects other requests.
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

from pyverno.addresses import source_of
from pyverno.engine.faults import fault_of
from pyverno.engine.host import Host
from pyverno.errors import HostError, PyvernoError
from pyverno.kube.admissionreview import AdmissionRequest, AdmissionResponse, BadReviewError, read_admission_review
from pyverno.kube.names import MAX_NAME
from pyverno.kube.status import StatusError, server_timeout
from pyverno.telemetry.observer import AdmissionOutcome, Observer, Observers
from pyverno.webhook.admission import ClusterFacts, answer
from pyverno.webhook.bodies import Bodies
from pyverno.webhook.connections import BoundedServer, BoundedSite, MalformedRequestError
from pyverno.webhook.nonblocking import ComputesLongError, NeedsWorkerError, NonblockingHost
from pyverno.webhook.routes import Route, read_route
from pyverno.webhook.tls import ServerTls
from pyverno.webhook.turns import Turns
from pyverno.webhook.workers import Workers

# trust rows: admission-review

__all__ = ["Health", "Limits", "Special", "WebhookServer"]

_T = TypeVar("_T")
_SPARE_SECONDS = 0.25
"""Margin between the end of a review and the timeout of the API server."""

_QUIET_SECONDS = 0.5
"""How long no complete request may have arrived before the remaining connections are closed."""

_LAST_BODY_SECONDS = 0.5
"""How long a body may still take to arrive after the linger period: live callers have sent theirs."""

_LAST_SECONDS = 1.0
"""How long connections may take to close once no work is left."""

_LARGE_BYTES = 128 * 1024
"""From this size on, a body is parsed and reviewed in a worker thread: it takes milliseconds."""

_EXHAUSTED_SECONDS = 30.0
"""How long all threads may be overdue before the process counts as dead."""

Special = Callable[[AdmissionRequest], Coroutine[Any, Any, AdmissionResponse]]
"""A review on a path without policies: policies, exceptions, global context entries, TTL labels."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the server: bytes of one body and of all bodies in work, seconds, connections, threads.

    `spare_workers` threads may replace threads that exceed their deadline; `heavy_reviews` large or slow reviews
    compute at the same time, if they take long.
    A connection is closed after `idle_seconds`, or for a new one at the limit once it has been idle for
    `reclaim_seconds`.
    After a stop request the server continues for `linger_seconds`, until all clients have noticed; then the reviews
    in progress have `drain_seconds` to finish.
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
        """Return the limits of one of several servers that share these limits.

        >>> Limits(connections=300).share(3).connections
        100
        """
        return replace(
            self,
            bytes_in_work=max(self.bytes_in_work // of, self.body_bytes),
            connections=max(self.connections // of, 1),
        )


class Health(Protocol):
    """Readiness of the process."""

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
        """Take the cluster state, the Host, TLS, health and an observer; `special` maps paths without policies."""
        self._cluster = cluster
        self._host = host
        self._inline = NonblockingHost(host)
        self._tls = tls
        self._health = health
        self._observer = Observers(observer)
        self._special = dict(special or {})
        self._limits = limits or Limits()
        self._defers = defers
        self._bodies = Bodies(self._limits.body_bytes, self._limits.bytes_in_work, self._limits.body_seconds)
        self._in_work = 0
        self._judging = 0
        self._heard = 0.0
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
        """Number of threads whose reviews have exceeded their deadline."""
        return self._workers.overdue

    async def start(self, address: str = "", port: int = 9443, *, shares_port: bool = False) -> None:
        """Listen; with port 0 the system chooses a free port, and `port` holds it."""
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
            backlog=256,
            reuse_port=shares_port or None,
            handshake_seconds=self._limits.handshake_seconds,
        )
        try:
            await site.start()
        except OSError as error:
            where = f"{address or '*'}:{port}"
            raise HostError(f"cannot listen on `{where}`: {(error.strerror or str(error)).lower()}") from None
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Shut down gracefully: become unready, linger, finish the work in progress, then close.

        A request whose body has not arrived by then is rejected, and delays the end as little as one that has just been
        answered. Every response from now on closes its connection, so that the next request goes to another replica.
        """
        self._is_draining = True
        await asyncio.sleep(self._limits.linger_seconds)
        self._bodies.hurry(_LAST_BODY_SECONDS)
        self._http.hasten()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._limits.drain_seconds):
                await self._be_quiet()
        self._bodies.hurry(0)
        if self._runner is not None:
            await self._runner.cleanup()
        self._workers.stop()

    async def _be_quiet(self) -> None:
        """Wait until no work is left and the remaining connections are quiet; incomplete requests are no work."""
        quiet = _QUIET_SECONDS if self._limits.linger_seconds else 0
        until = time.monotonic() + (_LAST_BODY_SECONDS if self._in_work > self._judging else quiet)
        while True:
            await self._idle.wait()
            rest = max(until, self._heard + quiet) - time.monotonic()
            if rest <= 0:
                return
            await asyncio.sleep(rest)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        if request.method == "GET" and path.startswith("/health/"):
            return self._answer_health(path)
        self._in_work += 1
        settled: list[web.StreamResponse] = []
        try:
            if request.version < HttpVersion10:
                raise MalformedRequestError("a request line has no version")
            self._check_caller(request)
            await self._answer(request, path, settled)
            return self._closing(settled[0])
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
            if settled:  # what follows an answer never takes it back
                return self._closing(settled[0])
            return _refusal(StatusError(500, "InternalError", "an internal error occurred; see the log"))
        finally:
            self._in_work -= 1

    def _begin(self) -> None:
        """Count a complete request."""
        self._judging += 1
        self._heard = time.monotonic()
        self._idle.clear()

    def _end(self) -> None:
        self._judging -= 1
        if not self._judging:
            self._idle.set()

    def _closing(self, response: web.StreamResponse) -> web.StreamResponse:
        """Return a response, which closes its connection while the server shuts down."""
        if self._is_draining:
            response.force_close()
        return response

    def _check_caller(self, request: web.BaseRequest) -> None:
        """Raise StatusError for a caller without a required client certificate; health needs none."""
        transport = request.transport
        if not self._tls.admits(None if transport is None else transport.get_extra_info("peercert")):
            raise StatusError(401, "Unauthorized", "a client certificate of the API server is needed")

    async def _answer(self, request: web.BaseRequest, path: str, settled: list[web.StreamResponse]) -> None:
        """Answer a request; `settled` takes the response as soon as there is one, whatever is raised afterwards."""
        special = self._special.get(path)
        route = None if special is not None else read_route(path)
        if special is None and route is None:
            raise StatusError(404, "NotFound", "there is nothing at this path")
        if request.method != "POST":
            raise StatusError(405, "MethodNotAllowed", "reviews are sent by POST")
        deadline = time.monotonic() + _time_limit(request.raw_path.partition("?")[2], self._limits.review_seconds)
        held = _BodyReservation(self._bodies, await self._bodies.read(request))
        content_type = request.headers.get("Content-Type", "")
        self._begin()
        try:
            began = time.perf_counter()
            if len(held.body) < _LARGE_BYTES and self._turns.is_open:
                admission_request = read_admission_review(held.body, content_type)
                found = None if route is None else self._review_here(admission_request, route, deadline)
                outcome = found if isinstance(found, AdmissionOutcome) else None
                outcome, written = (None, b"") if outcome is None else _write(outcome, admission_request)
                self._turns.take(time.perf_counter() - began)
                if route is not None and isinstance(found, type):
                    work = partial(self._judge, admission_request, route, deadline)
                    is_heavy = issubclass(found, ComputesLongError)
                    outcome, written = await self._in_thread(held, path, deadline, work, is_heavy=is_heavy)
            else:
                whole = partial(self._read_and_review, held.body, content_type, route, deadline)
                is_heavy = len(held.body) >= _LARGE_BYTES
                admission_request, outcome, written = await self._in_thread(
                    held, path, deadline, whole, is_heavy=is_heavy
                )
            if outcome is None:
                outcome, written = _write(await self._ask(special, admission_request, deadline), admission_request)
            settled.append(web.Response(body=written, content_type="application/json"))
        finally:
            held.release()
            self._end()
        if outcome.review is not None:
            outcome = self._with_caller(outcome, request)
        self._observer.answered(admission_request, path, outcome, time.perf_counter() - began)

    def _with_caller(self, outcome: AdmissionOutcome, request: web.BaseRequest) -> AdmissionOutcome:
        """Note who asked: what follows an answer is bounded for each caller."""
        source, is_authenticated = source_of(request.remote or ""), self._tls.authenticates
        # `replace` takes twice as long, for each review
        return AdmissionOutcome(outcome.answer, outcome.review, outcome.later, outcome.fault, source, is_authenticated)

    def _read_and_review(
        self, body: bytes, content_type: str, route: Route | None, deadline: float
    ) -> tuple[AdmissionRequest, AdmissionOutcome | None, bytes]:
        admission_request = read_admission_review(body, content_type)
        return (
            (admission_request, None, b"")
            if route is None
            else (admission_request, *self._judge(admission_request, route, deadline))
        )

    def _review_here(
        self, admission_request: AdmissionRequest, route: Route, deadline: float
    ) -> AdmissionOutcome | type[NeedsWorkerError]:
        """Review on the event loop; return why a review needs a worker thread.

        Only the class is returned: an exception would keep the frames of the review alive, in a reference cycle.
        """
        try:
            return answer(admission_request, route, self._cluster, self._inline, deadline=deadline)
        except NeedsWorkerError as needed:
            return type(needed)

    def _judge(
        self, admission_request: AdmissionRequest, route: Route, deadline: float
    ) -> tuple[AdmissionOutcome, bytes]:
        outcome = answer(admission_request, route, self._cluster, self._host, deadline=deadline, defers=self._defers)
        return _write(outcome, admission_request)

    async def _in_thread(
        self, held: _BodyReservation, path: str, deadline: float, work: Callable[[], _T], *, is_heavy: bool
    ) -> _T:
        until, ended = deadline + _SPARE_SECONDS / 2, held.also_elsewhere()
        try:
            return await self._workers.run(work, until=until, name=path, is_heavy=is_heavy, ended=ended)
        except TimeoutError:
            raise server_timeout("the review did not end within the time that the caller waits") from None

    async def _ask(
        self, special: Special | None, admission_request: AdmissionRequest, deadline: float
    ) -> AdmissionOutcome:
        if special is None:  # `_answer` has checked this
            raise StatusError(404, "NotFound", "there is nothing at this path")
        try:
            async with asyncio.timeout(max(deadline - time.monotonic(), 0.1)):
                return AdmissionOutcome(await special(admission_request))
        except PyvernoError as error:
            return AdmissionOutcome(AdmissionResponse(allowed=False, message=error.message))
        except TimeoutError:
            raise server_timeout("the review did not end within the time that the caller waits") from None

    def _answer_health(self, path: str) -> web.Response:
        if path == "/health/liveness":
            is_dead = self._workers.exhausted_seconds > _EXHAUSTED_SECONDS
            return web.Response(status=500, text="no thread is left that works") if is_dead else web.Response(text="ok")
        if path != "/health/readiness":
            return _refusal(StatusError(404, "NotFound", "there is nothing at this path"))
        problem = "shutting down" if self._is_draining else self._problem()
        return web.Response(status=500, text=problem) if problem else web.Response(text="ok")

    def _problem(self) -> str:
        if self._workers.exhausted_seconds:
            return "all threads are busy with reviews past their deadline"
        return self._health.problem()


class _BodyReservation:
    """A body whose bytes count until its last holder, here or in a thread, has released it."""

    __slots__ = ("_bodies", "_holders", "_size", "body")

    def __init__(self, bodies: Bodies, body: bytes) -> None:
        self.body = body
        self._bodies = bodies
        self._size = len(body)
        self._holders = 1

    def also_elsewhere(self) -> Callable[[], None]:
        """Add a holder, and return the function that releases it."""
        self._holders += 1
        return self.release

    def release(self) -> None:
        """Remove a holder."""
        self._holders -= 1
        if not self._holders:
            self._bodies.release(self._size)


def _time_limit(query: str, otherwise: float) -> float:
    return _known_seconds(query, otherwise) if len(query) <= MAX_NAME else _seconds(query, otherwise)


def _seconds(query: str, otherwise: float) -> float:
    """Return how long the caller waits (`timeout=10s`) less a margin, at most 30 seconds."""
    text = next((part[8:] for part in query.split("&") if part.startswith("timeout=")), "").removesuffix("s")
    try:
        wanted = float(text) if text and len(text) < 8 else otherwise
    except ValueError:
        wanted = otherwise
    if not 0 < wanted < float("inf"):
        wanted = otherwise
    return max(min(wanted, 30.0) - _SPARE_SECONDS, 0.1)


_known_seconds = lru_cache(64)(_seconds)


def _write(outcome: AdmissionOutcome, admission_request: AdmissionRequest) -> tuple[AdmissionOutcome, bytes]:
    """Write an answer; one that cannot be written whole is its verdict alone, and the outcome holds the bug.

    Half a change is none: an answer with a patch is written whole, or the failurePolicy decides.
    """
    answer = outcome.answer
    try:
        return outcome, answer.to_bytes(admission_request)
    except Exception as error:
        if answer.allowed and answer.patch:
            raise
        fault = fault_of(error)
    response: dict[str, object] = {"uid": admission_request.uid, "allowed": answer.allowed}
    if not answer.allowed:
        message = f"internal error: the text of this denial cannot be given ({fault.code})"
        response["status"] = {"metadata": {}, "status": "Failure", "message": message}
    review = {"kind": "AdmissionReview", "apiVersion": admission_request.api_version, "response": response}
    return replace(outcome, fault=fault), orjson.dumps(review)


def _refusal(error: StatusError) -> web.Response:
    headers = {"Retry-After": "1"} if error.status in (429, 503) else {}
    return web.Response(
        status=error.status, body=orjson.dumps(error.to_json()), content_type="application/json", headers=headers
    )
