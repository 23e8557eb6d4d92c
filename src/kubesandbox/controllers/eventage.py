"""Events live for an hour."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubesandbox.controllers.clock import seconds_since
from kubesandbox.controllers.context import ControllerContext
from kubesandbox.controllers.loop import Keys
from kubesandbox.controllers.objects import at, uid_of
from kubesandbox.storage.store import Change, ChangeKind, Key
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError

__all__ = ["EventAge", "last_seen"]

LIFETIME = 3600


class EventAge:
    """Deletes events that have not been written for their lifetime."""

    def __init__(self, context: ControllerContext) -> None:
        """Take the tools."""
        self._context = context

    @property
    def watches(self) -> Mapping[str, Keys]:
        """Watches new events; the age of a known event is read again when its lifetime is over."""
        return {"events": _added}

    async def reconcile(self, key: Key) -> float | None:
        """Delete one event, or return when to look again."""
        client = self._context.client
        event = client.get("events", key.name, key.namespace)
        if event is None:
            return None
        left = LIFETIME - seconds_since(last_seen(event), self._context.clock.now())
        if left > 0:
            return left
        try:
            await client.delete("events", key.name, key.namespace, uid=uid_of(event))
        except StatusError as error:
            if error.reason != "NotFound":
                raise
        return None


def last_seen(event: JSONObject) -> str:
    """Return the timestamp of an event's last occurrence."""
    created = at(event, "metadata", "creationTimestamp", default="")
    times = (event.get("lastTimestamp"), at(event, "series", "lastObservedTime"), event.get("eventTime"), created)
    return max(str(time) for time in times if time) if any(times) else ""


def _added(change: Change) -> Iterable[Key]:
    return (change.state.key,) if change.kind is ChangeKind.ADDED else ()
