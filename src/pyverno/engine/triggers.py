"""The generate and mutate-existing rules that a request triggers.

The rules run later, elsewhere; this module only decides whether the request triggers them: match, exceptions and
conditions. A rule for which this cannot be decided is triggered as well, so that the worker reports the error. This
module must never read the objects that a rule would make or change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Protocol, runtime_checkable

from pyverno.engine.engine import Engine
from pyverno.engine.faults import error_verdict
from pyverno.engine.host import Host
from pyverno.engine.match import IndexKey
from pyverno.engine.phases import GENERATING, MUTATING, MUTATING_EXISTING
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Operation, Request
from pyverno.engine.result import RuleResult, Status, Verdict
from pyverno.engine.rule import Action, CompiledPolicy, CompiledRule, Exemption, Family, RuleInfo, Run, Stage
from pyverno.kube.resource import Resource
from pyverno.value import dataclass, replace

__all__ = ["Trigger", "Triggers"]

_DELETE = Operation.DELETE.value
_PHASES = (*MUTATING, *MUTATING_EXISTING, *GENERATING)
_ABOUT = (Status.PASS, Status.ERROR)
_MEMO_LIMIT = 1024

Place = tuple[str, str, str]
"""Kind, key and rule name."""


@runtime_checkable
class Generator(Protocol):
    """An action that makes objects."""

    @property
    def synchronize(self) -> bool:
        """Whether generated objects follow their source."""
        ...


@runtime_checkable
class HasTrigger(Protocol):
    """An action that decides by itself, beyond match and preconditions, whether a request triggers it."""

    def triggered(self, run: Run) -> Sequence[Verdict]:
        """Pass when the request triggers the rule, without doing its work; no verdict when it does not."""
        ...


@dataclass(frozen=True, slots=True)
class Trigger:
    """One rule that a request triggers.

    `generates`: the rule makes objects (else it changes existing ones). `deletes`: objects that it made earlier for
    this one are to be deleted, because it no longer applies. `synchronizes`: objects that it no longer makes are to be
    deleted. `error` is the reason why it is not known whether the rule applies.
    """

    rule: RuleInfo
    generates: bool
    deletes: bool = False
    synchronizes: bool = False
    error: str = ""


class Triggers:
    """The rules of some policies that work after a request; made once for a set of policies.

    >>> len(Triggers(PolicySet()))
    0
    """

    __slots__ = ("_generating", "_matched", "_memo", "_rules", "_whole")

    def __init__(self, policies: PolicySet) -> None:
        """Take policies and exceptions; only rules that make objects or change existing ones are kept."""
        self._rules: dict[Place, CompiledRule] = {}
        whole: list[CompiledPolicy] = []
        matched: list[CompiledPolicy] = []
        self._generating: list[CompiledRule] = []
        self._memo: dict[IndexKey, tuple[CompiledRule, ...]] = {}
        for policy in policies.policies:
            if not policy.info.admission:
                continue
            kept = [rule for rule in policy.rules if _is_later(rule)]
            self._generating.extend(rule for rule in kept if _is_matched_alone(rule))
            legacy = [rule for rule in kept if not _is_matched_alone(rule)]
            self._rules.update((_place(rule.info), rule) for rule in kept)
            if legacy:
                whole.append(CompiledPolicy(policy.info, tuple(_with_trigger_only(rule) for rule in legacy)))
                makers = [
                    replace(_with_trigger_only(rule), guards=()) for rule in legacy if rule.stage is Stage.GENERATE
                ]
                matched.append(CompiledPolicy(policy.info, tuple(makers)))
        self._whole = PolicySet(whole, policies.exceptions)
        self._matched = PolicySet(matched, policies.exceptions)

    def __len__(self) -> int:
        return len(self._rules)

    def of(self, request: Request, host: Host, *, deadline: float | None = None) -> tuple[Trigger, ...]:
        """Return the rules that a request triggers; never raises for a policy or a host."""
        if request.operation is Operation.DELETE:
            found = self._of_deletion(request, host, deadline)
        else:
            found = chain(self._of_object(request, host, deadline), self._find_lapsed(request, host, deadline))
        return (*found, *self._of_generating(request))

    def concerns(self, request: Request) -> bool:
        """Return, from the index key of a request alone, whether it can trigger a rule."""
        key = _key(request, request.operation)
        return any(
            set_.plan(phases, key) for set_, phases in ((self._whole, _PHASES), (self._matched, GENERATING))
        ) or bool(self._generating and self._about(request))

    def skips_background(self, rule: RuleInfo) -> bool:
        """Return whether requests of the background controller's account never trigger a rule."""
        return self._rules[_place(rule)].skips_background_requests

    def keeps_in_step(self, kind: str, key: str, rule: str, request: Request) -> bool:
        """Return whether a rule synchronizes the object of a request, which it generated or copies.

        `of` returns the rules that the object itself triggers.
        """
        found = self._rules.get((kind, key, rule))
        if found is None or not _synchronizes(found):
            return False
        before = request.with_object(request.old)
        return found.matcher.mismatch(before, Resource(request.old)) is not None

    # -------------------------------------------------------------------------------------------------- legacy, targets

    def _of_object(self, request: Request, host: Host, deadline: float | None) -> Iterator[Trigger]:
        for result in Engine(self._whole, host).review(request, _PHASES, deadline=deadline).results:
            if result.status in _ABOUT:
                yield self._trigger(result)

    def _of_deletion(self, request: Request, host: Host, deadline: float | None) -> Iterator[Trigger]:
        """Yield rules that name DELETE, and deletions for those that keep what they made in step.

        Kyverno: preconditions are not evaluated for a deletion that a generate rule matches.
        """
        phases = (*MUTATING, *MUTATING_EXISTING)
        for result in Engine(self._whole, host).review(request, phases, deadline=deadline).results:
            if result.status in _ABOUT and _names_deletion(self._rule(result)):
                yield self._trigger(result)
        for result in Engine(self._matched, host).review(request, GENERATING, deadline=deadline).results:
            if result.status in _ABOUT:
                if _names_deletion(self._rule(result)):
                    yield self._trigger(result)
                elif _synchronizes(self._rule(result)):
                    yield self._trigger(result, deletes=True)

    def _find_lapsed(self, request: Request, host: Host, deadline: float | None) -> Iterator[Trigger]:
        """Yield rules in step that were about the object as it was and are not about it any more."""
        if request.old is None or not len(self._matched):
            return
        before = request.with_object(request.old)
        earlier = [
            result
            for result in Engine(self._matched, host).review(before, GENERATING, deadline=deadline).results
            if result.status is Status.PASS and _synchronizes(self._rule(result))
        ]
        if not earlier:
            return
        now = self._index_results(Engine(self._whole, host).review(request, GENERATING, deadline=deadline).results)
        held = self._index_results(Engine(self._whole, host).review(before, GENERATING, deadline=deadline).results)
        for result in earlier:
            place = _place(result.rule)
            said = now.get(place)
            # preconditions that do not hold count only when they held before
            if said is None or (_is_unmet(said) and _passed(held.get(place))):
                yield self._trigger(result, deletes=True)

    def _trigger(self, result: RuleResult, *, deletes: bool = False) -> Trigger:
        error = result.message if result.status is Status.ERROR else ""
        generates = self._rule(result).stage is Stage.GENERATE
        return Trigger(result.rule, generates, deletes, error=error)

    def _rule(self, result: RuleResult) -> CompiledRule:
        return self._rules[_place(result.rule)]

    @staticmethod
    def _index_results(results: Iterable[RuleResult]) -> Mapping[Place, RuleResult]:
        return {_place(result.rule): result for result in results}

    # ------------------------------------------------------------------------------------------------- policies in CEL

    def _of_generating(self, request: Request) -> Iterator[Trigger]:
        """Yield GeneratingPolicies; their conditions are evaluated when the work is done.

        A synchronizing policy is also triggered by other operations on an object that it matches.
        """
        for rule in self._about(request) if self._generating else ():
            try:
                trigger = _of_generating_rule(rule, request)
            except Exception as error:
                trigger = Trigger(rule.info, generates=True, error=error_verdict(error).message)
            if trigger is not None:
                yield trigger

    def _about(self, request: Request) -> tuple[CompiledRule, ...]:
        """Return the rules that can be about such objects, in whatever operation."""
        key = _key(request, request.operation)
        found = self._memo.get(key)
        if found is None:
            keys = [_key(request, operation) for operation in Operation]
            found = tuple(rule for rule in self._generating if _may_match(rule, keys))
            if len(self._memo) >= _MEMO_LIMIT:
                # a fresh dict rather than clear(): other threads may be reading the old one
                self._memo = {}
            if key.is_short:
                self._memo[key] = found
        return found


