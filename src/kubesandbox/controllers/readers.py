"""One reader per served resource, which reports every change; new resources are read as soon as they are served."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from kubesandbox.local import LocalClient
from kubesandbox.storage.store import Change, TooOldError
from kubesandbox.types.resources import ResourceTable

__all__ = ["Readers"]

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"

_LOG = logging.getLogger(__name__)


class Readers:
    """Reads everything; `tell` is called with the resource and each change, everything present first as ADDED."""

    def __init__(
        self, client: LocalClient, types: Callable[[], ResourceTable], tell: Callable[[str, Change], None]
    ) -> None:
        """Take the server to read from, a function for the types that are served, and the listener."""
        self._client = client
        self._types = types
        self._tell = tell
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def start(self) -> None:
        """Start a reader for each served resource without one.

        Readers of resources that are no longer served stay: they report the last deletions, and cost nothing
        afterwards.
        """
        served = {item.key for item in self._types() if "watch" in item.verbs}
        for resource in sorted(served - self._tasks.keys()):
            self._tasks[resource] = asyncio.create_task(self._read(resource), name=f"reader of {resource}")

    async def stop(self) -> None:
        """End all readers."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._tasks.clear()

    async def _read(self, resource: str) -> None:
        """Report every change, without end; after falling behind, every object."""
        while True:
            try:
                async for change in self._client.changes(resource):
                    if resource == DEFINITIONS:
                        self.start()
                    self._report(resource, change)
            except TooOldError:
                _LOG.warning("controllers fell behind", extra={"resource": resource})

    def _report(self, resource: str, change: Change) -> None:
        """Report a change; a listener that breaks must not end the reader of a resource."""
        try:
            self._tell(resource, change)
        except Exception:
            _LOG.exception("a change could not be reported", extra={"resource": resource})
