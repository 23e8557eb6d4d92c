"""Does the work for one trigger: the engine evaluates the rules, and their effects are performed.

The state of the cluster decides, never earlier work, so that the work may be repeated at any time. A rule that fails
does not stop the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, TypeGuard

from pyverno.compiler.compile import Compiled
from pyverno.controllers.background.context import BackgroundContext
from pyverno.controllers.background.generating.downstreams import Downstream, Downstreams, identity_of_origin
from pyverno.controllers.background.generating.generatedkinds import GeneratedKinds
from pyverno.controllers.background.generating.rulefacts import RuleFacts, facts_of
from pyverno.controllers.background.generating.sources import ReadNotes, Source, Sources
from pyverno.controllers.background.generating.triggers import TriggerReader, is_of_part, is_trigger_of
from pyverno.controllers.background.generating.work import GenerationKey, Work, rule_key
from pyverno.controllers.background.generating.writer import Writer, policy_info
from pyverno.controllers.background.work import Awaited, Done, Waiting, reads_old
from pyverno.controllers.evidence import Refuted, Unsettled
from pyverno.controllers.state.policystore import Identity
from pyverno.engine.effects import CreateEffect
from pyverno.engine.origin import Origin
from pyverno.engine.phases import GENERATING
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Operation, Request
from pyverno.engine.result import ResourceRef, RuleResult, Status
from pyverno.engine.rule import CompiledPolicy, CompiledRule, Stage
from pyverno.errors import HostError, PyvernoError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.resource import Resource
from pyverno.kube.status import StatusError
from pyverno.policy.updaterequest import Trigger
from pyverno.value import dataclass, field, replace

__all__ = ["Generator"]

_NAMESPACES: Final = GVR("", "v1", "namespaces")
_EARLY_SECONDS: Final = 1.0
_LOOK_SECONDS: Final = 600.0
_MAX_SETS: Final = 1000
_NOT_FOUND: Final = 404
_FORBIDDEN: Final = 403
_POLICIES: Final[Mapping[str, GVR]] = {
    "kyverno.io/ClusterPolicy": GVR("kyverno.io", "v1", "clusterpolicies"),
    "kyverno.io/Policy": GVR("kyverno.io", "v1", "policies"),
    "policies.kyverno.io/GeneratingPolicy": GVR("policies.kyverno.io", "v1beta1", "generatingpolicies"),
    "policies.kyverno.io/NamespacedGeneratingPolicy": GVR(
        "policies.kyverno.io", "v1beta1", "namespacedgeneratingpolicies"
    ),
}


@dataclass(slots=True)
class _Run:
    """One piece of work, its policy and rules as they are now, and what went wrong or has to be waited for."""

    work: Work
    compiled: Compiled
    policy: CompiledPolicy
    rules: Mapping[str, RuleFacts]
    errors: list[PyvernoError] = field(default_factory=list)
    waits: dict[str, None] = field(default_factory=dict)
    on: dict[Awaited, None] = field(default_factory=dict)
    seconds: float = _LOOK_SECONDS
    refusal: str = ""

    def wait(self, message: str, awaited: Awaited, seconds: float = _LOOK_SECONDS) -> None:
        """Note that something has to be waited for."""
        self.waits[message] = self.on[awaited] = None
        self.seconds = min(self.seconds, seconds)

    def outcome(self) -> Done | Waiting:
        """Return the outcome; raises the first error."""
        if self.errors:
            raise self.errors[0].copied()
        if self.waits:
            return Waiting("; ".join(self.waits), tuple(self.on), self.seconds)
        return Done(self.refusal, is_refused=bool(self.refusal))


class _Restricted(NamedTuple):
    """Some rules of a policy, a set of them alone, and the operations that any of them names."""

    policy: CompiledPolicy
    rules: tuple[CompiledRule, ...]
    set: PolicySet
    operations: frozenset[Operation]

    @property
    def operation(self) -> Operation:
        """The operation under which to ask about an object as it is: one that the rules name, if they name any."""
        known = (each for each in (Operation.CREATE, Operation.UPDATE) if each in self.operations)
        return next(known, Operation.CREATE)


class Generator:
    """Brings generated objects up to date; used in the event loop."""

    def __init__(
        self,
        context: BackgroundContext,
        downstreams: Downstreams,
        sources: Sources[GenerationKey],
        kinds: GeneratedKinds,
        *,
        recheck: Callable[[Identity], None] = lambda _policy: None,
    ) -> None:
        """Take the parts; `recheck` is called with a policy that went away while its rules were at work."""
        self._context = context
        self._state = context.state
        self._downstreams = downstreams
        self._sources = sources
        self._kinds = kinds
        self._recheck = recheck
        self._sets: dict[tuple[Identity, frozenset[str]], _Restricted] = {}
        self.writer = Writer(context, downstreams, sources)
        self.triggers = TriggerReader(context.client, context.state)

    async def run(self, work: Work, *, body: JSONObject | None = None) -> Done | Waiting:
        """Bring what some rules generate for a trigger up to date; `body` is the trigger if it was just read.

        Raises HostError or StatusError for a failure, after all rules were tried.
        """
        compiled = await self._compile(work)
        if compiled is None or compiled.policy is None:
            return Done("the policy is gone")
        facts = facts_of(compiled)
        rules = {name: facts[name] for name in work.rules if name in facts}
        if not rules:
            return Done("the rules are gone")
        if not is_trigger_of(work.trigger, work.context):
            return Done("the request is for another object than its trigger", is_refused=True)
        run = _Run(work, compiled, compiled.policy, rules)
        found = body if body is not None else await self._find(work)
        if found is None:
            await self._without_trigger(run)
        elif _is_unchanged(work, found):
            self._await_trigger(run, "the change of the trigger has not happened yet")
        else:
            request = await self._request(run, found)
            if self._is_confirmed(request, run):
                await self._generate(run, rules, request)
        if work.policy not in self._state.store.compiled():
            self._recheck(work.policy)
        return run.outcome()

    def _is_confirmed(self, found: Request | Unsettled | Refuted, run: _Run) -> TypeGuard[Request]:
        """Return whether the API server confirms the request of the work; otherwise note what is to be done."""
        if isinstance(found, Unsettled) and not run.work.is_late:
            awaited = Awaited(found.info.gvr, found.namespace, found.name)
            run.wait(found.message, awaited, _EARLY_SECONDS)
        elif not isinstance(found, Request):
            run.refusal = found.message
        return isinstance(found, Request)  # guard: background: objects are generated for confirmed requests

    async def delete_listed(self, policy: Identity, targets: Iterable[ResourceRef]) -> None:
        """Delete objects that a policy, or a rule of it, left behind when it was deleted; others are left alone.

        Raises HostError or StatusError for a failure, after all objects were tried.
        """
        problem: PyvernoError | None = None
        for target in targets:
            try:
                await self._delete_left(policy, target)
            except (HostError, StatusError) as error:
                problem = problem or error.copied()
        if problem is not None:
            raise problem

    async def _delete_left(self, policy: Identity, target: ResourceRef) -> None:
        place = self.writer.place(target)
        body = await self.writer.read(place.gvr, place.namespace, place.name) if place is not None else None
        origin = Origin.of(body["metadata"].get("labels") or {}) if body is not None else None
        if place is None or origin is None or identity_of_origin(origin) != policy:
            return
        compiled = await self._compile(Work(policy, Trigger(), {origin.rule: True}))
        if origin.rule not in facts_of(compiled):
            reason = "the policy is gone" if compiled is None else "the rule is gone"
            await self.writer.delete(place.gvr, target, origin, policy_info(policy), reason)

    # ----------------------------------------------------------------------------------------------- policy and trigger

    async def _compile(self, work: Work) -> Compiled | None:
        """Return the policy; raises HostError while it has not arrived here in the version that has the rules."""
        compiled = self._state.store.compiled().get(work.policy)
        if compiled is not None and work.rules.keys() <= facts_of(compiled).keys():
            return compiled
        gvr = _POLICIES.get(work.policy[0])
        if gvr is None or self._state.kinds.by_resource(gvr) is None:
            return compiled
        _, namespace, name = work.policy
        stored = await self.writer.read(gvr, namespace, name)
        if stored is None:
            return None
        if compiled is None or not self._state.has_seen(gvr, name, namespace, stored["metadata"]["resourceVersion"]):
            raise HostError(f"policy {name} has not arrived here yet")
        return compiled

    async def _find(self, work: Work) -> JSONObject | None:
        context = work.context
        if context is None or not isinstance(context.request, dict):
            return await self.triggers.find(work.trigger)
        asked = context.request
        if is_of_part(context):  # what the API server holds of it is read when it is confirmed
            return {"metadata": {}}
        if context.operation == Operation.CREATE.value:
            return await self.triggers.find(work.trigger, newer_than="")
        if context.operation != Operation.UPDATE.value:
            return await self.triggers.find(work.trigger)
        # a finalizer keeps an object for as long as its owner likes: who changes it then is held to the rules as before
        version = _metadata(asked, "oldObject").get("resourceVersion")
        is_terminating = bool(_metadata(asked, "object").get("deletionTimestamp"))
        return await self.triggers.find(work.trigger, newer_than=version or None, is_terminating=is_terminating)

    async def _request(self, run: _Run, body: JSONObject) -> Request | Unsettled | Refuted:
        """Repeat the admission request with the current object, as far as the API server confirms it.

        Rules that name other operations, and synchronize, are evaluated as if the object was new.
        """
        context = run.work.context
        restricted = self._restricted(run, run.rules)
        operation = restricted.operation
        if context is None or context.operation == Operation.DELETE.value:
            return await self.triggers.request(body, operation)
        live = None if is_of_part(context) else body
        request = await self.triggers.confirm(context, live, reads_old=reads_old(run.compiled))
        if not isinstance(request, Request):
            return request
        is_other = bool(restricted.operations) and context.operation not in restricted.operations
        return replace(request, operation=operation, old=None) if is_other else request

    async def _without_trigger(self, run: _Run) -> None:
        """Generate by rules that match deletions; delete the synchronized objects of the others."""
        work, context = run.work, run.work.context
        at_deletion = {rule_key(rule.info) for rule in _rules(run) if rule.matcher.names_operation("DELETE")}
        if context is not None and context.operation == Operation.DELETE.value:
            generating = {name: run.rules[name] for name in run.rules if name in at_deletion and not work.rules[name]}
            if generating:
                request = await self.triggers.confirm(context, None, revision=work.revision)
                if self._is_confirmed(request, run):
                    await self._generate(run, generating, request)
        for name, facts in run.rules.items():
            if name not in at_deletion and facts.synchronize:
                await self._delete_all(run, facts, "the trigger is gone")
        if context is not None and context.operation == Operation.CREATE.value and not work.is_late:
            self._await_trigger(run, "the trigger does not exist yet")

    def _await_trigger(self, run: _Run, message: str) -> None:
        """Have the work done again when the trigger has changed, or soon: the request may have come to nothing."""
        trigger = run.work.trigger
        info = self.triggers.info(trigger)
        awaited = Awaited(info.gvr, trigger.namespace if info.namespaced else "", trigger.name)
        run.wait(message, awaited, _EARLY_SECONDS)

    # ------------------------------------------------------------------------------------------------------- evaluation

    async def _generate(self, run: _Run, rules: Mapping[str, RuleFacts], request: Request) -> None:
        notes: ReadNotes[GenerationKey] = ReadNotes(self._sources)
        restricted = self._restricted(run, rules)
        review = await self._context.review(restricted.set, request, GENERATING, reads=notes)
        results = {rule_key(result.rule): result for result in review.results}
        if run.work.is_reported:
            self._context.reports.note(request, review.results)
        lapsed = {rule_key(rule.info) for rule in restricted.rules if _has_lapsed(rule, request)}
        for name, facts in rules.items():
            result = None if name in lapsed else results.get(name)
            if result is None or (result.status is Status.SKIP and not result.exceptions):
                if facts.synchronize and (run.work.rules[name] or not name):
                    await self._delete_all(run, facts, "the rule no longer applies")
                continue
            self._follow(run, facts, result, notes)
            await self._apply(run, result)
            try:
                if result.status is Status.ERROR:
                    await self._note_failure(run, facts, result, notes)
                elif result.status is Status.PASS and facts.synchronize:
                    await self._prune(run, facts, result)
            except (HostError, StatusError) as error:
                run.errors.append(error.copied())

    def _restricted(self, run: _Run, rules: Mapping[str, RuleFacts]) -> _Restricted:
        """Return some rules of a policy and a set of them alone; sets are kept, because each makes its plans once."""
        key = run.work.policy, frozenset(rules)
        exceptions = self._state.store.policies.all.exceptions
        known = self._sets.get(key)
        if known is not None and known.policy is run.policy and known.set.exceptions is exceptions:
            return known
        kept = tuple(rule for rule in _rules(run) if rule_key(rule.info) in rules)
        if len(self._sets) >= _MAX_SETS:
            self._sets = {}
        policies = PolicySet([replace(run.policy, rules=kept)], exceptions, asks_all=True)
        named = (each for each in Operation if any(rule.matcher.names_operation(each.value) for rule in kept))
        found = self._sets[key] = _Restricted(run.policy, kept, policies, frozenset(named))
        return found

    def _follow(self, run: _Run, facts: RuleFacts, result: RuleResult, notes: ReadNotes[GenerationKey]) -> None:
        """Follow what a rule copies, so that a change of it wakes the rule."""
        if not facts.synchronize:
            return
        key = GenerationKey(run.work.policy, facts.name, run.work.trigger)
        copied = {self.writer.place(effect.source) for effect in _created(result) if effect.source is not None}
        for source, version in notes.versions():
            if source in copied or (result.status is Status.ERROR and not version):
                self._sources.follow(source, key, version=version)
        for listed in notes.lists:
            self._sources.follow(listed, key)

    async def _apply(self, run: _Run, result: RuleResult) -> None:
        """Perform the effects of one rule in order; one that fails does not stop the others."""
        rule, failed = result.rule, result.status is Status.ERROR
        for effect in _created(result):
            try:
                await self.writer.create(run.work, run.compiled, rule, effect)
            except (StatusError, HostError) as error:
                namespace = ResourceRef.of(effect.resource).namespace
                if isinstance(error, StatusError) and namespace and _lacks_namespace(error, namespace):
                    run.wait(error.message, Awaited(_NAMESPACES, "", namespace))
                    continue
                failed = True
                self.writer.report_failure(run.work, rule_key(rule), rule.policy, error.message)
                run.errors.append(error.copied())
        if not failed:
            self.writer.forget_failure(run.work, rule_key(rule))

    async def _note_failure(
        self, run: _Run, facts: RuleFacts, result: RuleResult, notes: ReadNotes[GenerationKey]
    ) -> None:
        """Note the error of a rule; what was copied from an object that is gone is deleted.

        A rule that no longer applies has no other work, and waits for nothing.
        """
        if not run.work.rules[facts.name]:
            self.writer.report_failure(run.work, facts.name, run.policy.info, result.message)
        for source in notes.missing:
            for copy in await self._own(run, facts) if facts.synchronize else ():
                if copy.source == source[:3]:
                    await self._delete(run, copy, "its source is gone")
            if not run.work.rules[facts.name]:
                run.wait(result.message, Awaited(*source[:3]))
        if notes.has_failed:
            run.errors.append(HostError(result.message))
        elif not notes.missing:
            # the result is the same until the policy changes; a change of the trigger makes another request
            self._await_policy(run, result.message)

    def _await_policy(self, run: _Run, message: str) -> None:
        gvr = _POLICIES[run.work.policy[0]]
        run.wait(message, Awaited(gvr, *run.work.policy[1:]))

    # --------------------------------------------------------------------------------------------------------- deletion

    async def _prune(self, run: _Run, facts: RuleFacts, result: RuleResult) -> None:
        """Delete what a rule generated for a trigger earlier and does not want any more.

        Policies in CEL delete everything of that kind; rules only copies whose source is gone, as Kyverno's do.
        """
        own = [known for known in await self._own(run, facts) if not facts.name or known.source is not None]
        wanted = {self.writer.place(ResourceRef.of(effect.resource)) for effect in _created(result)} if own else ()
        for known in own:
            if Source(*known.place) in wanted:
                continue
            if not facts.name:
                await self._delete(run, known, "the policy no longer generates it")
            elif known.source is not None and await self.writer.read(*known.source) is None:
                await self._delete(run, known, "its source is gone")

    async def _own(self, run: _Run, facts: RuleFacts) -> tuple[Downstream, ...]:
        """Return what a rule generated for the trigger, in this replica or another; raises HostError, StatusError."""
        await self._kinds.settle(facts)
        return tuple(self._downstreams.of_trigger(run.work.policy, facts.name, run.work.trigger.uid))

    async def _delete(self, run: _Run, known: Downstream, reason: str) -> None:
        await self.writer.delete(known.gvr, known.target, known.origin, run.policy.info, reason)

    async def _has_trigger(self, run: _Run, known: Downstream) -> bool:
        """Return whether an object has another trigger than that of the work, by uid or name, and that still exists."""
        own, asked = known.trigger, run.work.trigger
        if (own.uid, own.name or asked.name) == (asked.uid, asked.name):
            return False
        return await self.triggers.find(own) is not None

    async def _delete_all(self, run: _Run, facts: RuleFacts, reason: str) -> None:
        """Delete everything that a rule generated for the trigger, as the API server has it now.

        The trigger may be what the labels of one object claim; the others are deleted only if theirs claim the same.
        """
        work = run.work
        try:
            await self._kinds.settle(facts)
            kinds = dict.fromkeys((*self._kinds.of_rule(facts), *self._downstreams.kinds_of(work.policy)))
            for known in await self._downstreams.list_of(work.policy, facts.name, work.trigger, tuple(kinds)):
                if not known.was_triggered_by(work.trigger):  # guard: an object falls with the trigger that it names
                    continue
                if not await self._has_trigger(run, known):
                    await self._delete(run, known, reason)
        except (HostError, StatusError) as error:
            self.writer.report_failure(work, facts.name, run.policy.info, error.message)
            run.errors.append(error.copied())
        self._sources.release(GenerationKey(work.policy, facts.name, work.trigger))


def _rules(run: _Run) -> tuple[CompiledRule, ...]:
    """Return the compiled rules of the work."""
    return tuple(rule for rule in run.policy.rules if rule.stage is Stage.GENERATE and rule_key(rule.info) in run.rules)


def _has_lapsed(rule: CompiledRule, request: Request) -> bool:
    """Return whether a policy in CEL is only about the object as it was before an update.

    Its selectors match an update by either object, and what it generated is to follow the object as it is.
    """
    if rule_key(rule.info) or request.object is None or request.old is None:
        return False
    now = replace(request, old=None)
    return rule.matcher.mismatch(now, Resource(request.object)) is not None


def _created(result: RuleResult) -> tuple[CreateEffect, ...]:
    return tuple(effect for effect in result.effects if isinstance(effect, CreateEffect))


def _is_unchanged(work: Work, found: JSONObject) -> bool:
    """Return whether the trigger still is as it was when the request that triggered the work was answered.

    A request is answered before the API server stores the change.
    """
    context = work.context
    if work.is_late or context is None or not isinstance(context.request, dict) or context.request.get("subResource"):
        return False
    if context.operation == Operation.DELETE.value:
        return True
    version = _metadata(context.request, "oldObject").get("resourceVersion")
    is_update = context.operation == Operation.UPDATE.value
    return is_update and bool(version) and version == found["metadata"].get("resourceVersion")


def _metadata(request: JSONObject, side: str) -> JSONObject:
    body = request.get(side)
    metadata = body.get("metadata") if isinstance(body, dict) else None
    return metadata if isinstance(metadata, dict) else {}


def _lacks_namespace(error: StatusError, namespace: str) -> bool:
    """Return whether an object cannot be created because its namespace does not exist or is being deleted."""
    if error.status == _NOT_FOUND:
        return f'namespaces "{namespace}" not found' in error.message
    return error.status == _FORBIDDEN and "because it is being terminated" in error.message
