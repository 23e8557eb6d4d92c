"""What rules may ask of the world, put together: the Host, calls of services, global context, cached ConfigMaps.

Every controller that judges has one. This module must never judge, and never write to the cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from pyverno.cluster.client import Client
from pyverno.cluster.egress import Egress, EgressSettings
from pyverno.cluster.host import ClusterHost
from pyverno.cluster.informer import STALE_SECONDS, Informer, Notice
from pyverno.controllers.runtime.events import Event
from pyverno.controllers.state.entrystatus import EntryStatus
from pyverno.controllers.state.globalcontext import ENTRY_VERSIONS, GlobalContext
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindTable
from pyverno.offline.system import System
from pyverno.value import dataclass, field

__all__ = ["HostFactory", "HostSettings"]

_CONFIG_MAPS: Final = GVR("", "v1", "configmaps")
_CACHED: Final = "cache.kyverno.io/enabled"


@dataclass(frozen=True, slots=True)
class HostSettings:
    """What the flags say; `max_entries` bounds the global context (0 = no limit).

    What is kept in memory is an error, or makes the replica not ready, once it is `stale_seconds` old.
    """

    egress: EgressSettings = field(default_factory=EgressSettings)
    allows_http_in_namespaces: bool = False
    max_entries: int = 0
    caches_config_maps: bool = True
    stale_seconds: float = STALE_SECONDS


class HostFactory:
    """Holds the parts; `take_entry` is fed by a watch of GlobalContextEntry objects, `status` reports on them."""

    def __init__(
        self,
        client: Client,
        settings: HostSettings,
        kinds: Callable[[], KindTable],
        *,
        emit: Callable[[Event], None] = lambda _event: None,
    ) -> None:
        """Take the client, the settings, the kinds, and a receiver of events."""
        self._client = client
        self._settings = settings
        self._kinds = kinds
        self._egress = Egress(settings.egress)
        self._config_maps: Informer | None = None
        self.status = EntryStatus(client, self.entry_resource, emit)
        self.entries = GlobalContext(
            client,
            self._egress,
            max_entries=settings.max_entries,
            bound=settings.stale_seconds,
            on_refresh=self.status.note_refresh,
            on_state=self.status.note,
        )

    def take_entry(self, notice: Notice, body: JSONObject) -> None:
        """Take a GlobalContextEntry that was made, changed or deleted."""
        self.status.take(notice, body)
        self.entries.take(notice, body)

    def entry_resource(self) -> GVR | None:
        """Return the version of GlobalContextEntry that is to be watched; None when the cluster serves none."""
        return next((gvr for gvr in ENTRY_VERSIONS if self._kinds().by_resource(gvr) is not None), None)

    def config_maps(self) -> Informer | None:
        """Return the cache of ConfigMaps that somebody has to run; None when there is to be none."""
        if self._settings.caches_config_maps and self._config_maps is None:
            # Kyverno: the label alone counts, whatever its value
            self._config_maps = Informer(
                self._client, _CONFIG_MAPS, selector=_CACHED, bound=self._settings.stale_seconds
            )
        return self._config_maps

    def host(self) -> ClusterHost:
        """Return the world as rules see it; called on the event loop that owns the client."""
        return ClusterHost(
            self._client,
            asyncio.get_running_loop(),
            self._kinds,
            System(),
            egress=self._egress,
            allows_http_in_namespaces=self._settings.allows_http_in_namespaces,
            global_entries=self.entries,
            config_maps=self._config_maps,
        )

    async def close(self) -> None:
        """End what was started and close all connections to services."""
        await self.entries.close()
        await self._egress.close()
