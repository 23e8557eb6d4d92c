"""The reconcile loop of every controller: watches feed keys into a work queue, workers call `reconcile(key)`.

A reconciler brings one key to its desired state from what is known now; it is never given the change that woke it, so
it may run at any time and as often as wanted. A failed key is retried with growing delays while the others proceed.
Whether a controller runs in every replica or only in the leader is decided by what calls `run`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from pyverno.cluster.informer import Notice
from pyverno.controllers.runtime.workqueue import Backoff, Clock, LoopClock, WorkQueue, sleep
from pyverno.errors import HostError
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError

__all__ = [
    "Again",
    "Controller",
    "Failure",
    "LoopMetrics",
    "LoopSettings",
    "ObjectKey",
    "Watch",
]

_DEPTH: Final = 100_000
Key = TypeVar("Key", bound=Hashable)

log = logging.getLogger("pyverno.controllers")


class ObjectKey(NamedTuple):
    """Namespace and name of an object; the namespace is empty for cluster-scoped kinds."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class Again:
    """Requests another reconcile of the key after `seconds`.

    With `is_pending` work remains: the controller is not idle until then, and an urgent key stays urgent. Otherwise the
    key is only checked again, as for a schedule or a time to live.
    """

    seconds: float
    is_pending: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """The error of a key's last reconcile, and the number of failures in a row."""

    times: int
    message: str


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """Settings of a controller's loop.

    `workers` keys are reconciled at a time. Added keys wait `settle_seconds`, so that a burst of changes is one
    reconcile. Every `resync_seconds` all keys are added (0: never). A key is given up after `max_retries` failures in a
    row until it is added again (None: never). `max_depth` bounds the queue.
    """

    workers: int = 1
    settle_seconds: float = 0.0
    resync_seconds: float = 0.0
    max_retries: int | None = None
    max_depth: int = _DEPTH
    backoff: Backoff = field(default_factory=Backoff)


class LoopMetrics(Protocol):
    """Counts what controllers do (`telemetry.metrics.Metrics`)."""

    def reconciled(self, controller: str) -> None:
        """Count one reconcile."""
        ...

    def requeued(self, controller: str, times: int) -> None:
        """Count a retry after so many failures in a row."""
        ...

    def gave_up(self, controller: str) -> None:
        """Count a key that is not retried, or found no room."""
        ...


class Changes(Protocol):
    """A source of changed objects (`cluster.informer.Informer`)."""

    def listen(self, listener: Callable[[Notice, JSONObject], None]) -> None:
        """Call the listener at every change from now on."""
        ...

    async def run(self) -> None:
        """Follow the objects until cancelled."""
        ...


@dataclass(frozen=True, slots=True)
class Watch(Generic[Key]):
    """Objects whose changes add keys: `informer` makes what follows them, `keys` the keys that a change concerns.

    An informer that is shared with others is run by its owner (`is_shared`); the others run while the controller does.
    """

    informer: Callable[[], Changes]
    keys: Callable[[Notice, JSONObject], Iterable[Key]]
    is_shared: bool = False


