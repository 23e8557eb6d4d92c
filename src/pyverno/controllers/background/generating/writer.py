"""Writes generated objects: creates and updates by the effects of rules, deletes what rules generated, emits events.

What this controller writes is noted in `Downstreams` at once. An object is deleted only if it was just read and still
has the labels of its rule.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from pyverno.compiler.compile import Compiled
from pyverno.controllers.applier import Applied, Cause, Change
from pyverno.controllers.background.context import BackgroundContext
from pyverno.controllers.background.generating.downstreams import Downstreams
from pyverno.controllers.background.generating.sources import Source, Sources
from pyverno.controllers.background.generating.work import GenerationKey, Work, rule_key
from pyverno.controllers.background.requester import requester_of
from pyverno.controllers.runtime.events import Event
from pyverno.controllers.state.policystore import Identity
from pyverno.engine.effects import CreateEffect, DeleteEffect
from pyverno.engine.origin import CLONE_SOURCE, Origin
from pyverno.engine.request import User
from pyverno.engine.result import ResourceRef
from pyverno.engine.rule import Family, PolicyInfo, RuleInfo
from pyverno.kube.gvk import GVK, GVR, parse_api_version
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.policy.updaterequest import Trigger
from pyverno.value import replace
from pyverno.webhook.authors import author_of

__all__ = ["Writer", "policy_info", "policy_ref", "trigger_ref"]

_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_REFUSED: Final = (403, 404, 409)
_EVENT_SOURCE: Final = "kyverno-generate"
_CEL_VERSION: Final = "policies.kyverno.io/v1beta1"
_MAX_TOLD: Final = 1000
_MAX_AUTHORS: Final = 10_000


class Writer:
    """Writes by the applier that all controllers share."""

    def __init__(self, context: BackgroundContext, downstreams: Downstreams, sources: Sources[GenerationKey]) -> None:
        """Take the parts."""
        self._context = context
        self._downstreams = downstreams
        self._sources = sources
        self._marked: set[Source] = set()
        self._authors: dict[Identity, User] = {}
        self._failures: OrderedDict[GenerationKey, str] = OrderedDict()

    def place(self, ref: ResourceRef) -> Source | None:
        """Return where an object is, None for a kind that is not served."""
        info = self._context.state.kinds.find(GVK(*parse_api_version(ref.api_version), ref.kind))
        if info is None:
            return None
        return Source(info.gvr, (ref.namespace or "default") if info.namespaced else "", ref.name)

    async def read(self, gvr: GVR, namespace: str, name: str) -> JSONObject | None:
        """Return an object, None when it does not exist."""
        try:
            return await self._context.client.get(gvr, name, namespace)
        except StatusError as error:
            if error.status != _NOT_FOUND:
                raise
            return None

    async def create(self, work: Work, compiled: Compiled, rule: RuleInfo, effect: CreateEffect) -> None:
        """Bring one object to what a rule wants; raises HostError, StatusError."""
        place = self.place(ResourceRef.of(effect.resource))
        cause = Cause(
            policy=policy_ref(rule.policy),
            rule=rule_key(rule),
            trigger=trigger_ref(work.trigger),
            reason=work.reason,
            source=effect.source,
            goes_with_policy=effect.synchronize and not effect.orphan_on_policy_delete,
            generation=int((compiled.document.value.get("metadata") or {}).get("generation") or 0),
            requester=requester_of(compiled, work.context),
            author=author_of(compiled.document.value),
        )
        current: JSONObject | None = None
        if place is not None:
            self._downstreams.follow(place.gvr)
            if effect.synchronize and self._downstreams.get(place.gvr, place.namespace, place.name) is not None:
                current = await self.read(place.gvr, place.namespace, place.name)
        if effect.source is not None and effect.synchronize and effect.adopts:
            await self._mark(effect.source, cause)
        if not work.adopts:
            effect = replace(effect, adopts=False)
        applied = await self._context.applier.apply(effect, cause, current=current)
        if place is not None and applied.body is not None and applied.change is not Change.UNCHANGED:
            self._downstreams.note(place.gvr, applied.body)
        if applied.change is Change.CREATED:
            self._report_created(work, rule, applied)

    async def _mark(self, ref: ResourceRef, cause: Cause) -> None:
        """Label an object that is copied, by which the admission controller notices its changes."""
        place = self.place(ref)
        if place is None or place in self._marked:
            return
        self._marked.add(place)
        body = await self.read(place.gvr, place.namespace, place.name)
        labels = (body["metadata"].get("labels") or {}) if body is not None else {}
        if body is None or CLONE_SOURCE in labels:
            return
        marked = {**body, "metadata": {**body["metadata"], "labels": {**labels, CLONE_SOURCE: ""}}}
        try:
            await self._context.applier.authorize(cause, "update", place.gvr, ref)
            await self._context.client.update(place.gvr, marked, place.namespace)
        except StatusError as error:
            # without the label changes are noticed too, as long as this controller runs
            if error.status not in _REFUSED:
                raise

    async def delete(self, gvr: GVR, target: ResourceRef, origin: Origin, policy: PolicyInfo, reason: str) -> None:
        """Delete a generated object if its labels still name this origin; raises HostError, StatusError.

        One of a deleted policy whose author is not known any more stays, which an event says.
        """
        body = await self.read(gvr, target.namespace, target.name)
        now = Origin.of(body["metadata"].get("labels") or {}) if body is not None else None
        if body is not None and now is not None and _is_same(now, origin):
            cause = Cause(policy_ref(policy), origin.rule, origin.trigger, reason, author=self._author(policy))
            try:
                await self._context.applier.apply(DeleteEffect(target), cause, current=body)
            except StatusError as error:
                if error.status != _FORBIDDEN or self._is_known(policy):
                    raise
                self._context.notify(Event.of_error(cause.policy, error.message, target, source=_EVENT_SOURCE))
        self._downstreams.forget(gvr, target.namespace, target.name)

    def note_author(self, identity: Identity, compiled: Compiled) -> None:
        """Remember the author of a policy, whose objects may have to be deleted after it."""
        author = author_of(compiled.document.value)
        if len(self._authors) >= _MAX_AUTHORS:
            self._authors.clear()
        if identity[1] and author is not None:
            self._authors[identity] = author

    def _author(self, policy: PolicyInfo) -> User | None:
        """Return the author of a policy, also of one that was deleted since this process began."""
        identity = _identity(policy)
        compiled = self._context.state.store.compiled().get(identity)
        return author_of(compiled.document.value) if compiled is not None else self._authors.get(identity)

    def _is_known(self, policy: PolicyInfo) -> bool:
        return _identity(policy) in self._context.state.store.compiled()

    # ----------------------------------------------------------------------------------------------------------- events

    def report_failure(self, work: Work, rule: str, policy: PolicyInfo, message: str) -> None:
        """Report the failure of a rule by an event on its policy, once for each reason and trigger."""
        key = GenerationKey(work.policy, rule, work.trigger)
        if self._failures.get(key) == message:
            return
        self._failures[key] = message
        if len(self._failures) > _MAX_TOLD:
            self._failures.popitem(last=False)
        trigger = trigger_ref(work.trigger)
        self._context.notify(Event.of_error(policy_ref(policy), message, trigger, source=_EVENT_SOURCE))

    def forget_failure(self, work: Work, rule: str) -> None:
        """Note that a rule works again."""
        if not self._failures:
            return
        self._failures.pop(GenerationKey(work.policy, rule, work.trigger), None)

    def _report_created(self, work: Work, rule: RuleInfo, applied: Applied) -> None:
        if not self._context.state.configuration.generates_success_events:
            return
        target, policy = applied.target, rule.policy
        shown = f"{policy.key}/{rule_key(rule)}" if rule_key(rule) else policy.key
        note = f"Created {target.kind} {target.name} as a result of applying policy {shown}"
        trigger = trigger_ref(work.trigger)
        self._context.notify(Event("PolicyApplied", "None", note, target, trigger, _EVENT_SOURCE))
        ref = policy_ref(policy)
        self._context.notify(Event("PolicyApplied", "None", "resource generated", ref, target, _EVENT_SOURCE))


def policy_info(identity: Identity) -> PolicyInfo:
    """Return the info of a policy that may no longer exist."""
    group_kind, namespace, name = identity
    group, _, kind = group_kind.partition("/")
    if group == "kyverno.io":
        return PolicyInfo(kind, "kyverno.io/v1", name, Family.RULES, namespace)
    return PolicyInfo(kind, "policies.kyverno.io/v1beta1", name, Family.CEL, namespace)


def _identity(policy: PolicyInfo) -> Identity:
    return f"{policy.api_version.partition('/')[0]}/{policy.kind}", policy.namespace, policy.name


def policy_ref(policy: PolicyInfo) -> ResourceRef:
    """Name a policy in events."""
    # COMPAT: Kyverno names policies in CEL by this version, whichever is stored
    version = policy.api_version if policy.api_version.startswith("kyverno.io/") else _CEL_VERSION
    return ResourceRef(version, policy.kind, policy.namespace, policy.name)


def trigger_ref(trigger: Trigger) -> ResourceRef:
    """Name a trigger in events and annotations."""
    return ResourceRef(trigger.api_version, trigger.kind, trigger.namespace, trigger.name)


def _is_same(now: Origin, then: Origin) -> bool:
    return (now.policy, now.policy_namespace, now.rule, now.trigger_uid) == (
        then.policy,
        then.policy_namespace,
        then.rule,
        then.trigger_uid,
    )
