"""Keeps the webhook configurations in the cluster: after every change of policies or settings, and when one is altered.

What was written last is restored without being computed again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from typing import Final

from pyverno.cluster.client import Client
from pyverno.compiler.compile import Compiled
from pyverno.controllers.runtime.reconcile import Again, Controller, LoopMetrics, LoopSettings, Watch
from pyverno.controllers.runtime.workqueue import Backoff
from pyverno.controllers.state.clusterstate import ClusterState
from pyverno.controllers.state.policystore import Identity
from pyverno.controllers.webhooks.fixed import cleanup_configurations, document_configurations
from pyverno.controllers.webhooks.registration import WebhookRegistration
from pyverno.controllers.webhooks.sources import Endpoint, PolicyKey, Settings, Sources
from pyverno.controllers.webhooks.writer import ConfigurationWriter
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindTable
from pyverno.kube.status import StatusError
from pyverno.value import dataclass

__all__ = ["PlacedPolicies", "WebhookReconciler"]

_SETTLE_SECONDS: Final = 0.1
_LATER_SECONDS: Final = 1.0
_BACKOFF: Final = Backoff(first=1.0, longest=10.0)

log = logging.getLogger("pyverno.admission")


class _Key(StrEnum):
    """The keys of the work queue: write the configurations, or restore them."""

    CONFIGURE = "configure"
    RESTORE = "restore"


@dataclass(frozen=True, slots=True)
class PlacedPolicies:
    """The policies whose webhooks are in place, as they were when these were computed.

    `used` leaves out exceptions without effect; `refused` holds the API server's reasons against single policies.
    """

    compiled: Mapping[Identity, Compiled]
    used: tuple[Compiled, ...]
    kinds: KindTable
    refused: Mapping[PolicyKey, str]


class WebhookReconciler:
    """Writes the configurations while its `controller` runs; `placed` is what the last reconcile put in place."""

    def __init__(
        self,
        client: Client,
        state: ClusterState,
        endpoint: Callable[[], Endpoint],
        settings: Settings,
        *,
        hindrance: Callable[[], Awaitable[str]],
        resync_seconds: float = 0.0,
        metrics: LoopMetrics | None = None,
    ) -> None:
        """Take what is known of the cluster, where the API server calls, and the settings of webhooks.

        `hindrance` returns why configurations must not be written now, or the empty text.
        """
        self._state = state
        self._endpoint = endpoint
        self._settings = settings
        self._hindrance = hindrance
        self._lock = asyncio.Lock()
        self._written: tuple[tuple[JSONObject, bool], ...] = ()
        self._listeners: list[Callable[[], None]] = []
        self.placed: PlacedPolicies | None = None
        self.writer = ConfigurationWriter(client)
        self._registration = WebhookRegistration(self.writer)
        self.controller: Controller[_Key] = Controller(
            "webhook-controller",
            self._reconcile,
            keys=lambda: (_Key.CONFIGURE,),
            watches=tuple(Watch(make, lambda _notice, _body: (_Key.RESTORE,)) for make in self.writer.informers()),
            prepare=self._catch_up,
            settings=LoopSettings(settle_seconds=_SETTLE_SECONDS, resync_seconds=resync_seconds, backoff=_BACKOFF),
            metrics=metrics,
        )
        state.listen(lambda: self.controller.add(_Key.CONFIGURE))

    def listen(self, listener: Callable[[], None]) -> None:
        """Call the listener whenever `placed` has changed."""
        self._listeners.append(listener)

    def begin(self) -> None:
        """Forget an earlier term: what it wrote is not to be restored over what others wrote since."""
        self.placed = None
        self._written = ()

    def restore(self) -> None:
        """Write the configurations again soon: another client may have changed or deleted them."""
        self.controller.add(_Key.RESTORE)

    async def configure(self) -> Mapping[PolicyKey, str]:
        """Make the configurations what policies, settings and certificates ask for; return the refused policies.

        Raises StatusError and HostError.
        """
        endpoint, general = self._endpoint(), self._state.configuration
        sources = Sources(
            legacy=self._state.store.legacy(),
            cel=self._state.store.cel(),
            kinds=self._state.kinds,
            configuration=general,
            endpoint=endpoint,
            settings=self._settings,
        )
        problems: list[StatusError] = []
        async with self._lock:
            await self.writer.find_owner()
            fixed = (
                *document_configurations(endpoint, general, self._settings.timeout),
                *cleanup_configurations(endpoint, general),
            )
            for wanted in fixed:
                try:
                    await self.writer.apply(wanted)
                except StatusError as error:  # one that is refused must not stop the others
                    problems.append(error.copied())
            refused = await self._registration.register(sources)
            is_fixed = not self._settings.updates
            self._written = (
                *((wanted, False) for wanted in fixed),
                *((wanted, is_fixed) for wanted in self._registration.in_place.values()),
            )
        if problems:
            raise problems[0].copied()
        return refused

    async def publish(self) -> None:
        """Have the configurations that are there trust the current authority, whatever policies ask for.

        Needs no policy, and nothing hinders it: calls fail until the API server trusts what the replicas serve. Raises
        StatusError and HostError.
        """
        endpoint = self._endpoint()
        async with self._lock:
            self._written = tuple((endpoint.trusted_by(wanted), is_fixed) for wanted, is_fixed in self._written)
            await self.writer.trust(endpoint)

    async def published(self) -> list[bytes]:
        """Return the bundles that the API server trusts when it calls this server. Raises StatusError and HostError."""
        try:
            return await self.writer.bundles(self._endpoint())
        except StatusError as error:
            if error.status != 403:
                raise
            return []  # what may not be read can be neither compared nor changed

    async def _catch_up(self) -> None:
        """Know everything that is in the cluster: a late watch would take away the webhook of an unknown policy."""
        await self._state.wait_for_sync()
        await self._state.catch_up()

    async def _reconcile(self, key: _Key) -> Again | None:
        if key is _Key.RESTORE:
            async with self._lock:
                await self.writer.find_owner()
                for wanted, is_fixed in self._written:
                    await self.writer.apply(wanted, is_fixed=is_fixed)
            return None
        await self._state.wait_for_sync()
        problem = await self._hindrance()
        if problem:
            log.info("webhooks and status stay as they are for now", extra={"fields": {"reason": problem}})
            return Again(_LATER_SECONDS, is_pending=True)
        store = self._state.store
        compiled, used, kinds = dict(store.compiled()), store.in_use(), self._state.kinds
        refused = await self.configure()
        self.placed = PlacedPolicies(compiled, used, kinds, refused)
        for listener in self._listeners:
            listener()
        return None
