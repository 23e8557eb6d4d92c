"""Follows policies: generates for existing triggers; generated objects follow changes and deletion of rules.

Generated objects name their policy by labels and an annotation, so that changes made while no controller ran are
handled as well. An invalid policy changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import orjson

from pyverno.compiler.compile import Compiled
from pyverno.controllers.applier import CAUSE_ANNOTATION
from pyverno.controllers.background.context import BackgroundContext
from pyverno.controllers.background.generating.downstreams import Downstream, Downstreams
from pyverno.controllers.background.generating.generatedkinds import GeneratedKinds, preferred_kinds
from pyverno.controllers.background.generating.generator import Generator
from pyverno.controllers.background.generating.rulefacts import RuleFacts, facts_of
from pyverno.controllers.background.generating.triggers import trigger_of
from pyverno.controllers.background.generating.work import GenerationKey, Work
from pyverno.controllers.background.generating.writer import policy_info
from pyverno.controllers.background.work import Waiting
from pyverno.controllers.runtime.reconcile import Again, Controller, LoopSettings
from pyverno.controllers.state.permissions import resources_of
from pyverno.controllers.state.policystore import Identity
from pyverno.controllers.state.targets import targets_of
from pyverno.engine.origin import POLICY_LABELS
from pyverno.engine.result import ResourceRef
from pyverno.engine.rule import CompiledPolicy, Family
from pyverno.errors import HostError
from pyverno.kube.gvk import GVK, GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindInfo, KindTable
from pyverno.kube.resource import Resource
from pyverno.kube.status import StatusError
from pyverno.policy.cel.policies import GeneratingPolicy
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.generate import Generate

__all__ = ["GeneratingPolicies"]

_AT_ONCE: Final = 10
_NOT_FOUND: Final = 404
_KINDS: Final = frozenset(
    {
        "kyverno.io/ClusterPolicy",
        "kyverno.io/Policy",
        "policies.kyverno.io/GeneratingPolicy",
        "policies.kyverno.io/NamespacedGeneratingPolicy",
    }
)

log = logging.getLogger("pyverno.background")


class _Done(NamedTuple):
    """In which state of a policy, for which kinds and when what exists was generated for."""

    compiled: Compiled
    kinds: tuple[KindInfo, ...]
    at: float


class GeneratingPolicies:
    """Reconciles one policy at a time; `controller` runs it."""

    def __init__(
        self,
        context: BackgroundContext,
        generator: Generator,
        downstreams: Downstreams,
        kinds: GeneratedKinds,
        keep: Controller[GenerationKey],
    ) -> None:
        """Take the parts; `keep` keeps what was generated for a trigger in step."""
        self._context = context
        self._state = context.state
        self._generator = generator
        self._downstreams = downstreams
        self._generated = kinds
        self._keep = keep
        self._seen: dict[Identity, Compiled] = {}
        self._done: dict[Identity, _Done] = {}
        self._kinds: KindTable | None = None
        self._before: dict[Identity, Compiled] = {}
        self.controller: Controller[Identity] = Controller(
            "generate-policies",
            self.reconcile,
            keys=self._keys,
            prepare=self._prepare,
            settings=LoopSettings(
                workers=2, backoff=context.settings.backoff, resync_seconds=context.settings.scan_seconds
            ),
            metrics=context.metrics,
        )
        context.state.store.listen(self._note)
        context.state.listen(self._note_kinds)

    def _keys(self) -> Iterable[Identity]:
        """Return all generating policies, and deleted ones whose generated objects still exist."""
        self._seen = self._generating()
        return dict.fromkeys((*self._seen, *self._downstreams.policies()))

    def _generating(self) -> dict[Identity, Compiled]:
        return {key: item for key, item in self._state.store.compiled().items() if _generates(key, item)}

    def _note(self, identity: Identity) -> None:
        """Have the policy reconciled that has changed, when it generates or has generated until now."""
        before, now = self._seen.pop(identity, None), self._state.store.compiled().get(identity)
        if now is not None and _generates(identity, now):
            self._seen[identity] = now
        if self._seen.get(identity) is not before:
            self.controller.add(identity)

    def _note_kinds(self) -> None:
        """Have all policies reconciled when the cluster serves other kinds: rules may be about them."""
        if self._state.kinds is not self._kinds:
            self._kinds = self._state.kinds
            self.controller.add_all()

    # ----------------------------------------------------------------------------------------------------- preparation

    async def _prepare(self) -> None:
        """Find out what exists of the kinds that are generated, before anything is concluded from what does not."""
        self._generated.follow(self._generating().values())
        if any(identity[0].startswith("policies.") for identity in self._generating()):
            await self._generated.find()
        for gvr in self._downstreams.followed():
            await self._downstreams.arrived(gvr)
        self._done = {}

    # ------------------------------------------------------------------------------------------------------ reconciling

    async def reconcile(self, identity: Identity) -> Again | None:
        """Bring a policy's generated objects up to date; raises HostError, StatusError."""
        compiled = self._state.store.compiled().get(identity)
        if compiled is not None and (compiled.errors or compiled.policy is None):
            return None
        self._generated.follow([compiled] if compiled is not None else [])
        if identity[0].startswith("policies.") and self._generated.are_shared:
            await self._generated.find()
        before, facts = self._before.get(identity), facts_of(compiled)
        for known in tuple(self._downstreams.of_policy(identity)):
            rule = facts.get(known.origin.rule)
            earlier = facts_of(before).get(known.origin.rule)
            if rule is None:
                if earlier.goes_with_policy(known) if earlier is not None else known.goes_with_policy:
                    reason = "the policy is gone" if compiled is None else "the rule is gone"
                    await self._generator.writer.delete(
                        known.gvr, known.target, known.origin, policy_info(identity), reason
                    )
            else:
                await self._follow_change(known, rule, earlier, compiled)
        if compiled is None:
            self._before.pop(identity, None)
            self._done.pop(identity, None)
            return None
        self._before[identity] = compiled
        self._generator.writer.note_author(identity, compiled)
        rules = {name: False for name, rule in facts.items() if rule.on_existing}
        kinds = tuple(dict.fromkeys(self._kinds_of(compiled, rules))) if rules else ()
        if rules and self._is_due(identity, compiled, kinds):
            await self._generate_existing(identity, compiled, rules, kinds)
            self._done[identity] = _Done(compiled, kinds, time.monotonic())
        return None

    def _is_due(self, identity: Identity, compiled: Compiled, kinds: tuple[KindInfo, ...]) -> bool:
        """Return whether what exists is to be generated for: after a change, and once in an interval."""
        done = self._done.get(identity)
        if done is None or done.compiled is not compiled or done.kinds != kinds:
            return True
        return time.monotonic() - done.at >= self._context.settings.scan_seconds

    async def _follow_change(
        self, known: Downstream, rule: RuleFacts, earlier: RuleFacts | None, compiled: Compiled | None
    ) -> None:
        """Let one generated object follow a change of its rule."""
        if earlier is not None and earlier.target != rule.target:
            await self._detach(known)
        elif rule.synchronize and known.policy_generation != _generation(compiled):
            self._keep.add(GenerationKey(known.policy, known.origin.rule, known.trigger))
        elif known.goes_with_policy and not rule.goes_with_policy(known):
            await self._mark_kept(known)

    async def _detach(self, known: Downstream) -> None:
        """Take the labels of the rule off an object: the rule now generates another one. It stays."""
        labels = dict.fromkeys(POLICY_LABELS)
        await self._patch(known, {"metadata": {"labels": labels, "annotations": {CAUSE_ANNOTATION: None}}})
        self._downstreams.forget(*known.place)

    async def _mark_kept(self, known: Downstream) -> None:
        """Note on an object that it outlives its rule: it is not kept in step any more."""
        said = {"policy": known.origin.policy, "rule": known.origin.rule, "reason": "no longer synchronized"}
        annotation = orjson.dumps({key: value for key, value in said.items() if value}).decode()
        stored = await self._patch(known, {"metadata": {"annotations": {CAUSE_ANNOTATION: annotation}}})
        if stored is not None:
            self._downstreams.note(known.gvr, stored)

    async def _patch(self, known: Downstream, patch: JSONObject) -> JSONObject | None:
        """Change the metadata of a generated object that is still the same; None where it is gone."""
        body = await self._read(known)
        if body is None:
            return None
        changed = _merge(body, patch)
        return await self._context.client.update(known.gvr, changed, known.target.namespace)

    async def _read(self, known: Downstream) -> JSONObject | None:
        try:
            found = await self._context.client.get(known.gvr, known.target.name, known.target.namespace)
        except StatusError as error:
            if error.status != _NOT_FOUND:
                raise
            return None
        return found if found["metadata"].get("uid") == known.uid else None

    # -------------------------------------------------------------------------------------------------- what exists

    async def _generate_existing(
        self, identity: Identity, compiled: Compiled, rules: Mapping[str, bool], kinds: Iterable[KindInfo]
    ) -> None:
        """Generate for all triggers that exist; those that fail are retried by themselves."""
        if compiled.policy is None:
            return
        limit = asyncio.Semaphore(_AT_ONCE)

        async def generate(info: KindInfo, body: JSONObject, names: Mapping[str, bool]) -> None:
            trigger = trigger_of(body, info)
            work = Work(identity, trigger, names, reason="the object exists")
            async with limit:
                try:
                    outcome = await self._generator.run(work, body=body)
                except (HostError, StatusError):
                    outcome = Waiting("")
            if isinstance(outcome, Waiting):
                for name in names:
                    self._keep.add(GenerationKey(identity, name, trigger), after=1.0)

        async with asyncio.TaskGroup() as group:
            async for info, body in self._triggers(compiled, kinds):
                names = await self._matching(compiled.policy, body, rules)
                if names:
                    group.create_task(generate(info, body, names))

    async def _triggers(
        self, compiled: Compiled, kinds: Iterable[KindInfo]
    ) -> AsyncIterator[tuple[KindInfo, JSONObject]]:
        """Yield the objects of some kinds that a policy may be about."""
        namespace = (compiled.written.namespace if compiled.written is not None else "") or ""
        for info in kinds:
            if namespace and not info.namespaced:
                continue
            listed = await self._context.client.list(info.gvr, namespace)
            for item in listed["items"]:
                if not item["metadata"].get("deletionTimestamp"):
                    yield info, {"apiVersion": info.api_version, "kind": info.kind, **item}

    def _kinds_of(self, compiled: Compiled, rules: Mapping[str, bool]) -> Iterator[KindInfo]:
        """Yield the kinds that rules match, as far as the cluster serves them."""
        written, kinds = compiled.written, self._state.kinds
        if isinstance(written, ClusterPolicy):
            for rule in written.spec.rules:
                if rule.name in rules and isinstance(rule.action, Generate):
                    yield from (info for text in rule.match.kinds() for info in _select(text, kinds))
        elif isinstance(written, GeneratingPolicy):
            for wanted in resources_of(written.spec.match_constraints):
                yield from (info for info in preferred_kinds(kinds) if _is_wanted(info, wanted))

    async def _matching(
        self, policy: CompiledPolicy, body: JSONObject, rules: Mapping[str, bool]
    ) -> Mapping[str, bool]:
        """Return the rules that match an object; whether they apply is left to the engine."""
        request = await self._generator.triggers.request(body)
        resource = Resource(body)
        is_cel = policy.info.family is Family.CEL
        if is_cel and self._is_filtered(request.gvk, body):
            return {}
        found: dict[str, bool] = {}
        for rule in policy.rules:
            name = "" if is_cel else rule.info.name
            if name in rules and (
                rule.matcher.names_operation("UPDATE") or not rule.matcher.mismatch(request, resource)
            ):
                found[name] = False
        return found

    def _is_filtered(self, kind: GVK, body: JSONObject) -> bool:
        ref = ResourceRef.of(body)
        filters = self._state.configuration.filters_of(kind, "")
        return any(each.takes(kind, ref.namespace, ref.name) for each in filters)


