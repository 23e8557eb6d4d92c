"""Watches of the ConfigMaps that evaluations read, one for each, without their data."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from pyverno.cluster.client import Client
from pyverno.cluster.informer import Informer
from pyverno.cluster.notinghost import ConfigMapKey
from pyverno.kube.gvk import GVR

__all__ = ["ConfigMapWatches"]

_CONFIG_MAPS: Final = GVR("", "v1", "configmaps")
_MAX_WATCHES: Final = 100


class ConfigMapWatches:
    """Calls `on_change` when a ConfigMap that is followed changes; beyond a hundred, changes wait for the interval."""

    def __init__(self, client: Client, on_change: Callable[[ConfigMapKey], None]) -> None:
        """Take the client, and a receiver of changes."""
        self._client = client
        self._on_change = on_change
        self._watches: dict[ConfigMapKey, asyncio.Task[None]] = {}
        self._changed: dict[ConfigMapKey, int] = {}
        self.changes = 0
        """How many changes have been seen."""

    def is_followed(self, key: ConfigMapKey) -> bool:
        """Return whether changes of a ConfigMap are noticed at once."""
        return key in self._watches

    def follow(self, key: ConfigMapKey, group: asyncio.TaskGroup) -> None:
        """Follow a ConfigMap from now on, as long as the group of tasks runs."""
        if key in self._watches or len(self._watches) >= _MAX_WATCHES:
            return
        namespace, name = key
        informer = Informer(
            self._client, _CONFIG_MAPS, namespace=namespace, fields=f"metadata.name={name}", only_metadata=True
        )
        # the first list counts as a change as well: the object may have changed since it was read
        informer.listen(lambda _notice, _body: self._note(key))
        self._watches[key] = group.create_task(informer.run())

    def changed_since(self, key: ConfigMapKey, changes: int) -> bool:
        """Return whether a ConfigMap has changed since the given number of changes."""
        return self._changed.get(key, 0) > changes

    def _note(self, key: ConfigMapKey) -> None:
        self.changes += 1
        self._changed[key] = self.changes
        self._on_change(key)
