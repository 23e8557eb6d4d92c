"""Works on UpdateRequests of types `mutate` and `cel-mutate`: existing objects are changed as rules request.

A request without a trigger stands for a policy that changed: it is done for every object that the policy may match.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final

from pyverno.compiler.compile import Compiled
from pyverno.controllers.background.context import BackgroundContext
from pyverno.controllers.background.mutating.changes import Changes
from pyverno.controllers.background.mutating.evaluation import MutatingHandler
from pyverno.controllers.background.mutating.subjects import Subject
from pyverno.controllers.background.work import Done, Waiting, reads_old
from pyverno.engine.effects import PatchEffect
from pyverno.engine.engine import Review
from pyverno.engine.inplace import in_place
from pyverno.engine.request import Operation, Request
from pyverno.engine.result import ResourceRef
from pyverno.engine.rule import CompiledPolicy, CompiledRule, Stage
from pyverno.kube.gvk import GVK, parse_api_version
from pyverno.policy.kinds import Family, PolicyKind, kind_of
from pyverno.policy.updaterequest import Trigger, UpdateRequest

__all__ = ["CelMutateHandler", "MutateHandler"]

_NO_TRIGGER: Final = Trigger()
_MAX_PASSES: Final = 1000


class MutateHandler(MutatingHandler):
    """Works on requests of type `mutate`: one rule of a ClusterPolicy or Policy that has targets."""

    async def handle(self, request: UpdateRequest) -> Done | Waiting:
        """Change the targets of the rule, for its trigger or for all existing ones."""
        spec = request.spec
        found = await self.policy(kind_of(Family.RULES, is_namespaced="/" in spec.policy), spec.policy)
        if found is None or found.policy is None:
            return Done("the policy is gone")
        policy = found.policy
        rules = [each for each in policy.rules if each.mutates_existing and each.info.name == spec.rule]
        changes = self.changes(found, policy, request)
        is_for_all = spec.context.request is None and spec.resource == _NO_TRIGGER
        for rule in rules:
            policies = self.policies(policy, rule)
            if is_for_all:
                await self.on_existing(changes, policies, rule, _as_policy_event)
                continue
            trigger = await self.triggers.request(request, reads_old=reads_old(found))
            if not isinstance(trigger, Request):
                return trigger
            await self.on_request(changes, policies, trigger)
        return await self.finish(changes, request)


@dataclass(slots=True)
class _Pass:
    """Passes over all objects of a policy, one at a time: when the last one that succeeded began."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    began: float = 0.0


class CelMutateHandler(MutatingHandler):
    """Works on requests of type `cel-mutate`: a MutatingPolicy or NamespacedMutatingPolicy with `mutateExisting`."""

    def __init__(self, context: BackgroundContext) -> None:
        """Take what the controller works with."""
        super().__init__(context)
        self._passes: dict[Hashable, _Pass] = {}

    async def handle(self, request: UpdateRequest) -> Done | Waiting:
        """Change the targets of the policy: for its trigger, and what it matches itself for all existing objects."""
        found = await self._mutating_policy(request)
        if found is None or found.policy is None:
            return Done("the policy is gone")
        policy = found.policy
        trigger: Request | None = None
        if request.spec.context.request is not None:
            outcome = await self.triggers.request(request, reads_old=reads_old(found))
            if not isinstance(outcome, Request):
                return outcome
            trigger = outcome
        changes = self.changes(found, policy, request)
        for number, rule in enumerate(policy.rules):
            if rule.mutates_existing:
                await self._on_rule(changes, policy, rule, trigger, _pass_key(found, number, trigger))
        return await self.finish(changes, request)

    async def _mutating_policy(self, request: UpdateRequest) -> Compiled | None:
        key = request.spec.policy
        found = await self.policy(_mutating_kind(is_namespaced="/" in key), key)
        if found is not None or "/" in key:
            return found
        # Kyverno: older versions named namespaced policies without their namespace, which is that of the request
        admission = request.spec.context.request
        namespace = admission.get("namespace") if isinstance(admission, dict) else ""
        if not namespace:
            return None
        return await self.policy(_mutating_kind(is_namespaced=True), f"{namespace}/{key}")

    async def _on_rule(
        self,
        changes: Changes,
        policy: CompiledPolicy,
        rule: CompiledRule,
        trigger: Request | None,
        key: Hashable,
    ) -> None:
        if trigger is not None and rule.stage is Stage.MUTATE_EXISTING:
            await self.on_request(changes, self.policies(policy, rule), trigger)
            return
        itself = in_place(rule)
        if itself is None:  # an expression names the targets of each existing trigger
            await self.on_existing(changes, self.policies(policy, rule), rule, _as_update)
            return

        def ask(subject: Subject) -> Request:
            if trigger is None:
                return _as_update(subject)
            return trigger.for_existing(subject.document, gvr=subject.kind.gvr, subresource=subject.subresource)

        # one pass does all requests for the objects of a policy that were made before it began
        one, entered = self._pass(key), time.monotonic()
        async with one.lock:
            if one.began <= entered:
                began, failed = time.monotonic(), len(changes.failures)
                await self.on_existing(changes, self.policies(policy, itself), itself, ask)
                if len(changes.failures) == failed:
                    one.began = began

    def _pass(self, key: Hashable) -> _Pass:
        if key not in self._passes and len(self._passes) >= _MAX_PASSES:
            self._passes = {each: one for each, one in self._passes.items() if one.lock.locked()}
        return self._passes.setdefault(key, _Pass())

    def report(self, review: Review) -> None:
        """Report each result on its target; of one that did not change, the identity is known where it was listed."""
        request = review.request
        for result in review.results:
            effect = next(iter(result.effects), None)
            if isinstance(effect, PatchEffect) and isinstance(effect.before, dict):
                target = effect.target
                info = self.context.state.kinds.find(GVK(*parse_api_version(target.api_version), target.kind))
                if info is not None:
                    self.context.reports.note(request.for_existing(effect.before, gvr=info.gvr), (result,))
            elif result.target == ResourceRef.of(request.object):
                self.context.reports.note(request, (result,))

    def is_selected(self, effect: PatchEffect) -> bool:
        """Leave out the objects that the resourceFilters of the ConfigMap name."""
        target = effect.target
        kind = GVK(*parse_api_version(target.api_version), target.kind)
        filters = self.context.state.configuration.filters_of(kind, effect.subresource)
        return not any(each.takes(kind, target.namespace, target.name) for each in filters)


def _mutating_kind(*, is_namespaced: bool) -> PolicyKind:
    return kind_of(Family.CEL, is_namespaced=is_namespaced, metric="mutating")


def _pass_key(found: Compiled, number: int, trigger: Request | None) -> tuple[object, ...]:
    """Return what a pass over all objects depends on: the policy as it is, and user and operation of a request."""
    metadata = found.document.value["metadata"]
    user = None if trigger is None else (str(trigger.user.to_json()), trigger.user.roles, trigger.user.cluster_roles)
    operation = "" if trigger is None else trigger.operation.value
    return metadata.get("uid"), metadata.get("resourceVersion"), number, user, operation


def _as_policy_event(subject: Subject) -> Request:
    return Request.from_policy_event(subject.document, gvr=subject.kind.gvr)


def _as_update(subject: Subject) -> Request:
    return Request.from_manifest(
        subject.document, operation=Operation.UPDATE, gvr=subject.kind.gvr, subresource=subject.subresource
    )
