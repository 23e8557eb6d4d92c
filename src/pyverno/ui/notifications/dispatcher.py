"""Sends queued notices: one task for each target, with its rate, its digest window, and a pause after failures."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from pyverno.errors import HostError, PyvernoError
from pyverno.threads import in_thread
from pyverno.ui.notifications.counts import NotificationCounts
from pyverno.ui.notifications.delivery import Delivery, DeliveryError, Target
from pyverno.ui.notifications.namespaces import NamespaceLabels
from pyverno.ui.notifications.options import Secrets
from pyverno.ui.notifications.outbox import Outbox
from pyverno.ui.notifications.settings import Keepalive, TargetSettings
from pyverno.ui.notifications.targets.catalog import KINDS
from pyverno.ui.notifications.targets.opening import open_target
from pyverno.ui.notifications.targets.webhook import Webhook
from pyverno.ui.notifications.transport import Transport
from pyverno.ui.store.writer import Change
from pyverno.value import replace

__all__ = ["Dispatcher", "backoff"]

_T = TypeVar("_T")
_LOG: Final = logging.getLogger("pyverno.ui.notifications")
_FIRST_PAUSE: Final = 5
_LONGEST_PAUSE: Final = 600
_LONGEST_TARGET_PAUSE: Final = 60
_GIVE_UP_SECONDS: Final = 86_400
_BUG: Final = "internal error: see the log of the server"
_IDLE_SECONDS: Final = 30.0


class Dispatcher:
    """Empties the queue; belongs to one event loop."""

    def __init__(
        self,
        targets: Sequence[TargetSettings],
        outbox: Outbox,
        *,
        transport: Transport,
        secrets: Secrets,
        namespaces: NamespaceLabels,
        counts: NotificationCounts,
        now: Callable[[], float] = time.time,
        first_pause: float = _FIRST_PAUSE,
    ) -> None:
        """Take the targets and their dependencies; `now` returns seconds since 1970."""
        self._targets = targets
        self._outbox = outbox
        self._transport = transport
        self._secrets = secrets
        self._namespaces = namespaces
        self._counts = counts
        self._now = now
        self._first_pause = first_pause
        self._woken = {target.name: asyncio.Event() for target in targets}
        self._open: dict[str, Target] = {}
        self._turn = asyncio.Lock()

    async def run(self) -> None:
        """Send until cancelled."""
        await self._ask(lambda: self._outbox.forget_others({target.name for target in self._targets}))
        await self._ask(lambda: self._outbox.resume(int(self._now())))
        async with asyncio.TaskGroup() as tasks:
            for target in self._targets:
                tasks.create_task(self._serve(target))
                if target.keepalive is not None:
                    tasks.create_task(self._keep_alive(target, target.keepalive))

    async def wake(self, _: Sequence[Change]) -> None:
        """Look at the queue: results changed."""
        for event in self._woken.values():
            event.set()

    async def queued(self) -> dict[str, int]:
        """Return how many notices wait, by target."""
        return await self._ask(lambda: dict(self._outbox.queued()))

    async def _keep_alive(self, target: TargetSettings, keepalive: Keepalive) -> None:
        """Send the keepalive messages of a webhook until cancelled; a failure is shown until one succeeds."""
        while True:
            try:
                opened = await self._open_target(target)
                if isinstance(opened, Webhook):
                    await opened.keep_alive(keepalive.params)
            except PyvernoError as error:
                self._open.pop(target.name, None)
                self._counts.problems[target.name] = error.message
                _LOG.warning("keepalive failed", extra={"fields": {"target": target.name, "error": error.message}})
            except Exception as error:
                # a bug in one target must not stop the others
                self._open.pop(target.name, None)
                self._counts.problems[target.name] = _BUG
                _LOG.exception(
                    "keepalive failed", extra={"fields": {"target": target.name, "error": type(error).__name__}}
                )
            await asyncio.sleep(keepalive.seconds)

    async def _serve(self, target: TargetSettings) -> None:
        while True:
            try:
                pause = await self._deliver(target)
                if pause is None:
                    await self._wait(target.name)
                    continue
            except self._outbox.failures as error:
                # the writer holds the file, or the database is gone: the queue stays as it is
                _LOG.error("the queue cannot be used", extra={"fields": {"target": target.name, "error": str(error)}})
                pause = self._first_pause
            except Exception as error:
                # what the queue holds for one target must not stop the others, nor the server
                self._counts.problems[target.name] = _BUG
                _LOG.exception(
                    "the queue failed", extra={"fields": {"target": target.name, "error": type(error).__name__}}
                )
                pause = self._first_pause
            await asyncio.sleep(pause)

    async def _wait(self, name: str) -> None:
        """Wait for changes, or for the next delivery that is due."""
        due = await self._ask(lambda: self._outbox.next_due(name))
        pause = _IDLE_SECONDS if due is None else min(max(due - self._now(), 0.05), _IDLE_SECONDS)
        event = self._woken[name]
        try:
            async with asyncio.timeout(pause):
                await event.wait()
        except TimeoutError:
            pass
        event.clear()

    async def _deliver(self, target: TargetSettings) -> float | None:
        """Send the delivery that is due first; return the seconds until the next one, None while none is due."""
        kind = KINDS[target.kind]
        most = kind.digest_most if target.digest else kind.most
        delivery = await self._ask(lambda: self._outbox.take(target, most, int(self._now())))
        if delivery is None:
            return None
        try:
            chosen = await self._choose(target, delivery)
            if chosen.notices:
                await (await self._open_target(target)).send(chosen)
        except PyvernoError as error:
            return await self._fail(target, delivery, error)
        except Exception:
            # a bug in one target must not stop the others
            _LOG.exception("delivery failed", extra={"fields": {"target": target.name}})
            wrong = DeliveryError(_BUG, is_final=True)
            return await self._fail(target, delivery, wrong)
        await self._ask(lambda: self._outbox.remove(target.name, delivery.id))
        self._counts.sent[target.name] += len(chosen.notices)
        self._counts.problems.pop(target.name, None)
        return 60.0 / target.per_minute if chosen.notices else 0.0

    async def _choose(self, target: TargetSettings, delivery: Delivery) -> Delivery:
        """Leave out notices of namespaces that the target does not select; raises HostError without their labels."""
        test = target.filter.namespace_labels
        if test is None:
            return delivery
        kept = [
            each
            for each in delivery.notices
            if not each.namespace or test(await self._namespaces.labels(each.cluster, each.namespace))
        ]
        return replace(delivery, notices=kept)

    async def _open_target(self, target: TargetSettings) -> Target:
        found = self._open.get(target.name)
        if found is None:
            options = await self._secrets.options(target)
            found = self._open[target.name] = await open_target(target.kind, self._transport, options)
        return found

    async def _fail(self, target: TargetSettings, delivery: Delivery, error: PyvernoError) -> float:
        """Repeat a delivery later, or give it up; secrets are read again before the next one."""
        self._open.pop(target.name, None)
        self._counts.failed[target.name] += 1
        self._counts.problems[target.name] = error.message
        now = self._now()
        wait = error.wait if isinstance(error, DeliveryError) else 0.0
        is_final = isinstance(error, DeliveryError) and error.is_final
        is_old = now - delivery.at > _GIVE_UP_SECONDS
        fields = {"target": target.name, "attempt": delivery.attempt, "error": error.message}
        if is_final or is_old:
            _LOG.error("notices are dropped", extra={"fields": {**fields, "notices": len(delivery.notices)}})
            self._counts.drop(target.name, len(delivery.notices))
            await self._ask(lambda: self._outbox.remove(target.name, delivery.id))
            return 60.0 / target.per_minute
        pause: float = max(backoff(delivery.attempt, self._first_pause), wait)
        level = logging.WARNING if isinstance(error, HostError) else logging.ERROR
        _LOG.log(level, "delivery failed and will be repeated", extra={"fields": fields})
        await self._ask(lambda: self._outbox.postpone(target.name, delivery.id, int(now + pause)))
        return wait or min(pause, _LONGEST_TARGET_PAUSE)

    async def _ask(self, work: Callable[[], _T]) -> _T:
        async with self._turn:
            return await in_thread(work)


def backoff(attempt: int, first: float = _FIRST_PAUSE) -> float:
    """Return the pause before the next attempt, in seconds.

    >>> [backoff(each) for each in (1, 2, 3, 20)]
    [5, 10, 20, 600]
    """
    return min(first * (1 << min(attempt - 1, 30)), _LONGEST_PAUSE)
