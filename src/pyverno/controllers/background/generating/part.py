"""The part of the background controller that generates: its handlers, and the controllers that the leader runs.

Every replica follows generated objects. The replica that holds the shard of a policy and trigger works on their
requests and keeps their generated objects up to date; the leader follows policies.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterator
from functools import partial
from typing import Final

from pyverno.cluster.informer import Notice
from pyverno.controllers.background.context import BackgroundContext
from pyverno.controllers.background.generating.downstreams import Downstream, Downstreams
from pyverno.controllers.background.generating.generatedkinds import GeneratedKinds
from pyverno.controllers.background.generating.generator import Generator
from pyverno.controllers.background.generating.handlers import GenerateHandler
from pyverno.controllers.background.generating.policies import GeneratingPolicies
from pyverno.controllers.background.generating.rulefacts import facts_of
from pyverno.controllers.background.generating.sources import Source, Sources
from pyverno.controllers.background.generating.work import GenerationKey, Work
from pyverno.controllers.background.shards import shard_of
from pyverno.controllers.background.work import Waiting
from pyverno.controllers.runtime.leader import Runnable
from pyverno.controllers.runtime.reconcile import Again, Controller, LoopSettings
from pyverno.controllers.state.policystore import Identity
from pyverno.errors import HostError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindInfo
from pyverno.kube.status import StatusError
from pyverno.policy.updaterequest import RequestType

__all__ = ["Generating"]

_FOLLOWED_ANYWAY: Final = ("kyverno.io", "policies.kyverno.io")
"""The groups of policies, whose changes wake what was generated."""

_MISSED_SECONDS: Final = 600.0
_MAX_MISSED: Final = 10_000


class _Shard:
    """The synchronization of a shard's generated objects, and changes missed while another replica held it."""

    __slots__ = ("keep", "missed")

    def __init__(self, keep: Controller[GenerationKey]) -> None:
        self.keep = keep
        self.missed: OrderedDict[GenerationKey, float] = OrderedDict()

    def wake(self, key: GenerationKey) -> None:
        """Have objects brought in step now, or when this replica holds the shard."""
        if self.keep.is_running:
            self.keep.add(key)
            return
        self.missed.pop(key, None)
        self.missed[key] = time.monotonic()
        if len(self.missed) > _MAX_MISSED:
            self.missed.popitem(last=False)