def _generates(identity: Identity, compiled: Compiled) -> bool:
    return identity[0] in _KINDS and bool(facts_of(compiled) or compiled.errors)


def _select(text: str, kinds: KindTable) -> Iterator[KindInfo]:
    """Yield the kinds that a kind selector matches."""
    for target in targets_of(text, kinds):
        found = kinds.by_resource(GVR(target.group, target.version, target.resource))
        if found is not None and not target.subresource:
            yield found


def _is_wanted(info: KindInfo, wanted: GVR) -> bool:
    """Return whether the rule of a constraint matches a kind."""
    pairs = ((wanted.group, info.group), (wanted.version, info.version), (wanted.resource, info.plural))
    return all(text in ("*", name) for text, name in pairs)


def _generation(compiled: Compiled | None) -> int:
    return int((compiled.document.value.get("metadata") or {}).get("generation") or 0) if compiled is not None else 0


def _merge(body: JSONObject, patch: JSONObject) -> JSONObject:
    """Return an object with labels and annotations changed; None takes one away."""
    metadata = dict(body["metadata"])
    for field, changes in patch["metadata"].items():
        merged = {**(metadata.get(field) or {}), **changes}
        metadata[field] = {key: value for key, value in merged.items() if value is not None}
    return {**body, "metadata": metadata}
