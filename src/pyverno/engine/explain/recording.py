"""A compiled rule whose parts record what they decide.

The copy is made from the rule itself, part by part: each part that decides something is replaced by one that does the
same and records it, everything else is shared. Fast tiers are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

from pyverno.engine.actions.deny import DenyCheck
from pyverno.engine.actions.elements import Elements
from pyverno.engine.actions.foreach import ForeachCheck
from pyverno.engine.actions.pattern import AnyPatternCheck, PatternCheck
from pyverno.engine.actions.pod_security import PodSecurityRule
from pyverno.engine.cel.constraints import ConstraintMatcher
from pyverno.engine.explain.conditions import recorded_conditions
from pyverno.engine.explain.expressions import RecordedProgram
from pyverno.engine.explain.matching import RecordedConstraints, RecordedMatcher, RecordedRuleMatcher
from pyverno.engine.explain.nodes import FieldPath, RuleTrace
from pyverno.engine.explain.parts import (
    RecordedAction,
    RecordedAnyPattern,
    RecordedBinding,
    RecordedElements,
    RecordedExemption,
    RecordedGuard,
    RecordedPatternCheck,
)
from pyverno.engine.explain.patterns import RecordedPattern
from pyverno.engine.explain.recorder import MAX_NODES, Recorder
from pyverno.engine.explain.secrecy import Secrecy, parts_of
from pyverno.engine.match import Matcher
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Request
from pyverno.engine.result import RuleResult
from pyverno.engine.rule import CompiledPolicy, CompiledRule, Exemption, Family, PolicyInfo
from pyverno.engine.rules.bindings import (
    ApiCallBinding,
    ConfigMapBinding,
    GlobalReferenceBinding,
    ImageRegistryBinding,
    VariableBinding,
)
from pyverno.engine.rules.conditions import Conditions
from pyverno.engine.rules.guards import Preconditions
from pyverno.lang.cel import Program
from pyverno.value import fields, is_dataclass, replace

__all__ = ["RecordedPolicies", "ReviewBy", "recorded_policies"]

if TYPE_CHECKING:
    from pyverno.engine.engine import Review

T = TypeVar("T")

ReviewBy: TypeAlias = "Callable[[PolicySet, Request], Review]"
"""Reviews a request by a set of policies, with the host and the phases of the review that is explained."""

_FIELDS: Final[Mapping[str, FieldPath]] = {
    "entries": ("foreach",),
    "nested": ("foreach",),
    "bindings": ("context",),
    "preconditions": ("preconditions",),
    "validations": ("validations",),
    "mutations": ("mutations",),
    "variables": ("variables",),
    "annotations": ("auditAnnotations",),
    "targets": ("targets",),
    "message_program": ("messageExpression",),
    "program": ("expression",),
    "expression": ("expression",),
}
"""Names of the actions' fields in policies; the other fields have no location."""

_KINDS: Final[Mapping[type, str]] = {
    PatternCheck: "pattern",
    AnyPatternCheck: "anyPattern",
    DenyCheck: "deny",
    ForeachCheck: "foreach",
    PodSecurityRule: "podSecurity",
}
_ROOTS: Final[Mapping[str, FieldPath]] = {
    "Validation": ("validate",),
    "Mutation": ("mutate",),
    "Generation": ("generate",),
    "ImageVerify": ("verifyImages",),
    "Deletion": (),
}


