"""What rules may ask of the world, put together: the Host, calls of services, global context, cached ConfigMaps.

Every controller that judges has one. This module must never judge, and writes nothing but when an entry of the global
context was refreshed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from pyverno.cluster.client import Client
from pyverno.cluster.egress import Egress, EgressSettings
from pyverno.cluster.host import ClusterHost
from pyverno.cluster.informer import Informer
from pyverno.controllers.events import Event
from pyverno.controllers.globalcontext import ENTRY_VERSIONS, GlobalContext
from pyverno.controllers.status import status_patch
from pyverno.engine.result import ResourceRef
from pyverno.errors import HostError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindTable
from pyverno.kube.status import StatusError
from pyverno.offline.system import System
from pyverno.value import dataclass, field

__all__ = ["SurroundingSettings", "Surroundings"]

_CONFIG_MAPS: Final = GVR("", "v1", "configmaps")
_CACHED: Final = "cache.kyverno.io/enabled"
_SOURCE: Final = "globalcontext-controller"
_REPEAT_SECONDS: Final = 300.0


@dataclass(frozen=True, slots=True)
class SurroundingSettings:
    """What the flags say; `most_entries` bounds the global context (0 = no limit)."""

    egress: EgressSettings = field(default_factory=EgressSettings)
    allows_http_in_namespaces: bool = False
    most_entries: int = 0
    caches_config_maps: bool = True


class Surroundings:
    """Holds the parts; `entries` takes what a watch of GlobalContextEntry objects brings."""

    def __init__(
        self,
        client: Client,
        settings: SurroundingSettings,
        kinds: Callable[[], KindTable],
        is_writer: Callable[[], bool] = lambda: False,
        *,
        tell: Callable[[Event], None] = lambda _event: None,
    ) -> None:
        """Take the client, the settings, the kinds, whether this replica writes status, and who is told of events."""
        self._client = client
        self._settings = settings
        self._kinds = kinds
        self._is_writer = is_writer
        self._tell = tell
        self._said: dict[str, tuple[str, float]] = {}
        self._writing: set[asyncio.Task[None]] = set()
        self._egress = Egress(settings.egress)
        self._config_maps: Informer | None = None
        self.entries = GlobalContext(
            client,
            self._egress,
            most=settings.most_entries,
            refreshed=self._note_refresh,
            told=self._note,
        )

    def entry_resource(self) -> GVR | None:
        """Return the version of GlobalContextEntry that is to be watched; None when the cluster serves none."""
        return next((gvr for gvr in ENTRY_VERSIONS if self._kinds().by_resource(gvr) is not None), None)

    def config_maps(self) -> Informer | None:
        """Return the cache of ConfigMaps that somebody has to run; None when there is to be none."""
        if self._settings.caches_config_maps and self._config_maps is None:
            # Kyverno: the label alone counts, whatever its value
            self._config_maps = Informer(self._client, _CONFIG_MAPS, selector=_CACHED)
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
        for writing in self._writing:
            writing.cancel()
        await asyncio.gather(*self._writing, return_exceptions=True)
        await self._egress.close()

    async def _note_refresh(self, entry: ResourceRef, uid: str) -> None:
        """Write that an entry has its data, and since when."""
        self._said.pop(entry.name, None)
        await self._write(entry, {"lastRefreshTime": _now()}, "")

    def _note(self, entry: ResourceRef, uid: str, error: str) -> None:
        """Tell of an entry that has no data (or has); of the same reason no more often than once in some minutes."""
        said = self._said.get(entry.name)
        now = time.monotonic()
        if said is not None and said[0] == error and now - said[1] < _REPEAT_SECONDS:
            return
        self._said[entry.name] = error, now
        if error:
            self._tell(Event("PolicyError", "Retrying", error, entry, source=_SOURCE, uid=uid))
        writing = asyncio.create_task(self._write_condition(entry, error))
        self._writing.add(writing)
        writing.add_done_callback(self._writing.discard)

    async def _write_condition(self, entry: ResourceRef, error: str) -> None:
        with suppress(HostError, StatusError):  # it is told by an event as well, and may be gone
            await self._write(entry, {}, error)

    async def _write(self, entry: ResourceRef, status: JSONObject, error: str) -> None:
        gvr = self.entry_resource()
        if gvr is None or not self._is_writer():
            return
        condition = {
            "type": "Ready",
            "status": "False" if error else "True",
            "reason": "Failed" if error else "Succeeded",
            "message": error,
            "lastTransitionTime": _now(),
        }
        found = (await self._client.get(gvr, entry.name)).get("status") or {}
        patch = status_patch(found, {**status, "conditions": [condition]})
        if patch is not None:
            await self._client.patch(gvr, entry.name, patch, subresource="status")


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
