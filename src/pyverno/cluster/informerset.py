"""Informers that are added and removed while a controller runs.

Between two runs (terms of a leader) the informers keep their objects and continue where they were.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from pyverno.cluster.informer import Informer

__all__ = ["InformerSet"]

Key = TypeVar("Key", bound=Hashable)


class InformerSet(Generic[Key]):
    """Informers by a key; all methods belong to the event loop's thread but `get`, which may be called from any."""

    def __init__(self) -> None:
        """Begin without informers."""
        self._informers: dict[Key, Informer] = {}
        self._tasks: dict[Key, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None

    def __contains__(self, key: Key) -> bool:
        return key in self._informers

    def __iter__(self) -> Iterator[Key]:
        return iter(tuple(self._informers))

    def __len__(self) -> int:
        return len(self._informers)

    @property
    def is_synced(self) -> bool:
        """Return whether every informer has brought its objects, or cannot."""
        return all(each.synced.is_set() or each.trouble for each in self._informers.values())

    def get(self, key: Key) -> Informer | None:
        """Return an informer, None for a missing one."""
        return self._informers.get(key)

    def add(self, key: Key, informer: Informer) -> None:
        """Follow an informer while the set runs."""
        self._informers[key] = informer
        self._start(key)

    async def remove(self, key: Key) -> None:
        """Stop following an informer and forget its objects."""
        self._informers.pop(key, None)
        task = self._tasks.pop(key, None)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def run(self) -> None:
        """Follow all informers until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                for key in self._informers:
                    self._start(key)
                await asyncio.Event().wait()
        finally:
            self._group = None
            self._tasks = {}

    def _start(self, key: Key) -> None:
        if self._group is not None:
            self._tasks[key] = self._group.create_task(self._informers[key].run())
