"""The data of one entry of the global context: objects of a resource, the response of an API, or an error.

Objects are watched, APIs are polled; data older than its bound is an error. `read` and `is_cached` are thread-safe;
call all other methods on the event loop's thread.
"""

from __future__ import annotations

import asyncio
import logging
import random
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, ParamSpec, Protocol, TypeAlias

from pyverno.cluster.client import Client
from pyverno.cluster.informer import STALE_SECONDS, Informer, Notice
from pyverno.errors import HostError, PyvernoError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.time.duration import duration_seconds, parse_duration
from pyverno.policy.globalcontext import ExternalApiCall, KubernetesResource
from pyverno.threads import in_thread

__all__ = ["Entry", "InvalidEntry", "ListedEntry", "PolledEntry", "Projections"]

_CHANCE: Final = random.SystemRandom()

_P = ParamSpec("_P")
Projections: TypeAlias = Mapping[str, Callable[[JSON], JSON]]
OnState: TypeAlias = Callable[[str], None]
"""Called on the event loop with the reason why an entry or a projection has no data ("" = it has data)."""

_LOOK_SECONDS: Final = 0.5
_AGAIN_SECONDS: Final = 10.0
_FIRST_PAUSE: Final = 0.01
_LONGEST_PAUSE: Final = 30.0
_SHORTEST_INTERVAL: Final = 0.1

log = logging.getLogger("pyverno.globalcontext")


class Entry(Protocol):
    """The data of one entry."""

    def read(self, projection: str) -> JSON:
        """Return all data (for "") or a projection; raises HostError."""
        ...

    def is_cached(self, projection: str) -> bool:
        """Return whether `read` answers without computing anything."""
        ...

    def wake(self) -> None:
        """Retry at once if there is no data, or only stale data."""
        ...

    async def stop(self) -> None:
        """Stop watching or polling."""
        ...


class InvalidEntry:
    """An entry whose spec is invalid: every read raises the reason."""

    def __init__(self, reason: str, on_state: OnState) -> None:
        self._reason = reason
        log.error("a global context entry is not valid", extra={"fields": {"error": reason}})
        on_state(reason)

    def read(self, projection: str) -> JSON:
        """Raise the reason."""
        raise HostError(self._reason)

    def is_cached(self, projection: str) -> bool:
        """Return True: there is nothing to compute."""
        return True

    def wake(self) -> None:
        """Do nothing."""

    async def stop(self) -> None:
        """Do nothing."""


class ListedEntry:
    """The objects of a resource, sorted by name; projections are computed on first use after a change."""

    def __init__(
        self,
        name: str,
        client: Client,
        resource: KubernetesResource,
        projections: Projections,
        *,
        on_state: OnState,
        bound: float = STALE_SECONDS,
    ) -> None:
        self._name = name
        self._projections = projections
        self._on_state = on_state
        self._bound = bound
        self._failing: Mapping[str, tuple[str, float]] = {}
        self._lock = threading.Lock()
        self._objects: dict[tuple[str, str], JSONObject] = {}
        self._all: list[JSON] | None = None
        self._apply_projections: Mapping[str, JSON] = {}
        self._projected_from: list[JSON] | None = None
        gvr = GVR(resource.group, resource.version, resource.resource)
        self._informer = Informer(client, gvr, namespace=resource.namespace, bound=bound)
        self._informer.listen(self._take)
        self._work = (asyncio.create_task(self._informer.run()), asyncio.create_task(self._watch_over()))

    def read(self, projection: str) -> JSON:
        """Return the objects, or a projection of them."""
        if not self._informer.synced.is_set():
            raise HostError(f"the data of global context entry `{self._name}` are not there yet")
        if self._informer.is_stale:
            raise HostError(f"the data of global context entry `{self._name}` are too old to rely on")
        data = self._list_objects()
        if not projection:
            return data
        found = self._apply_projections if self._projected_from is data else self._project(data)
        failure = self._failing.get(projection)
        if failure is not None and time.monotonic() - failure[1] > self._bound:
            raise HostError(failure[0])
        if projection not in found:
            raise HostError(f'projection "{projection}" not found')
        return found[projection]

    def is_cached(self, projection: str) -> bool:
        """Return whether nothing has changed since the last read."""
        data = self._all
        return data is not None and (not projection or self._projected_from is data)

    def wake(self) -> None:
        """Retry the list or watch at once."""
        self._informer.wake()

    async def stop(self) -> None:
        """Stop the watch."""
        await _cancel(self._work)

    def _take(self, notice: Notice, body: JSONObject) -> None:
        metadata = body["metadata"]
        place = (str(metadata.get("namespace") or ""), str(metadata["name"]))
        with self._lock:
            if notice is Notice.DELETED:
                self._objects.pop(place, None)
            else:
                self._objects[place] = body
            self._all = None

    def _list_objects(self) -> list[JSON]:
        with self._lock:
            if self._all is None:
                self._all = [body for _, body in sorted(self._objects.items(), key=lambda item: item[0])]
            return self._all

    def _project(self, data: list[JSON]) -> Mapping[str, JSON]:
        """Compute all projections; one that fails keeps its last value until that is too old."""
        found = dict(self._apply_projections)
        failing: dict[str, tuple[str, float]] = {}
        for name, evaluate in self._projections.items():
            try:
                found[name] = evaluate(data)
            except PyvernoError as error:
                fields = {"entry": self._name, "projection": name, "error": error.message}
                log.warning("a projection failed", extra={"fields": fields})
                self._keep_failure(failing, name, f'failed to apply projection "{name}": {error.message}')
            except Exception:  # the other projections go on
                fields = {"entry": self._name, "projection": name}
                log.exception("a projection ran into a bug", extra={"fields": fields})
                self._keep_failure(failing, name, f'failed to apply projection "{name}": an internal error occurred')
        self._apply_projections, self._projected_from, self._failing = found, data, failing
        return found

    def _keep_failure(self, failing: dict[str, tuple[str, float]], name: str, reason: str) -> None:
        failing[name] = reason, self._failing.get(name, ("", time.monotonic()))[1]

    async def _watch_over(self) -> None:
        """Report every transition between data and no data."""
        reported: str | None = None
        while True:
            problem = self._problem()
            if problem is not None and problem != reported:
                reported = problem
                if problem:
                    fields = {"entry": self._name, "error": problem}
                    log.warning("a global context entry has no data", extra={"fields": fields})
                _tell(self._on_state, problem)
            if problem is None:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_SECONDS):
                        await self._informer.synced.wait()
            else:
                await asyncio.sleep(_LOOK_SECONDS)

    def _problem(self) -> str | None:
        """Return why there is no data ("" = there is data); None while the first list may still arrive."""
        informer = self._informer
        if informer.is_stale:
            if informer.synced.is_set():
                return informer.problem()
            reason = f": {informer.trouble}" if informer.trouble else ""
            return f"failed to sync cache for {informer.gvr}: the resource may not exist in the cluster{reason}"
        return next((reason for reason, _ in self._failing.values()), "") if informer.synced.is_set() else None