def _key(request: Request, operation: Operation) -> IndexKey:
    return IndexKey(
        request.gvk, request.subresource, operation.value, request.namespace, request.is_background, request.gvr
    )


def _of_generating_rule(rule: CompiledRule, request: Request) -> Trigger | None:
    keeps = _synchronizes(rule)
    match request.operation:
        case Operation.DELETE:
            if _names_deletion(rule):
                return Trigger(rule.info, generates=True) if _matches(rule, request) else None
            return Trigger(rule.info, generates=True, deletes=True) if keeps and _concerns(rule, request) else None
        case Operation.UPDATE if keeps:
            return Trigger(rule.info, generates=True, synchronizes=True) if _concerns(rule, request) else None
    return Trigger(rule.info, generates=True) if _matches(rule, request) else None


def _may_match(rule: CompiledRule, keys: Iterable[IndexKey]) -> bool:
    try:
        return any(rule.may_match(key) for key in keys)
    except Exception:  # decided again for the request
        return True


def _matches(rule: CompiledRule, request: Request) -> bool:
    return rule.matcher.mismatch(request, Resource(request.subject)) is None


def _concerns(rule: CompiledRule, request: Request) -> bool:
    """Return whether a rule matches the new or the old object, whatever the operation."""
    subjects = [each for each in (request.object, request.old) if each is not None]
    return any(
        _matches(rule, replace(request, operation=operation, object=subject))
        for operation in Operation
        for subject in subjects
    )