class Controller(Generic[Key]):
    """Reconciles keys while `run` runs; between two runs (terms of a leader) nothing is remembered."""

    def __init__(
        self,
        name: str,
        reconcile: Callable[[Key], Awaitable[Again | None]],
        *,
        keys: Callable[[], Iterable[Key]] = tuple,
        watches: Sequence[Watch[Key]] = (),
        prepare: Callable[[], Awaitable[None]] | None = None,
        settings: LoopSettings | None = None,
        metrics: LoopMetrics | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Take the name that metrics and logs show, and the work.

        `keys` lists all keys: they are reconciled at the start and at each resync. `prepare` is awaited first, and
        retried until it succeeds. `reconcile` and `prepare` raise HostError or StatusError for what a cluster can
        cause; anything else is a bug, which is logged with its trace and retried as well.
        """
        self.name = name
        self._reconcile = reconcile
        self._keys = keys
        self._watches = watches
        self._prepare = prepare
        self._settings = settings or LoopSettings()
        self._metrics = metrics
        self._clock = clock or LoopClock()
        self._queue: WorkQueue[Key] | None = None
        self._failing: dict[Key, Failure] = {}
        self._shared: set[int] = set()
        self._is_prepared = False

    @property
    def is_running(self) -> bool:
        """Return whether `run` is at work."""
        return self._queue is not None

    @property
    def is_idle(self) -> bool:
        """Return whether the controller runs and has nothing left to do; a key that fails is work left."""
        return self._queue is not None and self._is_prepared and self._queue.is_idle

    @property
    def failing(self) -> Mapping[Key, Failure]:
        """The keys whose last reconcile failed, those that were given up included."""
        return self._failing

    def add(self, key: Key, *, after: float | None = None, is_urgent: bool = False) -> None:
        """Have a key reconciled after some seconds, by default when it has settled, and before those not urgent.

        Without effect while the controller does not run: a run begins with all keys.
        """
        queue, seconds = self._queue, self._settings.settle_seconds if after is None else after
        if queue is not None and not queue.add_after(key, seconds, is_pending=True, is_urgent=is_urgent):
            self._count_dropped()
            log.warning(
                "a key found no room in the queue", extra={"fields": {"controller": self.name, "key": str(key)}}
            )

    def add_all(self) -> None:
        """Have all keys reconciled."""
        for key in self._list_keys():
            self.add(key)

    def _list_keys(self) -> list[Key]:
        """Return all keys; a bug in between costs those that come after it, until the next time."""
        found: list[Key] = []
        try:
            found.extend(self._keys())
        except Exception:
            self._count_dropped()
            log.exception("the keys of a controller could not be listed", extra={"fields": {"controller": self.name}})
        return found

    async def run(self) -> None:
        """Work until cancelled."""
        settings = self._settings
        queue: WorkQueue[Key] = WorkQueue(backoff=settings.backoff, max_depth=settings.max_depth, clock=self._clock)
        self._queue, self._is_prepared = queue, False
        self._failing = {}
        try:
            async with asyncio.TaskGroup() as group:
                for informer in self._informers():
                    group.create_task(informer.run())
                await self._prepare_until_done()
                self.add_all()
                self._is_prepared = True
                for _ in range(settings.workers):
                    group.create_task(self._work(queue))
                if settings.resync_seconds:
                    group.create_task(self._resync(settings.resync_seconds))
        finally:
            queue.close()
            self._queue = None

    def _informers(self) -> Iterator[Changes]:
        """Listen to the watches; yield those that are the controller's own."""
        for watch in self._watches:
            informer = watch.informer()
            if id(watch) not in self._shared:
                informer.listen(lambda notice, body, watch=watch: self._take(watch, notice, body))  # type: ignore[misc]
            if watch.is_shared:
                self._shared.add(id(watch))
            else:
                yield informer

    def _take(self, watch: Watch[Key], notice: Notice, body: JSONObject) -> None:
        for key in watch.keys(notice, body):
            self.add(key)

    async def _prepare_until_done(self) -> None:
        failures = 0
        while self._prepare is not None:
            try:
                await self._prepare()
                return
            except (HostError, StatusError) as error:
                failures += 1
                fields = {"controller": self.name, "error": error.message}
                log.warning("a controller could not be prepared", extra={"fields": fields})
            except Exception:
                failures += 1
                log.exception("the preparation of a controller broke", extra={"fields": {"controller": self.name}})
            await sleep(self._clock, self._settings.backoff.delay(failures))

    async def _resync(self, seconds: float) -> None:
        while True:
            await sleep(self._clock, seconds)
            self.add_all()

    async def _work(self, queue: WorkQueue[Key]) -> None:
        while True:
            key = await queue.get()
            try:
                await self._reconcile_one(queue, key)
            finally:
                queue.done(key)

    async def _reconcile_one(self, queue: WorkQueue[Key], key: Key) -> None:
        if self._metrics is not None:
            self._metrics.reconciled(self.name)
        try:
            again = await self._reconcile(key)
        except (HostError, StatusError) as error:
            self._retry(queue, key, error.message)
        except Exception:
            log.exception("a reconcile broke", extra={"fields": {"controller": self.name, "key": str(key)}})
            self._retry(queue, key, "an internal error occurred; see the log")
        else:
            queue.forget(key)
            self._failing.pop(key, None)
            if again is not None and again.is_pending:
                queue.postpone(key, again.seconds)
            elif again is not None:
                queue.add_after(key, again.seconds)

    def _retry(self, queue: WorkQueue[Key], key: Key, message: str) -> None:
        times = queue.failures.get(key, 0) + 1
        self._failing[key] = Failure(times, message)
        fields = {"controller": self.name, "key": str(key), "error": message, "times": times}
        limit = self._settings.max_retries
        if limit is not None and times > limit:
            queue.forget(key)
            self._count_dropped()
            log.error("a reconcile failed and is given up", extra={"fields": fields})
            return
        queue.retry(key)
        if self._metrics is not None:
            self._metrics.requeued(self.name, times)
        log.warning("a reconcile failed", extra={"fields": fields})

    def _count_dropped(self) -> None:
        if self._metrics is not None:
            self._metrics.gave_up(self.name)