class PolledEntry:
    """The response of an API and its projections; an error stays until the next successful response.

    A response is valid for the refresh interval plus the time that the next attempts may take, which is the bound.
    """

    def __init__(
        self,
        name: str,
        fetch: Callable[[ExternalApiCall], Awaitable[JSON]],
        call: ExternalApiCall,
        projections: Projections,
        *,
        on_refresh: Callable[[], None],
        on_state: OnState,
        bound: float = STALE_SECONDS,
    ) -> None:
        self._name = name
        self._fetch = fetch
        self._call = call
        self._projections = projections
        self._on_refresh = on_refresh
        self._on_state = on_state
        self._bound = bound
        self._woken = asyncio.Event()
        self._state: tuple[Mapping[str, JSON], str] = {}, ""
        self._work = (asyncio.create_task(self._run()),)

    def read(self, projection: str) -> JSON:
        """Return the last response or a projection of it; raises HostError when the last attempt failed."""
        data, error = self._state
        if error:
            raise HostError(error)
        if data.get(projection) is None:
            raise HostError("no data available")
        return data[projection]

    def is_cached(self, projection: str) -> bool:
        """Return True: projections are computed when a response arrives."""
        return True

    def wake(self) -> None:
        """Poll again at once after an error."""
        if self._state[1]:
            self._woken.set()

    async def stop(self) -> None:
        """Stop polling."""
        await _cancel(self._work)

    async def _run(self) -> None:
        interval = max(duration_seconds(parse_duration(self._call.refresh_interval)), _SHORTEST_INTERVAL)
        while True:
            pause = interval
            try:
                answer = await self._answer()
                self._state = await in_thread(self._apply_projections, answer), ""
            except PyvernoError as error:
                self._fail(error.message)
                pause = min(interval, _AGAIN_SECONDS)
            except Exception:
                # without an answer the last one would count for ever
                log.exception("a global context entry ran into a bug", extra={"fields": {"entry": self._name}})
                self._fail("an internal error occurred; see the log")
                pause = min(interval, _AGAIN_SECONDS)
            else:
                _tell(self._on_refresh)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._woken.wait()
            self._woken.clear()

    def _fail(self, reason: str) -> None:
        self._state = {}, reason
        log.warning(
            "a global context entry could not be read", extra={"fields": {"entry": self._name, "error": reason}}
        )
        _tell(self._on_state, reason)

    async def _answer(self) -> JSON:
        try:
            async with asyncio.timeout(self._bound):
                return await self._call_with_retries()
        except TimeoutError:
            raise HostError(f"no answer within {self._bound:g} seconds") from None

    async def _call_with_retries(self) -> JSON:
        """Call the API up to `retryLimit` times, with growing delays."""
        pause = _FIRST_PAUSE
        for left in range(max(self._call.retry_limit, 1) - 1, -1, -1):
            try:
                return await self._fetch(self._call)
            except PyvernoError:
                if not left:
                    raise
            await asyncio.sleep(pause * _CHANCE.uniform(1.0, 1.1))
            pause = min(pause * 5, _LONGEST_PAUSE)
        raise AssertionError("the last try returns or raises")

    def _apply_projections(self, answer: JSON) -> Mapping[str, JSON]:
        return {"": answer, **{name: evaluate(answer) for name, evaluate in self._projections.items()}}


def _tell(listener: Callable[_P, None], *arguments: _P.args, **named: _P.kwargs) -> None:
    """Report to a listener; a bug of it must not end what follows an entry, whose data would then never change."""
    try:
        listener(*arguments, **named)
    except Exception:
        log.exception("the state of a global context entry could not be reported")


async def _cancel(work: Sequence[asyncio.Task[None]]) -> None:
    for task in work:
        task.cancel()
    await asyncio.gather(*work, return_exceptions=True)
