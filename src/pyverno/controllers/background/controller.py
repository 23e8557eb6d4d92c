"""The background controller: watches that feed it, and the work that one of its replicas does.

It puts the parts together and keeps them running. This module must never evaluate a policy.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from pyverno.cluster.access import Access
from pyverno.cluster.client import Client
from pyverno.cluster.leases import LeaderElection, LeaseTimes
from pyverno.controllers.applier import EffectApplier
from pyverno.controllers.background.context import BackgroundContext
from pyverno.controllers.background.handlers import HANDLERS, LEADER_CONTROLLERS, PARTS, SHARDED
from pyverno.controllers.background.policyconditions import PolicyConditions, Trouble
from pyverno.controllers.background.requests import UpdateRequests
from pyverno.controllers.background.resultreports import ResultReports
from pyverno.controllers.background.settings import BackgroundSettings
from pyverno.controllers.background.shards import Shards
from pyverno.controllers.runtime.events import Event, Events
from pyverno.controllers.runtime.leader import Leader, Together
from pyverno.controllers.runtime.metricslifecycle import begin_metrics, count_queries, refresh_metrics
from pyverno.controllers.runtime.tasks import Tasks
from pyverno.controllers.state.clusterstate import ClusterState
from pyverno.controllers.state.hosts import HostFactory
from pyverno.controllers.state.policystore import Identity
from pyverno.controllers.writeguard import QuarantinedError, WriteGuard, WriteKey
from pyverno.errors import UsageError
from pyverno.policy.updaterequest import UPDATE_REQUESTS
from pyverno.telemetry.catalog import METRICS
from pyverno.telemetry.metrics import Metrics

__all__ = ["BackgroundController", "BackgroundSettings"]

_LEASE: Final = "kyverno-background-controller"

log = logging.getLogger("pyverno.background")


class BackgroundController:
    """Runs until it is stopped, or until one of its parts ends by itself."""

    def __init__(self, access: Access, settings: BackgroundSettings, metrics: Metrics | None = None) -> None:
        """Take the access to the cluster, the settings, and the metrics to count in."""
        self._settings = settings
        self._has_begun = False
        self._metrics = metrics = metrics or Metrics()
        on_query = count_queries(metrics)
        self._client = Client(access, qps=settings.qps, burst=settings.burst, on_request=on_query)
        self._events_client = Client(access, qps=settings.events_qps, burst=settings.events_burst, on_request=on_query)
        self._parts = Tasks()
        self._hosts = HostFactory(self._client, settings.hosts, lambda: self._state.kinds, emit=self._notify)
        self._state = ClusterState(self._client, settings.state, self._hosts, self._parts.start, metrics)
        self._events = Events(
            self._events_client,
            settings.events,
            configuration=lambda: self._state.configuration,
            uid_of=self._state.store.uid_of,
            on_drop=metrics.dropped_event,
        )
        self._pool = ThreadPoolExecutor(max(settings.workers, 1), thread_name_prefix="background")
        guard = WriteGuard(settings.guard)
        self._reports = ResultReports(
            self._client,
            settings.reports,
            kinds=lambda: self._state.kinds,
            version_of=self._state.store.version_of,
            metrics=metrics,
        )
        context = BackgroundContext(
            client=self._client,
            settings=settings,
            state=self._state,
            host=self._hosts.host,
            applier=EffectApplier(
                self._client, lambda: self._state.kinds, guard=guard, on_quarantine=self._note_quarantine
            ),
            notify=self._notify,
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
            LeaderElection(
                self._client, _LEASE, settings.namespace, settings.identity, LeaseTimes.of_retry(settings.lease_retry)
            ),
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
        """Tell whether this replica works and has nothing left to do; what waits or is retried later is left."""
        return self._requests.is_idle and self._reports.is_idle and all(part.is_idle for part in self._working)

    def problem(self) -> str:
        """Return why the controller cannot work: caches that are missing or stale; the empty text when it can."""
        return self._state.problem() if self._has_begun else "the controller has not begun"

    async def run(self, stop: asyncio.Event) -> None:
        """Start, work until `stop` is set, end in order.

        Raises UsageError when the cluster lacks a definition, HostError when it cannot be reached at the start or when
        a part ends by itself.
        """
        settings = self._settings
        try:
            await begin_metrics(self._client, settings.metrics_config_map, settings.namespace, self._metrics)
            await self._state.start()
            if self._state.kinds.by_resource(UPDATE_REQUESTS) is None:
                raise UsageError(
                    "the cluster does not serve updaterequests.kyverno.io: "
                    "install the definitions with `pyverno install --dry-run | kubectl apply --server-side -f -`"
                )
            self._has_begun = True
            self._parts.start(self._requests.informer.run())
            self._parts.start(self._requests.wakeups.run())
            for follower in (each for part in self._working for each in part.followers()):
                self._parts.start(follower.run())
            leading = self._parts.start(self._leader.campaign())
            sharing = self._parts.start(self._shards.run())
            self._parts.start(self._state.follow_definitions())
            self._parts.start(self._events.run())
            self._parts.start(self._reports.run())
            if self._metrics.settings.refresh_seconds:
                self._parts.start(refresh_metrics(self._metrics, self._metrics.settings.refresh_seconds))
            await self._parts.wait(stop)
            for working in (leading, sharing):
                working.cancel()
            await asyncio.gather(leading, sharing, return_exceptions=True)
            await asyncio.gather(self._leader.release(), self._shards.release())
        finally:
            await self._parts.end()
            self._pool.shutdown(wait=False, cancel_futures=True)
            await self._hosts.close()
            await self._events_client.close()
            await self._client.close()
        self._parts.check()

    def _notify(self, event: Event) -> None:
        self._events.emit(event)

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
        self._notify(Event.of_error(key.policy, error.message, key.target))
