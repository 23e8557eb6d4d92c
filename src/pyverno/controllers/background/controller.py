"""The background controller: watches that feed it, and the work that one of its replicas does.

It puts the parts together and keeps them running.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from pyverno.cluster.access import Access
from pyverno.controllers.applier import EffectApplier
from pyverno.controllers.background.context import BackgroundContext
from pyverno.controllers.background.handlers import HANDLERS, LEADER_CONTROLLERS, PARTS, SHARDED
from pyverno.controllers.background.policyconditions import PolicyConditions, Trouble
from pyverno.controllers.background.requests import UpdateRequests
from pyverno.controllers.background.resultreports import ResultReports
from pyverno.controllers.background.settings import BackgroundSettings
from pyverno.controllers.background.shards import Shards
from pyverno.controllers.rights.authors import AuthorRights
from pyverno.controllers.rights.reads import author_reads
from pyverno.controllers.runtime.events import Event
from pyverno.controllers.runtime.leader import Leader, Together
from pyverno.controllers.state.foundation import Foundation
from pyverno.controllers.state.policystore import Identity
from pyverno.controllers.writeguard import QuarantinedError, WriteGuard, WriteKey
from pyverno.errors import UsageError
from pyverno.policy.updaterequest import UPDATE_REQUESTS
from pyverno.report.seals import ReportSeals
from pyverno.telemetry.catalog import METRICS
from pyverno.telemetry.metrics import Metrics

__all__ = ["BackgroundController", "BackgroundSettings"]

_LEASE: Final = "kyverno-background-controller"

log = logging.getLogger("pyverno.background")


class BackgroundController:
    """Runs until it is stopped, or until one of its parts ends by itself."""

    def __init__(self, access: Access, settings: BackgroundSettings, metrics: Metrics | None = None) -> None:
        """Take the access to the cluster, the settings, and the metrics to count in."""
        self._has_begun = False
        self._foundation = foundation = Foundation(access, settings, metrics, reads=author_reads)
        self._client, self._state, metrics = foundation.client, foundation.state, foundation.metrics
        self._pool = ThreadPoolExecutor(max(settings.workers, 1), thread_name_prefix="background")
        guard = WriteGuard(settings.guard)
        self._reports = ResultReports(
            self._client,
            settings.reports,
            kinds=lambda: self._state.kinds,
            version_of=self._state.store.version_of,
            seals=ReportSeals(lambda: foundation.hosts.record_keys.keys),
            metrics=metrics,
        )
        context = BackgroundContext(
            client=self._client,
            settings=settings,
            state=self._state,
            host=foundation.hosts.host,
            applier=EffectApplier(
                self._client,
                lambda: self._state.kinds,
                guard=guard,
                rights=AuthorRights(self._client, lambda: self._state.kinds, settings.rights),
                on_quarantine=self._note_quarantine,
            ),
            notify=foundation.emit,
            metrics=metrics,
            reports=self._reports,
            pool=self._pool,
            has_room=self._has_room,
            note_trouble=self._note_trouble,
        )
        self._working = tuple(make(context) for make in PARTS)
        handlers = {kind: make(context) for kind, make in HANDLERS.items()}
        for part in self._working:
            handlers.update(part.handlers)
        instruments = metrics.instruments
        failures = instruments.counter(METRICS["kyverno_updaterequest_failures"])
        self._requests = requests = UpdateRequests(
            self._client,
            settings,
            handlers,
            sharded=SHARDED,
            versions=self._versions,
            on_failure=lambda kind: failures.add((kind,)),
            metrics=metrics,
        )
        self._state.listen(requests.wake_changed)
        self._conditions = PolicyConditions(
            self._client,
            self._state,
            requests.informer,
            early_seconds=settings.condition_seconds,
            metrics=metrics,
        )
        instruments.gauge(METRICS["kyverno_updaterequest_total"], lambda: (((settings.namespace,), len(requests)),))
        instruments.gauge(METRICS["kyverno_updaterequest_oldest_seconds"], lambda: (((), requests.oldest_seconds),))
        instruments.gauge(METRICS["kyverno_quarantines"], lambda: (((), guard.quarantined),))
        self._shards = Shards(
            self._client,
            [
                Together((each, *(one for part in self._working for one in part.sharded(number))))
                for number, each in enumerate(requests.shards)
            ],
            name=_LEASE,
            namespace=settings.namespace,
            identity=settings.identity,
            retry_seconds=settings.lease_retry,
        )
        self._leader = Leader(
            foundation.election(_LEASE),
            (
                requests.leading,
                self._conditions.controller,
                *(each for part in self._working for each in part.controllers()),
                *(make(context) for make in LEADER_CONTROLLERS),
            ),
            retry_seconds=settings.lease_retry,
        )

    @property
    def is_idle(self) -> bool:
        """Return whether this replica works and has nothing left to do; what waits or is retried later is left."""
        return self._requests.is_idle and self._reports.is_idle and all(part.is_idle for part in self._working)

    def problem(self) -> str:
        """Return why the controller cannot work: caches that are missing or stale; the empty text when it can."""
        return self._state.problem() if self._has_begun else "the controller has not begun"

    async def run(self, stop: asyncio.Event) -> None:
        """Start, work until `stop` is set, end in order.

        Raises UsageError when the cluster lacks a definition, HostError when it cannot be reached at the start or when
        a part ends by itself.
        """
        foundation = self._foundation
        start = foundation.parts.start
        try:
            await foundation.begin()
            if self._state.kinds.by_resource(UPDATE_REQUESTS) is None:
                raise UsageError(
                    "the cluster does not serve updaterequests.kyverno.io: "
                    "install the definitions with `pyverno install --dry-run | kubectl apply --server-side -f -`"
                )
            await foundation.hosts.record_keys.look()
            start(foundation.hosts.record_keys.follow())
            self._has_begun = True
            start(self._requests.informer.run())
            start(self._requests.wakeups.run())
            for follower in (each for part in self._working for each in part.followers()):
                start(follower.run())
            leading = start(self._leader.campaign())
            sharing = start(self._shards.run())
            start(self._reports.run())
            foundation.follow()
            await foundation.parts.wait(stop)
            for working in (leading, sharing):
                working.cancel()
            await asyncio.gather(leading, sharing, return_exceptions=True)
            await asyncio.gather(self._leader.release(), self._shards.release())
        finally:
            await foundation.end()
            self._pool.shutdown(wait=False, cancel_futures=True)
        foundation.parts.check()

    async def _has_room(self) -> None:
        await self._requests.has_room(self._state.configuration.update_request_threshold)

    def _note_trouble(self, policy: Identity, key: Hashable, message: str) -> None:
        self._conditions.note(policy, key, Trouble(time.time(), message) if message else None)

    def _versions(self) -> Mapping[str, object]:
        """Return what failing requests depend on: the kinds that are served, and their policies."""
        found: dict[str, object] = {"": self._state.kinds}
        for (_, namespace, name), compiled in self._state.store.compiled().items():
            key = f"{namespace}/{name}" if namespace else name
            found[key] = (found.get(key), compiled.document.value["metadata"].get("resourceVersion"))
        return found

    def _note_quarantine(self, error: QuarantinedError, key: WriteKey) -> None:
        fields = {"policy": str(key.policy), "rule": key.rule, "target": str(key.target)}
        log.error("a rule is stopped, because policies or controllers loop", extra={"fields": fields})
        self._foundation.emit(Event.of_error(key.policy, error.message, key.target))
