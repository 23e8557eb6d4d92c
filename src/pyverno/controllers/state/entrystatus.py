"""The state of GlobalContextEntry objects: each replica reports by event and metric, the leader writes `status`.

Conditions follow from state, never from the moment it changed: a replica that becomes the leader writes what it knows
of every entry, and writes again what somebody else changed. This module must never read the data of an entry.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Final

from pyverno.cluster.client import Client
from pyverno.cluster.informer import Notice
from pyverno.controllers.runtime.events import Event
from pyverno.controllers.runtime.statuspatch import status_patch
from pyverno.engine.result import ResourceRef
from pyverno.errors import HostError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.value import dataclass, field

__all__ = ["EntryStatus"]

_SOURCE: Final = "globalcontext-controller"
_REPEAT_SECONDS: Final = 300.0
_SETTLE_SECONDS: Final = 0.2
_RETRY_SECONDS: Final = 2.0
_NOT_FOUND: Final = 404

log = logging.getLogger("pyverno.globalcontext")


@dataclass(slots=True)
class _State:
    """What is known of one entry; `problem` is None while nobody can say."""

    problem: str | None = None
    refreshed: str = ""
    written: JSONObject = field(default_factory=dict)
    told: tuple[str, float] = ("", 0.0)


class EntryStatus:
    """Keeps the state of every entry; `lead` writes it while this replica leads."""

    def __init__(
        self, client: Client, resource: Callable[[], GVR | None], tell: Callable[[Event], None] = lambda _event: None
    ) -> None:
        """Take the client, the version of the kind that the cluster serves, and a receiver of events."""
        self._client = client
        self._resource = resource
        self._tell = tell
        self._states: dict[str, _State] = {}
        self._unwritten: set[str] = set()
        self._changed = asyncio.Event()

    def take(self, notice: Notice, body: JSONObject) -> None:
        """Take an entry that was made, changed or deleted: its status may differ from the state."""
        name = body["metadata"]["name"]
        if notice is Notice.DELETED:
            self._states.pop(name, None)
            self._unwritten.discard(name)
            return
        self._states.setdefault(name, _State()).written = body.get("status") or {}
        self._mark(name)

    def note(self, entry: ResourceRef, uid: str, problem: str) -> None:
        """Note why an entry has no data; the empty text: it has."""
        state = self._states.setdefault(entry.name, _State())
        state.problem = problem
        self._mark(entry.name)
        now = time.monotonic()
        is_news = problem != state.told[0] or now - state.told[1] >= _REPEAT_SECONDS
        if is_news:
            state.told = problem, now
            if problem:
                self._tell(Event("PolicyError", "Retrying", problem, entry, source=_SOURCE, uid=uid))

    def note_refresh(self, entry: ResourceRef, uid: str) -> None:
        """Note that the API of an entry has answered now."""
        self._states.setdefault(entry.name, _State()).refreshed = _now()
        self.note(entry, uid, "")

    def unavailable(self) -> Iterator[tuple[tuple[str, ...], float]]:
        """Yield every entry with 1 when rules get an error from it, 0 when they get data."""
        for name, state in tuple(self._states.items()):
            if state.problem is not None:
                yield (name,), float(bool(state.problem))

    async def lead(self) -> None:
        """Write the status of every entry, and again whenever it differs from the state, until cancelled."""
        self._unwritten.update(self._states)
        while True:
            if not self._unwritten:
                self._changed.clear()
                await self._changed.wait()
            await asyncio.sleep(_SETTLE_SECONDS)
            names, self._unwritten = self._unwritten, set()
            for name in sorted(names):
                try:
                    await self._write(name)
                except (HostError, StatusError) as error:
                    if isinstance(error, StatusError) and error.status == _NOT_FOUND:
                        continue  # the watch tells of its end
                    fields = {"entry": name, "error": error.message}
                    log.warning("the status of a global context entry could not be written", extra={"fields": fields})
                    self._unwritten.add(name)
            if self._unwritten & names:
                await asyncio.sleep(_RETRY_SECONDS)

    def _mark(self, name: str) -> None:
        self._unwritten.add(name)
        self._changed.set()

    async def _write(self, name: str) -> None:
        state, gvr = self._states.get(name), self._resource()
        if state is None or state.problem is None or gvr is None:
            return
        patch = status_patch(state.written, _wanted(state))
        if patch is not None:
            answer = await self._client.patch(gvr, name, patch, subresource="status")
            state.written = answer.get("status") or {}


def _wanted(state: _State) -> JSONObject:
    condition = {
        "type": "Ready",
        "status": "False" if state.problem else "True",
        "reason": "Failed" if state.problem else "Succeeded",
        "message": state.problem,
        "lastTransitionTime": _now(),
    }
    # the leader before may have refreshed it later: the time of an entry never goes back
    refreshed = max(state.refreshed, str(state.written.get("lastRefreshTime") or "")) if state.refreshed else ""
    return {"conditions": [condition], **({"lastRefreshTime": refreshed} if refreshed else {})}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