class RecordedPolicies:
    """The policies and exceptions of a set as copies that record one review after the other, in one thread.

    `hides_object` is for the reviews of a Secret.
    """

    def __init__(self, policies: PolicySet, *, hides_object: bool = False, max_nodes: int = MAX_NODES) -> None:
        self._recorder = Recorder(hides_object=hides_object, max_nodes=max_nodes)
        self._policies = tuple(_recorded_policy(each, self._recorder) for each in policies.policies)
        self._exceptions = tuple(_recorded_exemption(each, self._recorder) for each in policies.exceptions)
        self._asks_all = policies.asks_all

    def review(
        self, request: Request, review_by: ReviewBy, *, only: PolicyInfo | None = None
    ) -> tuple[Review, tuple[RuleTrace, ...]]:
        """Review a request by the copies, or by those of one policy; return the review and the traces.

        Traces are those of the rules that ran, with their results.
        """
        chosen = self._policies if only is None else [each for each in self._policies if each.info is only]
        # a new set, because matchers learn from each plan what the index decides
        review = review_by(PolicySet(chosen, self._exceptions, asks_all=self._asks_all), request)
        traces = tuple(_with_results(self._recorder.traces(), review.results))
        self._recorder.clear()  # the copies are kept, the nodes that they recorded are not
        return review, traces


@contextmanager
def recorded_policies(policies: PolicySet) -> Iterator[RecordedPolicies]:
    """Lend the recorded copies of a set; they are kept for the next explanation."""
    try:
        recorded = cast(RecordedPolicies, policies.recorded.pop())
    except IndexError:
        recorded = RecordedPolicies(policies)
    yield recorded
    if not policies.recorded:
        policies.recorded.append(recorded)


def _with_results(traces: Sequence[RuleTrace], results: Sequence[RuleResult]) -> Iterator[RuleTrace]:
    of_rule: dict[int, list[RuleResult]] = {}
    for each in results:
        of_rule.setdefault(id(each.rule), []).append(each)
    for trace in traces:
        yield replace(trace, results=() if trace.is_old else tuple(of_rule.get(id(trace.rule), ())))


def _recorded_policy(policy: CompiledPolicy, recorder: Recorder) -> CompiledPolicy:
    return replace(policy, rules=tuple(_recorded_rule(rule, recorder) for rule in policy.rules))


def _recorded_exemption(exemption: Exemption, recorder: Recorder) -> Exemption:
    secrecy = Secrecy(parts_of(exemption), hides_object=recorder.hides_object)
    part = _Copier(recorder, secrecy).copied(exemption, ("spec",))
    return RecordedExemption(exemption, part, recorder)


def _recorded_rule(rule: CompiledRule, recorder: Recorder) -> CompiledRule:
    info = rule.info
    secrecy = Secrecy(parts_of((rule.bindings, rule.guards, rule.action)), hides_object=recorder.hides_object)
    copier = _Copier(recorder, secrecy)
    of_rules = info.policy.family is Family.RULES
    root: FieldPath = () if of_rules else ("spec",)
    place = (*root, *_ROOTS[info.type.value]) if of_rules else root
    matching: FieldPath = () if of_rules else ("spec", "matchConstraints")
    return replace(
        rule,
        matcher=RecordedRuleMatcher(rule.matcher, info, recorder, matching),
        action=copier.action(rule.action, place),
        bindings=copier.copied(rule.bindings, (*root, "context")),
        guards=tuple(RecordedGuard(copier.copied(guard, (*root, "preconditions"))) for guard in rule.guards),
        fast_tier=None,
        # they are computed again for reports only
        report_properties=None,
    )


