"""The status of GlobalContextEntry objects: each replica reports by event and metric, the leader writes `status`.

Conditions are derived from the current state, not from transitions: a new leader writes the status of every entry, and
restores a status that another client changed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Final

from pyverno.cluster.client import Client
from pyverno.cluster.informer import Notice
from pyverno.controllers.runtime.events import Event
from pyverno.controllers.runtime.reconcile import Controller, LoopSettings
from pyverno.controllers.runtime.statuspatch import status_patch
from pyverno.controllers.runtime.workqueue import Backoff
from pyverno.engine.result import ResourceRef
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.value import dataclass, field

__all__ = ["EntryStatus"]

_SOURCE: Final = "globalcontext-controller"
_REPEAT_SECONDS: Final = 300.0
_SETTLE_SECONDS: Final = 0.2
_BACKOFF: Final = Backoff(first=1.0, longest=30.0)
_NOT_FOUND: Final = 404


@dataclass(slots=True)
class _State:
    """The state of one entry; `problem` is None while it is unknown."""

    problem: str | None = None
    refreshed: str = ""
    written: JSONObject = field(default_factory=dict)
    reported: tuple[str, float] = ("", 0.0)


class EntryStatus:
    """Keeps the state of every entry; `controller` writes the statuses and runs in the leader only."""

    def __init__(
        self, client: Client, resource: Callable[[], GVR | None], emit: Callable[[Event], None] = lambda _event: None
    ) -> None:
        """Take the client, the version of the kind that the cluster serves, and a function that emits events."""
        self._client = client
        self._resource = resource
        self._emit = emit
        self._states: dict[str, _State] = {}
        self.controller: Controller[str] = Controller(
            _SOURCE,
            self._reconcile,
            keys=lambda: self._states,
            settings=LoopSettings(settle_seconds=_SETTLE_SECONDS, backoff=_BACKOFF),
        )
        """Writes the status of every entry whenever it differs from the state."""

    def take(self, notice: Notice, body: JSONObject) -> None:
        """Handle the creation, change or deletion of an entry: its status may differ from the state."""
        name = body["metadata"]["name"]
        if notice is Notice.DELETED:
            self._states.pop(name, None)
            return
        self._states.setdefault(name, _State()).written = body.get("status") or {}
        self._mark(name)

    def note(self, entry: ResourceRef, uid: str, problem: str) -> None:
        """Record why an entry has no data ("" = it has data)."""
        state = self._states.setdefault(entry.name, _State())
        state.problem = problem
        self._mark(entry.name)
        now = time.monotonic()
        is_news = problem != state.reported[0] or now - state.reported[1] >= _REPEAT_SECONDS
        if is_news:
            state.reported = problem, now
            if problem:
                self._emit(Event("PolicyError", "Retrying", problem, entry, source=_SOURCE, uid=uid))

    def note_refresh(self, entry: ResourceRef, uid: str) -> None:
        """Record that the API of an entry answered just now."""
        self._states.setdefault(entry.name, _State()).refreshed = _now()
        self.note(entry, uid, "")

    def unavailable(self) -> Iterator[tuple[tuple[str, ...], float]]:
        """Yield every entry with 1 when rules get an error from it, 0 when they get data."""
        for name, state in tuple(self._states.items()):
            if state.problem is not None:
                yield (name,), float(bool(state.problem))

    async def _reconcile(self, name: str) -> None:
        try:
            await self._write(name)
        except StatusError as error:
            if error.status != _NOT_FOUND:  # the watch delivers the deletion
                raise

    def _mark(self, name: str) -> None:
        self.controller.add(name)

    async def _write(self, name: str) -> None:
        state, gvr = self._states.get(name), self._resource()
        if state is None or state.problem is None or gvr is None:
            return
        patch = status_patch(state.written, _desired_status(state))
        if patch is not None:
            answer = await self._client.patch(gvr, name, patch, subresource="status")
            state.written = answer.get("status") or {}


def _desired_status(state: _State) -> JSONObject:
    condition = {
        "type": "Ready",
        "status": "False" if state.problem else "True",
        "reason": "Failed" if state.problem else "Succeeded",
        "message": state.problem,
        "lastTransitionTime": _now(),
    }
    # the previous leader may have refreshed it later: the time of an entry never goes back
    refreshed = max(state.refreshed, str(state.written.get("lastRefreshTime") or "")) if state.refreshed else ""
    return {"conditions": [condition], **({"lastRefreshTime": refreshed} if refreshed else {})}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
