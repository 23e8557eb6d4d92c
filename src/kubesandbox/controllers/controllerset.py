"""All controllers of a sandbox, started and stopped together; each is woken by the changes that it watches."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from kubesandbox.authentication.authenticator import authenticated, service_account_user
from kubesandbox.controllers.clock import Clock, SystemClock
from kubesandbox.controllers.context import ControllerContext
from kubesandbox.controllers.loop import EVERYTHING, Controller, Keys, Loop
from kubesandbox.controllers.readers import Readers
from kubesandbox.controllers.recorder import Recorder
from kubesandbox.controllers.registry import CONTROLLERS, ControllerSettings, ControllerSpec
from kubesandbox.local import LocalClient
from kubesandbox.storage.store import Change
from kubesandbox.types.resources import ResourceTable
from pyverno.engine.request import User

if TYPE_CHECKING:
    from kubesandbox.apiserver import ApiServer

__all__ = ["ControllerSet"]

_UNWATCHED = frozenset({"events"})
"""Resources that EVERYTHING leaves out, as upstream's garbage collector does."""
STOP_SECONDS = 5.0
"""Seconds that a start waits for the controllers, so that a silent webhook cannot delay it further."""
_QUIET_TURNS = 25

_LOG = logging.getLogger(__name__)


class ControllerSet:
    """The controllers of one server.

    `settings` are their own settings; without `kubelet` no pods are scheduled or run.
    """

    def __init__(self, settings: ControllerSettings, *, clock: Clock | None = None, kubelet: bool = True) -> None:
        """Take the settings; nothing happens before `start`."""
        self.settings = settings
        self._clock = clock or SystemClock()
        self._specs = tuple(spec for spec in CONTROLLERS if kubelet or not spec.is_of_node)
        self._loops: list[Loop] = []
        self._recorders: list[Recorder] = []
        self._readers: Readers | None = None
        self._listeners: dict[str, list[tuple[Loop, Keys]]] = {}

    async def start(self, server: ApiServer) -> None:
        """Start all controllers on a server; first objects (accounts, the node) are there when this returns."""
        from kubesandbox.local import LocalClient

        self.start_with(lambda user: LocalClient(server, user), lambda: server.table)
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                await self.settled()

    def start_with(self, client_of: Callable[[User], LocalClient], types: Callable[[], ResourceTable]) -> None:
        """Start all controllers with clients; `types` returns the types that are served now."""
        for spec in self._specs:
            self._add(spec, client_of(_user_of(spec)), types)
        self._readers = Readers(client_of(authenticated(User("system:kube-controller-manager"))), types, self._enqueue)
        self._readers.start()
        for loop, spec in zip(self._loops, self._specs, strict=True):
            for key in spec.first:
                loop.add(key)

    async def stop(self) -> None:
        """Stop all controllers; the next start resumes unfinished work."""
        if self._readers is not None:
            await self._readers.stop()
        for loop in self._loops:
            await loop.stop()
        for recorder in self._recorders:
            await recorder.stop()
        self._loops.clear()
        self._recorders.clear()
        self._listeners.clear()

    async def settled(self) -> None:
        """Wait until no controller has anything to do; work that waits for time to pass does not count."""
        quiet = 0
        while quiet < _QUIET_TURNS:
            is_idle = all(loop.is_idle for loop in self._loops) and all(item.is_idle for item in self._recorders)
            quiet = quiet + 1 if is_idle else 0
            await asyncio.sleep(0 if is_idle else 0.001)

    def _add(self, spec: ControllerSpec, client: LocalClient, types: Callable[[], ResourceTable]) -> None:
        recorder = Recorder(client, self._clock, spec.component, host=spec.host)
        context = ControllerContext(client, self._clock, recorder, types)
        controller: Controller = spec.build(context, self.settings)
        loop = Loop(spec.name, controller, self._clock)
        self._loops.append(loop)
        self._recorders.append(recorder)
        for resource, keys in controller.watches.items():
            self._listeners.setdefault(resource, []).append((loop, keys))

    def _enqueue(self, resource: str, change: Change) -> None:
        for loop, keys in self._listening(resource):
            try:
                found = tuple(keys(change))
            except Exception:  # an unexpected object must not stop the events of a controller
                _LOG.exception("change not understood", extra={"controller": loop.name, "resource": resource})
                continue
            for key in found:
                loop.add(key)

    def _listening(self, resource: str) -> Iterable[tuple[Loop, Keys]]:
        yield from self._listeners.get(resource, ())
        if resource not in _UNWATCHED:
            yield from self._listeners.get(EVERYTHING, ())


def _user_of(spec: ControllerSpec) -> User:
    return authenticated(spec.user or service_account_user("kube-system", spec.name))
