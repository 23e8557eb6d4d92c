"""The tables of the background controller: what works on each type of request, and what runs in the leader."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final, Protocol

from pyverno.controllers.background.context import BackgroundContext
from pyverno.controllers.background.generating.part import Generating
from pyverno.controllers.background.mutating.part import Mutating
from pyverno.controllers.background.work import Handler
from pyverno.controllers.runtime.leader import Runnable
from pyverno.policy.updaterequest import RequestType

__all__ = ["HANDLERS", "LEADER_CONTROLLERS", "PARTS", "SHARDED", "Part"]


class Part(Protocol):
    """Handlers and controllers that work together."""

    @property
    def handlers(self) -> Mapping[RequestType, Handler]:
        """The handlers by the type of request."""
        ...

    @property
    def is_idle(self) -> bool:
        """Return whether the controllers run and have nothing left to do."""
        ...

    def followers(self) -> Iterable[Runnable]:
        """Return what every replica runs: watches that the handlers read."""
        ...

    def controllers(self) -> Iterable[Runnable]:
        """Return the controllers that only the leader runs."""
        ...

    def sharded(self, shard: int) -> Iterable[Runnable]:
        """Return the controllers that the replica runs which holds a shard."""
        ...


PARTS: Final[tuple[Callable[[BackgroundContext], Part], ...]] = (Generating, Mutating)
"""Makes the parts whose handlers and controllers share their state."""

HANDLERS: Final[Mapping[RequestType, Callable[[BackgroundContext], Handler]]] = MappingProxyType({})
"""Makes the handler of a type of request; a request without a handler fails with this reason."""

SHARDED: Final = frozenset(RequestType)
"""The types of requests that every replica works on its share of; the leader works on all others."""

LEADER_CONTROLLERS: Final[tuple[Callable[[BackgroundContext], Runnable], ...]] = ()
"""Makes the controllers that only the leader runs: those that follow policies and generated objects."""
