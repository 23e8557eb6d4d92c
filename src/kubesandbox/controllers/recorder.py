"""Events that controllers record for people; a repeated event raises a count.

Recording never waits for a write and never fails.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from datetime import datetime

from kubesandbox.controllers.clock import Clock, stamp
from kubesandbox.controllers.objects import at, name_of, namespace_of, uid_of
from kubesandbox.local import LocalClient
from pyverno.errors import PyvernoError
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.value import dataclass, replace

__all__ = ["Recorder", "event_for"]

KNOWN = 4096
"""The number of events that are remembered for counting, as upstream."""
SIMILAR = 10
SIMILAR_SECONDS = 600
"""The number of texts of one kind within a time that are combined into one event."""
NORMAL = "Normal"
WARNING = "Warning"

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Notice:
    """One event: the object and the part of it, type, reason and note."""

    about: JSONObject
    kind: str
    reason: str
    message: str
    field: str = ""

    @property
    def sort(self) -> tuple[str, ...]:
        return (uid_of(self.about), name_of(self.about), namespace_of(self.about), self.kind, self.reason, self.field)

    @property
    def identity(self) -> tuple[str, ...]:
        return (*self.sort, self.message)


def event_for(
    about: JSONObject, kind: str, reason: str, message: str, *, component: str, now: str, suffix: str
) -> JSONObject:
    """Return the Event for an object; Events of cluster-scoped objects go into the namespace `default`.

    >>> pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "n", "uid": "u"}}
    >>> event = event_for(pod, "Normal", "Pulled", "done", component="kubelet", now="2030-01-01T00:00:00Z", suffix="1f")
    >>> event["metadata"], event["count"], event["source"]
    ({'name': 'a.1f', 'namespace': 'n'}, 1, {'component': 'kubelet'})
    """
    involved: JSONObject = {"kind": about["kind"], "namespace": namespace_of(about), "name": name_of(about)}
    involved |= {"uid": uid_of(about), "apiVersion": about["apiVersion"]}
    version = at(about, "metadata", "resourceVersion")
    if version:
        involved["resourceVersion"] = version
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name_of(about)}.{suffix}", "namespace": namespace_of(about) or "default"},
        "involvedObject": {key: value for key, value in involved.items() if value},
        "reason": reason,
        "message": message,
        "source": {"component": component},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
        "type": kind,
        "reportingComponent": component,
        "reportingInstance": "",
    }


class Recorder:
    """Writes events of one component, in order, in the background; no task runs without waiting events."""

    def __init__(self, client: LocalClient, clock: Clock, component: str, *, host: str = "") -> None:
        """Take the writer, and the component and host it writes for."""
        self._client = client
        self._clock = clock
        self._component = component
        self._host = host
        self._waiting: deque[_Notice] = deque()
        self._known: OrderedDict[tuple[str, ...], tuple[str, int]] = OrderedDict()
        self._texts: OrderedDict[tuple[str, ...], tuple[datetime, set[str]]] = OrderedDict()
        self._task: asyncio.Task[None] | None = None
        self._last = 0

    def normal(self, about: JSONObject, reason: str, message: str, *, field: str = "") -> None:
        """Record a normal event; `field` is the path of the part of the object that it concerns."""
        self._enqueue(_Notice(about, NORMAL, reason, message, field))

    def warning(self, about: JSONObject, reason: str, message: str, *, field: str = "") -> None:
        """Record a warning event."""
        self._enqueue(_Notice(about, WARNING, reason, message, field))

    @property
    def is_idle(self) -> bool:
        """Return whether everything is written."""
        return self._task is None

    async def stop(self) -> None:
        """Stop writing; drop pending events."""
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _enqueue(self, notice: _Notice) -> None:
        self._waiting.append(notice)
        if self._task is None:
            self._task = asyncio.create_task(self._write_all(), name=f"events of {self._component}")

    async def _write_all(self) -> None:
        try:
            while self._waiting:
                notice = self._waiting.popleft()
                try:
                    await self._write(notice)
                except PyvernoError as error:
                    # a namespace over its quota or in deletion refuses events, which are dropped
                    _LOG.debug("event dropped: %s", error, extra={"component": self._component})
                except Exception:  # the events after it are written
                    _LOG.exception("an event could not be written", extra={"component": self._component})
        finally:
            self._task = None

    async def _write(self, notice: _Notice) -> None:
        identity = notice.identity
        if self._is_one_of_many(notice):
            identity, notice = notice.sort, replace(notice, message=f"(combined from similar events): {notice.message}")
        known = self._known.pop(identity, None)
        namespace = namespace_of(notice.about) or "default"
        if known is not None and self._client.get("events", known[0], namespace) is not None:
            name, count = known[0], known[1] + 1
            change = {"count": count, "lastTimestamp": stamp(self._clock.now()), "message": notice.message}
            await self._client.patch("events", name, namespace, change)
        else:
            name, count = await self._create(notice), 1
        self._known[identity] = (name, count)
        if len(self._known) > KNOWN:
            self._known.popitem(last=False)

    def _is_one_of_many(self, notice: _Notice) -> bool:
        """Return whether many different texts of one sort have come: retries may name something new each time."""
        now = self._clock.now()
        last, texts = self._texts.pop(notice.sort, (now, set()))
        if (now - last).total_seconds() > SIMILAR_SECONDS:
            texts = set()
        if len(texts) <= SIMILAR:
            texts.add(notice.message)
        self._texts[notice.sort] = (now, texts)
        if len(self._texts) > KNOWN:
            self._texts.popitem(last=False)
        return len(texts) > SIMILAR

    async def _create(self, notice: _Notice) -> str:
        event = event_for(
            notice.about,
            notice.kind,
            notice.reason,
            notice.message,
            component=self._component,
            now=stamp(self._clock.now()),
            suffix=self._suffix(),
        )
        if notice.field:
            event["involvedObject"]["fieldPath"] = notice.field
        if self._host:
            event["source"]["host"] = self._host
        while True:
            try:
                await self._client.create("events", event)
            except StatusError as error:
                if error.reason != "AlreadyExists":
                    raise
                # another component records something of the same object in the same instant
                name = f"{name_of(notice.about)}.{self._suffix()}"
                event = {**event, "metadata": {**event["metadata"], "name": name}}
            else:
                return name_of(event)

    def _suffix(self) -> str:
        # upstream takes the time in nanoseconds as well; two in the same instant must differ
        self._last = max(self._last + 1, int(self._clock.now().timestamp() * 1e9))
        return f"{self._last:x}"
