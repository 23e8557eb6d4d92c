"""The part of the background controller that changes existing objects: its handlers, and what the leader runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyverno.controllers.background.context import BackgroundContext
from pyverno.controllers.background.mutating.handlers import CelMutateHandler, MutateHandler
from pyverno.controllers.background.mutating.policies import MutatingPolicies
from pyverno.controllers.background.work import Handler
from pyverno.controllers.runtime.leader import Runnable
from pyverno.policy.updaterequest import RequestType

__all__ = ["Mutating"]


class Mutating:
    """UpdateRequests of both types that change existing objects, and the policies that ask for them."""

    def __init__(self, context: BackgroundContext) -> None:
        """Take what all handlers work with."""
        self._policies = MutatingPolicies(context)
        self.handlers: Mapping[RequestType, Handler] = {
            RequestType.MUTATE: MutateHandler(context),
            RequestType.CEL_MUTATE: CelMutateHandler(context),
        }

    def followers(self) -> Iterator[Runnable]:
        """Yield what every replica runs."""
        yield from ()

    def sharded(self, shard: int) -> Iterator[Runnable]:
        """Yield what the replica runs that holds a shard."""
        yield from ()

    def controllers(self) -> Iterator[Runnable]:
        """Yield what only the leader runs."""
        yield self._policies.controller

    @property
    def is_idle(self) -> bool:
        """Return whether every policy that changed has its request."""
        return self._policies.controller.is_idle
