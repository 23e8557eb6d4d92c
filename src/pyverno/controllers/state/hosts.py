"""Construction of the hosts that rules use: API access, service calls, global context, cached ConfigMaps.

Every controller that evaluates rules has one factory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import aiohttp

from pyverno.cluster.client import Client
from pyverno.cluster.egress import Egress, EgressSettings
from pyverno.cluster.host import ClusterHost, ReadRights
from pyverno.cluster.informer import STALE_SECONDS, Informer, Notice
from pyverno.controllers.runtime.events import Event
from pyverno.controllers.state.entrystatus import EntryStatus
from pyverno.controllers.state.globalcontext import ENTRY_VERSIONS, GlobalContext
from pyverno.controllers.state.recordkeys import StoredRecordKeys
from pyverno.controllers.state.registries import ClusterRegistries, RegistryFlags
from pyverno.controllers.state.trustroot import FollowedRoot
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
    """Settings of the flags; `max_entries` bounds the global context (0 = no limit).

    A cache older than `stale_seconds` is an error or makes the replica not ready. `registry_connector` replaces the
    guarded connections to registries, for a sandbox whose registry is on this machine.
    """

    egress: EgressSettings = field(default_factory=EgressSettings)
    registries: RegistryFlags = field(default_factory=RegistryFlags)
    allows_http_in_namespaces: bool = False
    max_entries: int = 0
    caches_config_maps: bool = True
    stale_seconds: float = STALE_SECONDS
    registry_connector: Callable[[], aiohttp.BaseConnector] | None = None


class HostFactory:
    """Creates hosts and owns what they share; a watch of GlobalContextEntry objects calls `take_entry`."""

    def __init__(
        self,
        client: Client,
        settings: HostSettings,
        kinds: Callable[[], KindTable],
        *,
        emit: Callable[[Event], None] = lambda _event: None,
        system: System | None = None,
        namespace: str = "",
        read_rights: ReadRights | None = None,
    ) -> None:
        """Take the client, the settings, the served kinds, a receiver of events, and the clock of rules.

        `namespace` is that of the installation, if another one than that of its registries. `read_rights` decides what
        namespaced policies read; without it they have no authors.
        """
        self._system = system or System()
        self._client = client
        self._settings = settings
        self._kinds = kinds
        self._read_rights = read_rights
        self._egress = Egress(settings.egress)
        self._registries = ClusterRegistries(
            client, settings.registries, settings.registry_connector or self._egress.connector
        )
        self._config_maps: Informer | None = None
        self.record_keys = StoredRecordKeys(client, namespace or settings.registries.namespace)
        """The keys of image records, which the caller follows; without that no record counts."""
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
        """Handle the creation, change or deletion of a GlobalContextEntry."""
        self.status.take(notice, body)
        self.entries.take(notice, body)

    def entry_resource(self) -> GVR | None:
        """Return the version of GlobalContextEntry to watch; None when the cluster serves none."""
        return next((gvr for gvr in ENTRY_VERSIONS if self._kinds().by_resource(gvr) is not None), None)

    def config_maps(self) -> Informer | None:
        """Return the informer that caches ConfigMaps, which the caller runs; None when caching is disabled."""
        if self._settings.caches_config_maps and self._config_maps is None:
            # Kyverno: the label alone counts, whatever its value
            self._config_maps = Informer(
                self._client, _CONFIG_MAPS, selector=_CACHED, bound=self._settings.stale_seconds
            )
        return self._config_maps

    def host(self) -> ClusterHost:
        """Return a Host for rules; call it on the event loop that owns the client."""
        return ClusterHost(
            self._client,
            asyncio.get_running_loop(),
            self._kinds,
            self._system,
            egress=self._egress,
            allows_http_in_namespaces=self._settings.allows_http_in_namespaces,
            global_entries=self.entries,
            config_maps=self._config_maps,
            registries=self._registries.source,
            record_keys=lambda: self.record_keys.keys,
            read_rights=self._read_rights,
        )

    def followed_root(self) -> FollowedRoot | None:
        """Return the trusted root that follows a repository, which the caller runs; None without a repository."""
        return self._registries.followed_root

    async def close(self) -> None:
        """Stop all entries and close all connections to services."""
        await self.entries.close()
        await self._registries.close()
        await self._egress.close()
