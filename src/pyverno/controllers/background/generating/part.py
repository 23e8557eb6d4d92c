"""The part of the background controller that generates: its handlers, and the controllers that the leader runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pyverno.cluster.informer import Notice
from pyverno.controllers.background.context import BackgroundContext
from pyverno.controllers.background.generating.downstreams import Downstream, Downstreams
from pyverno.controllers.background.generating.generator import Generator
from pyverno.controllers.background.generating.handlers import GenerateHandler
from pyverno.controllers.background.generating.policies import GeneratingPolicies
from pyverno.controllers.background.generating.rulefacts import facts_of
from pyverno.controllers.background.generating.sources import Source, Sources
from pyverno.controllers.background.generating.work import GenerationKey, Work
from pyverno.controllers.background.work import Waiting
from pyverno.controllers.runtime.leader import Runnable
from pyverno.controllers.runtime.reconcile import Again, Controller, LoopSettings
from pyverno.controllers.state.policystore import Identity
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindInfo
from pyverno.policy.updaterequest import RequestType

__all__ = ["Generating"]

_FOLLOWED_ANYWAY: Final = ("kyverno.io", "policies.kyverno.io")
"""The groups of policies, whose changes wake what was generated."""


class Generating:
    """Puts the parts together: UpdateRequests, generated objects, their sources and policies wake one generator."""

    def __init__(self, context: BackgroundContext) -> None:
        """Take what all handlers work with."""
        self._context = context
        self._downstreams = Downstreams(context.client, self._info, self._downstream_changed)
        self._sources: Sources[GenerationKey] = Sources(context.client, self._source_changed)
        self._generator = Generator(context, self._downstreams, self._sources, recheck=self._recheck)
        self._keep: Controller[GenerationKey] = Controller(
            "generate",
            self._reconcile,
            prepare=self._prepare,
            settings=LoopSettings(workers=max(context.settings.workers, 1), backoff=context.settings.backoff),
            metrics=context.metrics,
        )
        self._policies = GeneratingPolicies(context, self._generator, self._downstreams, self._keep)
        handler = GenerateHandler(context.client, context.settings.namespace, self._generator)
        self.handlers = {RequestType.GENERATE: handler, RequestType.CEL_GENERATE: handler}

    def controllers(self) -> Iterator[Runnable]:
        """Yield what only the leader runs."""
        yield from (self._downstreams, self._sources, self._keep, self._policies.controller)

    @property
    def is_idle(self) -> bool:
        """Tell whether everything that follows from what the watches brought is done."""
        return self._keep.is_idle and self._policies.controller.is_idle and self._downstreams.is_synced

    def _recheck(self, policy: Identity) -> None:
        self._policies.controller.add(policy)

    def _info(self, gvr: GVR) -> KindInfo | None:
        return self._context.state.kinds.by_resource(gvr)

    async def _prepare(self) -> None:
        """Follow the sources of what exists; their watches begin now, and what came before is known by requests."""
        for gvr, namespace, name in self._downstreams.sources():
            self._sources.follow(Source(gvr, namespace, name))

    # ---------------------------------------------------------------------------------------------------------- wakes

    def _downstream_changed(self, _notice: Notice, downstream: Downstream) -> None:
        """Restore an object that was changed or deleted, if its rule synchronizes it."""
        compiled = self._context.state.store.compiled().get(downstream.policy)
        rule = facts_of(compiled).get(downstream.origin.rule)
        if rule is not None and rule.synchronize:
            self._keep.add(GenerationKey(downstream.policy, downstream.origin.rule, downstream.trigger))

    def _source_changed(self, source: Source, _notice: Notice, body: JSONObject) -> None:
        """Have all copies of an object brought up to date, and rules woken that wait for it."""
        place = (source.gvr, body["metadata"].get("namespace") or "", body["metadata"]["name"])
        for copy in tuple(self._downstreams.of_source(place)):
            self._keep.add(GenerationKey(copy.policy, copy.origin.rule, copy.trigger))
        for key in self._sources.dependents(source):
            self._keep.add(key)

    async def _reconcile(self, key: GenerationKey) -> Again | None:
        work = Work(key.policy, key.trigger, {key.rule: False}, reason="the object or its source changed", is_late=True)
        outcome = await self._generator.run(work)
        if isinstance(outcome, Waiting):
            for awaited in outcome.on:
                if awaited.resource.group not in _FOLLOWED_ANYWAY:
                    self._sources.follow(Source(awaited.resource, awaited.namespace, awaited.name), key)
            return Again(outcome.seconds)
        return None