class _Copier:
    """Copies the parts of one rule."""

    def __init__(self, recorder: Recorder, secrecy: Secrecy) -> None:
        self._recorder = recorder
        self._secrecy = secrecy

    def copied(self, value: T, place: FieldPath) -> T:
        """Return the value with recorded parts; the value itself when it has none."""
        return cast(T, self._copy(value, place))

    def action(self, action: Any, place: FieldPath) -> RecordedAction:
        """Return an action that records its verdicts."""
        kind = _KINDS.get(type(action), "")
        if getattr(action, "is_rule", False):
            kind = "cel"
        own = (*place, kind) if kind and kind != "foreach" else place
        inner = self._parts(action, own)
        return RecordedAction(inner, kind or "check", self._recorder, self._secrecy, own)

    def _copy(self, value: Any, place: FieldPath) -> Any:
        if type(value) is tuple:
            made = tuple(self._copy(each, (*place, index)) for index, each in enumerate(value))
            return made if any(new is not old for new, old in zip(made, value, strict=True)) else value
        make = _MAKERS.get(type(value))
        if make is not None:
            return make(self, value, place)
        return self._parts(value, place)

    def _parts(self, value: Any, place: FieldPath) -> Any:
        """Return a dataclass of the engine with recorded fields."""
        if not is_dataclass(value) or isinstance(value, type) or not type(value).__module__.startswith(_ROOMS):
            return value
        changes: dict[str, Any] = {}
        for each in fields(value):
            old = getattr(value, each.name)
            if each.name in ("check", "scoped_check") and hasattr(old, "exempt"):
                new = self.action(old, place)
            else:
                new = self._copy(old, (*place, *_name(value, each.name)))
            if new is not old:
                changes[each.name] = new
        if isinstance(value, (PatternCheck, AnyPatternCheck)) and value.compiled is None:
            made = _RECORDED_CHECKS[type(value)](**{each.name: getattr(value, each.name) for each in fields(value)})
            object.__setattr__(made, "recorder", self._recorder)
            object.__setattr__(made, "secrecy", self._secrecy)
            return made
        return replace(value, **changes) if changes else value

    def _program(self, program: Program, place: FieldPath) -> Program:
        return RecordedProgram.of(program, self._recorder, self._secrecy, place)

    def _conditions(self, conditions: Conditions, place: FieldPath) -> Conditions:
        return recorded_conditions(conditions, self._recorder, self._secrecy, place)

    def _binding(self, binding: Any, place: FieldPath) -> RecordedBinding:
        return RecordedBinding(binding, self._recorder, self._secrecy, place)

    def _elements(self, elements: Elements, place: FieldPath) -> RecordedElements:
        inner = cast(Elements, self._parts(elements, place))
        return RecordedElements.of(inner, self._recorder, self._secrecy, place)

    def _matcher(self, matcher: Matcher, _place: FieldPath) -> Matcher:
        return RecordedMatcher.of(matcher, self._recorder)

    def _constraints(self, matcher: ConstraintMatcher, place: FieldPath) -> ConstraintMatcher:
        return RecordedConstraints.of(matcher, self._recorder, place)

    def _pattern(self, pattern: Any, _place: FieldPath) -> Any:
        return RecordedPattern(
            pattern.tree,
            float_numbers=pattern.float_numbers,
            recorder=self._recorder,
            secrecy=self._secrecy,
        )


_ROOMS = ("pyverno.engine.actions", "pyverno.engine.rules", "pyverno.engine.cel")


def _name(owner: Any, field: str) -> FieldPath:
    if isinstance(owner, Preconditions):
        return ()
    if field == "conditions":
        return ("matchConditions",) if type(owner).__module__.startswith("pyverno.engine.actions.cel") else (field,)
    if field == "validations" and getattr(owner, "is_rule", False):
        return ("expressions",)
    return _FIELDS.get(field, ())


def _makers() -> Mapping[type, Callable[[_Copier, Any, FieldPath], Any]]:
    from pyverno.lang.pattern.validate import Pattern

    bindings = (ApiCallBinding, ConfigMapBinding, GlobalReferenceBinding, ImageRegistryBinding, VariableBinding)
    return {
        Program: _Copier._program,
        Conditions: _Copier._conditions,
        Elements: _Copier._elements,
        Matcher: _Copier._matcher,
        ConstraintMatcher: _Copier._constraints,
        Pattern: _Copier._pattern,
        **dict.fromkeys(bindings, _Copier._binding),
    }


_MAKERS: Final = _makers()
_RECORDED_CHECKS: Final[Mapping[type, Any]] = {PatternCheck: RecordedPatternCheck, AnyPatternCheck: RecordedAnyPattern}
