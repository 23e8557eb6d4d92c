"""The loop of one controller: a queue of keys; one task at a time reconciles a key, and failures are retried.

A key that comes while it waits is there once; one that comes while it is worked on is worked on again. Nothing runs
while the queue is empty. A reconciliation that raises is logged and tried again, later each time; the loop never dies.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial
from http import HTTPStatus
from typing import Protocol, TypeAlias

from kubesandbox.controllers.clock import Clock, Timer
from kubesandbox.storage.store import Change, Key
from pyverno.kube.status import StatusError

__all__ = ["EVERYTHING", "Controller", "Keys", "Loop", "backoff", "itself"]

EVERYTHING = "*"
"""Stands for all resources, custom ones included, except events."""

Keys: TypeAlias = Callable[[Change], Iterable[Key]]
"""Returns the keys that a change concerns."""

FIRST_DELAY = 0.005
LONGEST_DELAY = 60.0
AT_ONCE = 4
REST = 0.005
"""Seconds between two runs for one key, so that one run handles changes that come together."""

_LOG = logging.getLogger(__name__)
_EXPECTED = frozenset({"Conflict", "NotFound", "AlreadyExists"})


class Controller(Protocol):
    """One job of a cluster: it receives keys and brings their objects up to date."""

    @property
    def watches(self) -> Mapping[str, Keys]:
        """For each resource, the keys that a change concerns."""

    async def reconcile(self, key: Key) -> float | None:
        """Reconcile one key; return the seconds until the next run, if there must be one."""


def itself(change: Change) -> Iterable[Key]:
    """Return the key of the changed object."""
    return (change.state.key,)


def backoff(failures: int) -> float:
    """Return the seconds to wait after so many failures in a row.

    >>> backoff(1), backoff(2), backoff(100)
    (0.005, 0.01, 60.0)
    """
    return min(FIRST_DELAY * float(2 ** min(failures - 1, 30)), LONGEST_DELAY)


class Loop:
    """The queue of one controller and the tasks that empty it."""

    def __init__(self, name: str, controller: Controller, clock: Clock, *, at_once: int = AT_ONCE) -> None:
        """Take the function to call; `at_once` is the number of keys that are reconciled at the same time."""
        self.name = name
        self.controller = controller
        self._clock = clock
        self._at_once = at_once
        self._waiting: dict[Key, None] = {}
        self._running: dict[Key, asyncio.Task[None]] = {}
        self._again: set[Key] = set()
        self._resting: dict[Key, asyncio.TimerHandle] = {}
        self._failures: dict[Key, int] = {}
        self._timers: dict[Key, tuple[datetime, Timer]] = {}
        self._stopped = False

    @property
    def is_idle(self) -> bool:
        """Return whether no key waits or runs; scheduled keys do not count."""
        return not self._waiting and not self._running and not self._resting

    def add(self, key: Key) -> None:
        """Queue a key."""
        if self._stopped:
            return
        if key in self._running:
            self._again.add(key)
            return
        if key in self._resting:
            return
        self._waiting[key] = None
        self._dispatch()

    def add_later(self, key: Key, seconds: float) -> None:
        """Queue a key after a delay, or at an earlier time that is already scheduled."""
        if self._stopped:
            return
        due = self._clock.now() + timedelta(seconds=seconds)
        known = self._timers.get(key)
        if known is not None:
            if known[0] <= due:
                return
            known[1].cancel()
        self._timers[key] = (due, self._clock.later(seconds, partial(self._due, key)))

    async def stop(self) -> None:
        """Cancel running keys and clear the queue."""
        self._stopped = True
        for _, timer in self._timers.values():
            timer.cancel()
        for rest in self._resting.values():
            rest.cancel()
        self._timers.clear()
        self._resting.clear()
        self._waiting.clear()
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _due(self, key: Key) -> None:
        self._timers.pop(key, None)
        self.add(key)

    def _dispatch(self) -> None:
        while self._waiting and len(self._running) < self._at_once and not self._stopped:
            key = next(iter(self._waiting))
            del self._waiting[key]
            self._running[key] = asyncio.create_task(self._work(key), name=f"{self.name} {'/'.join(key)}")

    async def _work(self, key: Key) -> None:
        try:
            delay = await self.controller.reconcile(key)
        except Exception as error:  # a controller survives every error of one object
            delay = self._failed(key, error)
        else:
            self._failures.pop(key, None)
        finally:
            del self._running[key]
        if delay is not None:
            self.add_later(key, delay)
        if key in self._again and not self._stopped:
            self._again.discard(key)
            self._resting[key] = asyncio.get_running_loop().call_later(REST, self._end_rest, key)
        self._dispatch()

    def _end_rest(self, key: Key) -> None:
        del self._resting[key]
        self.add(key)

    def _failed(self, key: Key, error: Exception) -> float:
        count = self._failures[key] = self._failures.get(key, 0) + 1
        fields = {"controller": self.name, "resource": key.resource, "namespace": key.namespace, "object": key.name}
        if isinstance(error, StatusError):
            _LOG.log(_level(error), "reconcile refused: %s", error, extra=fields)
        else:
            _LOG.error("reconcile failed: %s %s", self.name, "/".join(key), exc_info=error, extra=fields)
        return backoff(count)


def _level(error: StatusError) -> int:
    """Return the log level of an error: debug for lost races, info for refusals, warning for server failures."""
    if error.reason in _EXPECTED:
        return logging.DEBUG
    return logging.INFO if error.status < HTTPStatus.INTERNAL_SERVER_ERROR else logging.WARNING