# ---------------------------------------------------------------------------------------------------------------- rules


def _is_later(rule: CompiledRule) -> bool:
    return rule.stage is Stage.GENERATE or rule.mutates_existing


def _place(info: RuleInfo) -> Place:
    return info.policy.kind, info.policy.key, info.name


def _with_trigger_only(rule: CompiledRule) -> CompiledRule:
    return replace(rule, action=_TriggerOnly(rule.action), fast_tier=None, report_properties=None)


def _synchronizes(rule: CompiledRule) -> bool:
    """Return whether a rule keeps generated objects equal to their source."""
    return isinstance(rule.action, Generator) and rule.action.synchronize


def _is_matched_alone(rule: CompiledRule) -> bool:
    """Return whether matching alone triggers a rule: conditions of a GeneratingPolicy wait until the work is done."""
    return rule.info.policy.family is Family.CEL and isinstance(rule.action, Generator)


def _names_deletion(rule: CompiledRule) -> bool:
    """Return whether a rule lists deletions among its operations."""
    return rule.matcher.names_operation(_DELETE)


def _is_unmet(result: RuleResult) -> bool:
    return result.status is Status.SKIP and not result.exceptions


def _passed(result: RuleResult | None) -> bool:
    return result is not None and result.status is Status.PASS


@dataclass(frozen=True, slots=True)
class _TriggerOnly:
    """An action that only decides whether the rule would be triggered."""

    action: Action

    def run(self, run: Run) -> Sequence[Verdict]:
        """Pass when the rule applies."""
        return self.action.triggered(run) if isinstance(self.action, HasTrigger) else (Verdict(Status.PASS),)

    def exempt(self, run: Run, exemptions: Sequence[Exemption]) -> Sequence[Verdict] | None:
        """Skip the rule where its own action would."""
        return self.action.exempt(run, exemptions)
