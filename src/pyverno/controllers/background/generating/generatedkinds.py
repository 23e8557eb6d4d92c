"""The kinds of generated objects that are followed: those that policies name, and those of which there are objects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from pyverno.compiler.compile import Compiled
from pyverno.controllers.background.context import BackgroundContext
from pyverno.controllers.background.generating.downstreams import Downstreams
from pyverno.controllers.background.generating.rulefacts import RuleFacts, facts_of
from pyverno.engine.origin import KYVERNO, MANAGED_BY, POLICY_LABELS
from pyverno.kube.gvk import GVK, GVR, parse_api_version
from pyverno.kube.kinds import KindInfo, KindTable
from pyverno.kube.status import StatusError

__all__ = ["GeneratedKinds", "preferred_kinds"]

_UNKNOWN: Final = (403, 404, 405)
_MAX_NAMED: Final = 1000


class GeneratedKinds:
    """Has `Downstreams` follow kinds; used in the event loop of every replica."""

    def __init__(
        self, context: BackgroundContext, downstreams: Downstreams, is_shared: Callable[[], bool] = lambda: False
    ) -> None:
        """Take the cluster, and what follows generated objects; `is_shared` states whether other replicas generate."""
        self._context = context
        self._downstreams = downstreams
        self._is_shared = is_shared
        self._is_known = False
        self._search = asyncio.Lock()
        self._served: KindTable | None = None
        self._resources: dict[tuple[str, ...], tuple[GVR, ...]] = {}

    @property
    def are_shared(self) -> bool:
        """Return whether other replicas generate objects too, maybe of kinds that this one does not follow."""
        return self._is_shared()

    def forget(self) -> None:
        """Have kinds searched again: another replica may have generated objects of further ones."""
        self._is_known = False

    def follow(self, policies: Iterable[Compiled]) -> None:
        """Follow the kinds that the rules of policies name."""
        for compiled in policies:
            for rule in facts_of(compiled).values():
                for gvr in self.of_rule(rule):
                    self._downstreams.follow(gvr)

    def of_rule(self, rule: RuleFacts) -> tuple[GVR, ...]:
        """Return the resources that a rule names, as far as the cluster serves them."""
        kinds = self._context.state.kinds
        if kinds is not self._served or len(self._resources) >= _MAX_NAMED:
            self._served, self._resources = kinds, {}
        known = self._resources.get(rule.kinds)
        if known is not None:
            return known
        named = (text.rpartition("/") for text in rule.kinds)
        found = (kinds.find(GVK(*parse_api_version(version), kind)) for version, _, kind in named)
        resources = self._resources[rule.kinds] = tuple(info.gvr for info in found if info is not None)
        return resources

    async def settle(self, rule: RuleFacts) -> None:
        """Wait until the objects that a rule may have generated earlier are known; raises HostError, StatusError.

        Policies in CEL do not name what they generate: kinds are searched once in each term of a replica.
        """
        named = self.of_rule(rule)
        if not rule.name:
            async with self._search:
                if not self._is_known:
                    self._is_known = True
                    try:
                        await self.find()
                    except BaseException:
                        self._is_known = False
                        raise
            named = self._downstreams.followed()
        await self._downstreams.settled(named)

    async def find(self) -> None:
        """Follow the kinds of existing generated objects; raises HostError, StatusError."""
        selector = f"{MANAGED_BY}={KYVERNO},{POLICY_LABELS[0]}"
        for info in preferred_kinds(self._context.state.kinds):
            if self._downstreams.follows(info.gvr):
                continue
            try:
                is_generated = await self._context.client.has_any(info.gvr, selector=selector)
            except StatusError as error:
                if error.status in _UNKNOWN:
                    continue
                raise
            if is_generated:
                self._downstreams.follow(info.gvr)


def preferred_kinds(kinds: Iterable[KindInfo]) -> Iterator[KindInfo]:
    """Yield each kind in the version that the cluster prefers."""
    seen: set[tuple[str, str]] = set()
    for info in kinds:
        if (info.group, info.kind) not in seen:
            seen.add((info.group, info.kind))
            yield info
