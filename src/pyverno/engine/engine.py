"""The loop: one request, all rules, one review.

`Engine.review` is the single door for every front end. Rules run in the order of the phases; a rule that changes the
object changes what the rules after it see; nothing is performed. This module must never know a policy kind or an
expression language.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pyverno.engine.broker import Broker
from pyverno.engine.decision import Decision, decide
from pyverno.engine.effects import Effect
from pyverno.engine.exceptions import CompiledException
from pyverno.engine.host import NO_HOST, Host
from pyverno.engine.match import IndexKey
from pyverno.engine.phases import ADMISSION, Phase
from pyverno.engine.policyset import PolicySet, Selected
from pyverno.engine.request import Operation, Request
from pyverno.engine.result import FailureAction, RuleResult, Status, Verdict
from pyverno.engine.rule import CompiledRule, Run
from pyverno.engine.scope import Scope
from pyverno.engine.variables import base_scope, rule_scope
from pyverno.errors import PyvernoError
from pyverno.kube.json import JSON
from pyverno.kube.resource import Resource
from pyverno.lang.runtime import Budget, Runtime

__all__ = ["Engine", "Review"]


@dataclass(frozen=True, slots=True)
class Review:
    """Everything that a set of policies says about one request.

    `resource` is the object as the rules left it (None on DELETE). `results` are in the order in which rules ran.
    `effects` are what rules want done to other objects. `decision` is worked out when it is asked for.
    """

    request: Request
    resource: JSON
    results: tuple[RuleResult, ...]
    effects: tuple[Effect, ...] = ()

    @property
    def decision(self) -> Decision:
        """Allow or deny, with the denial text, warnings and the JSON patch of the object."""
        return decide(self.request, self.resource, self.results)

    def count(self, status: Status) -> int:
        """Return how many results have a status."""
        return sum(1 for result in self.results if result.status is status)


@dataclass(slots=True)
class _Course:
    """How far a review has come: the current request (with the object as changed so far) and what was said."""

    request: Request
    resource: Resource
    scope: Scope
    runtime: Runtime
    results: list[RuleResult] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)

    def move_to(self, request: Request) -> None:
        self.request = request
        self.resource = Resource(request.subject)
        self.scope = base_scope(request)


class Engine:
    """Judges requests by a set of compiled policies.

    `policies` may be swapped for a new set at any time: a review keeps the set that it started with. A review asks the
    world through `host` only. Policies of a namespace are confined to it.

    >>> Engine(PolicySet()).review(Request.from_manifest({"kind": "Pod", "apiVersion": "v1"})).results
    ()
    """

    def __init__(self, policies: PolicySet, host: Host = NO_HOST) -> None:
        self.policies = policies
        self.host = host

    def review(self, request: Request, phases: Sequence[Phase] = ADMISSION, *, budget: Budget | None = None) -> Review:
        """Run the rules of these phases on a request; raises nothing that a policy or the world can cause."""
        policies = self.policies
        runtime = Runtime(self.host, budget if budget is not None else Budget())
        course = _Course(request, Resource(request.subject), base_scope(request), runtime)
        key = IndexKey(request.gvk, request.subresource, request.operation.value, request.namespace)
        for phase in phases:
            for selected in policies.select(phase, key):
                self._apply(selected, course)
        return Review(request, course.request.object, tuple(course.results), tuple(course.effects))

    def explain(self, request: Request, phases: Sequence[Phase] = ADMISSION) -> Iterator[tuple[CompiledRule, str | None]]:
        """Yield every rule of these phases with the reason why the request is not matched (None = it is)."""
        resource = Resource(request.subject)
        for phase in phases:
            for policy in self.policies.policies:
                if policy.info.kind in phase.kinds:
                    for rule in policy.rules:
                        if rule.stage is phase.stage:
                            yield rule, rule.matcher.mismatch(request, resource)

    def _apply(self, selected: Selected, course: _Course) -> None:
        info = selected.policy.info
        if course.request.is_background and not info.background:
            return
        if not course.request.is_background and not info.admission:
            return
        for rule, exceptions in selected.rules:
            if rule.passes is not None and not exceptions and rule.passed is not None and _passes(rule, course):
                course.results.append(rule.passed)
                stop = True
            else:
                stop = self._judge(rule, exceptions, course)
            if stop and info.apply_one:
                return

    def _judge(self, rule: CompiledRule, exceptions: Sequence[CompiledException], course: _Course) -> bool:
        """Run one rule and record what it said; tell whether it passed or failed."""
        decided = False
        for verdict in self._verdicts(rule, exceptions, course):
            result = self._result(rule, verdict, course)
            course.results.append(result)
            course.effects.extend(verdict.effects)
            decided = decided or result.status in (Status.PASS, Status.FAIL)
            if verdict.patched is not None and verdict.target is None:
                course.move_to(course.request.with_object(verdict.patched))
        return decided

    def _verdicts(
        self, rule: CompiledRule, exceptions: Sequence[CompiledException], course: _Course
    ) -> Sequence[Verdict]:
        request = course.request
        run = self._start(rule, request, course.scope, course.runtime)
        try:
            verdicts = _run(run, course.resource, exceptions)
            if self._may_have_failed_before(rule, request, verdicts):
                return self._excuse(rule, exceptions, course, verdicts)
            return verdicts
        except PyvernoError as error:
            return (Verdict(Status.ERROR, error.message),)
        except RecursionError:
            return (Verdict(Status.ERROR, "the object or the policy is nested too deeply"),)

    def _start(self, rule: CompiledRule, request: Request, scope: Scope, runtime: Runtime) -> Run:
        info = rule.info
        broker = Broker(self.host, runtime.budget, info.policy.namespace)
        supplied = self.host.recorded_variables(info.policy.name, info.name, request.name)
        run = Run(rule, request, rule_scope(scope, supplied), broker, runtime, supplied)
        for binding in rule.bindings:
            run = run.with_scope(binding.bind(run))
        return run

    def _may_have_failed_before(self, rule: CompiledRule, request: Request, verdicts: Sequence[Verdict]) -> bool:
        return (
            rule.checks_existing
            and rule.failure_action is FailureAction.ENFORCE
            and request.operation is Operation.UPDATE
            and request.old is not None
            and any(verdict.status is Status.FAIL for verdict in verdicts)
        )

    def _excuse(
        self,
        rule: CompiledRule,
        exceptions: Sequence[CompiledException],
        course: _Course,
        verdicts: Sequence[Verdict],
    ) -> Sequence[Verdict]:
        """Let an update pass whose object failed the rule before; see `allowExistingViolations`."""
        # Kyverno: the old object is judged for nobody in particular, so rules for certain users never excuse
        if any(block.has_user_info for block in rule.matcher.blocks):
            return verdicts
        before = course.request.about_old_object()
        run = self._start(rule, before, base_scope(before), course.runtime)
        try:
            earlier = _run(run, Resource(before.object), exceptions)
        except PyvernoError:
            return verdicts
        if any(verdict.status is Status.FAIL for verdict in earlier):
            return (Verdict(Status.SKIP, "skipping the rule evaluation as pre-existing violations are allowed"),)
        return verdicts

    def _result(self, rule: CompiledRule, verdict: Verdict, course: _Course) -> RuleResult:
        request = course.request
        return RuleResult(
            rule=rule.info,
            status=verdict.status,
            message=verdict.message,
            action=rule.action_for(request.namespace or course.resource.namespace, request.namespace_labels),
            detail=verdict.detail,
            properties=self._properties(rule, course),
            exceptions=verdict.exceptions,
            target=verdict.target,
            patched=verdict.patched,
            effects=verdict.effects,
        )

    def _properties(self, rule: CompiledRule, course: _Course) -> Mapping[str, str]:
        if rule.report_properties is None:
            return {}
        run = self._start(rule, course.request, course.scope, course.runtime)
        try:
            return rule.report_properties(run)
        except PyvernoError:
            # Kyverno: a report property that can not be resolved never changes a verdict
            return {}


def _passes(rule: CompiledRule, course: _Course) -> bool:
    """Tell whether the generated pass-check proves that a rule passes; anything else falls to the exact closures."""
    subject = course.request.object
    if subject is None or rule.matcher.mismatch(course.request, course.resource) is not None:
        return False
    check = rule.passes
    try:
        return check is not None and check(subject) is True
    except Exception:  # noqa: BLE001 - the closures then find out and say what is wrong
        return False


def _run(run: Run, resource: Resource, exceptions: Sequence[CompiledException]) -> Sequence[Verdict]:
    rule = run.rule
    if rule.matcher.mismatch(run.request, resource) is not None:
        return ()
    for guard in rule.guards:
        verdict = guard.check(run)
        if verdict is not None:
            return (verdict,)
    if exceptions:
        applicable = [exception for exception in exceptions if exception.applies(run, resource)]
        if applicable:
            verdicts = rule.action.exempt(run, applicable)
            if verdicts is not None:
                return verdicts
    return rule.action.run(run)