class Generating:
    """Puts the parts together: UpdateRequests, generated objects, their sources and policies wake one generator."""

    def __init__(self, context: BackgroundContext) -> None:
        """Take what all handlers work with."""
        self._context = context
        self._downstreams = Downstreams(context.client, self._info, self._downstream_changed, self._downstream_new)
        self._sources: Sources[GenerationKey] = Sources(context.client, self._source_changed)
        self._kinds = GeneratedKinds(
            context, self._downstreams, lambda: not all(each.keep.is_running for each in self._shards)
        )
        self._generator = Generator(context, self._downstreams, self._sources, self._kinds, recheck=self._recheck)
        self._shards = tuple(_Shard(self._keep(number)) for number in range(max(context.settings.shards, 1)))
        self._leading = self._keep(None)
        self._policies = GeneratingPolicies(context, self._generator, self._downstreams, self._kinds, self._leading)
        handler = GenerateHandler(context.client, context.settings.namespace, self._generator)
        self.handlers = {RequestType.GENERATE: handler, RequestType.CEL_GENERATE: handler}

    def followers(self) -> Iterator[Runnable]:
        """Yield the watches of generated objects and their sources."""
        yield from (self._downstreams, self._sources)

    def controllers(self) -> Iterator[Runnable]:
        """Yield what only the leader runs."""
        yield from (self._leading, self._policies.controller)

    def sharded(self, shard: int) -> Iterator[Runnable]:
        """Yield what keeps the generated objects of a shard in step."""
        yield self._shards[shard].keep

    @property
    def is_idle(self) -> bool:
        """Return whether everything that follows from what the watches brought is done."""
        keeping = (self._leading, *(each.keep for each in self._shards if each.keep.is_running))
        return (
            all(each.is_idle for each in keeping) and self._policies.controller.is_idle and self._downstreams.is_synced
        )

    def _keep(self, shard: int | None) -> Controller[GenerationKey]:
        """Return the parts that synchronize generated objects: those of a shard, or with None those of the leader."""
        settings = self._context.settings
        workers = max(settings.workers, 1)

        async def prepare() -> None:
            if shard is not None:
                await self._take_over(shard)

        return Controller(
            "generate",
            partial(self._reconcile, adopts=shard is None),
            prepare=prepare,
            settings=LoopSettings(
                workers=workers if shard is None else -(-workers // max(settings.shards, 1)), backoff=settings.backoff
            ),
            metrics=self._context.metrics,
        )

    def _recheck(self, policy: Identity) -> None:
        self._policies.controller.add(policy)

    def _info(self, gvr: GVR) -> KindInfo | None:
        return self._context.state.kinds.by_resource(gvr)

    async def _take_over(self, number: int) -> None:
        """Find out what other replicas generated for a shard, and make up for changes that none of them saw.

        Watches of sources that begin now bring their objects, and wake the copies. Rules that copy lists are evaluated
        once: what they list is not known otherwise.
        """
        state, shard = self._context.state, self._shards[number]
        self._kinds.forget()
        policies = [each for identity, each in state.store.compiled().items() if facts_of(each)]
        self._kinds.follow(policies)
        await self._downstreams.settled(self._downstreams.followed())
        for known in self._downstreams:
            key = _key_of(known)
            if self._shard_of(key) is not shard:
                continue
            rule = facts_of(state.store.compiled().get(known.policy)).get(known.origin.rule)
            if known.source is not None:
                self._sources.follow(Source(*known.source))
            if rule is not None and rule.synchronize and rule.copies_list:
                shard.keep.add(key)
        latest = time.monotonic() - _MISSED_SECONDS
        while shard.missed:
            key, at = shard.missed.popitem()
            if at >= latest:
                shard.keep.add(key)

    def _shard_of(self, key: GenerationKey) -> _Shard:
        policy = "/".join(part for part in key.policy[1:] if part)
        return self._shards[shard_of(policy, key.trigger.to_json(), len(self._shards))]

    # ---------------------------------------------------------------------------------------------------------- wakes

    def _wake(self, key: GenerationKey) -> None:
        """Have what a rule generated for a trigger brought in step, at the latest when this replica has its shard."""
        self._shard_of(key).wake(key)

    def _downstream_new(self, downstream: Downstream) -> None:
        """Follow the source of an object that another replica generated, and delete what a deleted policy left."""
        if downstream.source is not None and self._shard_of(_key_of(downstream)).keep.is_running:
            self._sources.follow(Source(*downstream.source))
        if self._context.state.store.compiled().get(downstream.policy) is None:
            self._recheck(downstream.policy)

    def _downstream_changed(self, _notice: Notice, downstream: Downstream) -> None:
        """Restore an object that was changed or deleted, if its rule synchronizes it."""
        compiled = self._context.state.store.compiled().get(downstream.policy)
        rule = facts_of(compiled).get(downstream.origin.rule)
        if rule is not None and rule.synchronize:
            self._wake(_key_of(downstream))

    def _source_changed(self, source: Source, _notice: Notice, body: JSONObject) -> None:
        """Have all copies of an object brought up to date, and rules woken that wait for it."""
        place = (source.gvr, body["metadata"].get("namespace") or "", body["metadata"]["name"])
        for copy in tuple(self._downstreams.of_source(place)):
            self._wake(_key_of(copy))
        for key in self._sources.dependents(source):
            self._wake(key)

    async def _reconcile(self, key: GenerationKey, *, adopts: bool) -> Again | None:
        reason = "the object or its source changed"
        work = Work(key.policy, key.trigger, {key.rule: False}, reason=reason, is_late=True, adopts=adopts)
        try:
            outcome = await self._generator.run(work)
        except (HostError, StatusError) as error:
            self._context.note_trouble(key.policy, key, error.message)
            raise
        self._context.note_trouble(key.policy, key, outcome.message if isinstance(outcome, Waiting) else "")
        if isinstance(outcome, Waiting):
            for awaited in outcome.on:
                if awaited.resource.group not in _FOLLOWED_ANYWAY:
                    self._sources.follow(Source(awaited.resource, awaited.namespace, awaited.name), key)
            return Again(outcome.seconds)
        return None


def _key_of(downstream: Downstream) -> GenerationKey:
    return GenerationKey(downstream.policy, downstream.origin.rule, downstream.trigger)
