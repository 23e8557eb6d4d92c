"""The loop: one request, all rules, one review.

`Engine.review` is the single door for every front end. Rules run in the order of the phases; a rule that changes the
object changes what the rules after it see; nothing is performed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from pyverno.engine.broker import Broker
from pyverno.engine.decision import Decision, decide
from pyverno.engine.effects import Effect, PatchEffect
from pyverno.engine.fast.plan import Candidate, RuleSequence
from pyverno.engine.faults import error_verdict, fault_of
from pyverno.engine.host import NO_HOST, Host
from pyverno.engine.match import IndexKey
from pyverno.engine.phases import ADMISSION, Phase
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Operation, Request
from pyverno.engine.result import NO_PROPERTIES, CelDetail, FailureAction, Fault, RuleResult, Status, Verdict
from pyverno.engine.rule import UNMATCHED, CompiledRule, Exemption, Guard, RuleInfo, Run
from pyverno.engine.scope import Scope
from pyverno.engine.variables import base_scope, rule_scope
from pyverno.errors import BudgetExceededError, PyvernoError
from pyverno.kube.json import JSON
from pyverno.kube.resource import Resource
from pyverno.lang.runtime import Budget, Runtime
from pyverno.value import dataclass, field

if TYPE_CHECKING:
    from pyverno.engine.explain.explanation import Explanation
    from pyverno.errors import Location
    from pyverno.kube.yaml.documents import Document

__all__ = ["Engine", "Review"]

NOTHING: Mapping[str, JSON] = {}
_DECIDED = (Status.PASS, Status.FAIL)


@dataclass(frozen=True, slots=True)
class Review:
    """The outcome of a set of policies for one request.

    `resource` is the object as the rules left it (None on DELETE). `results` are in the order in which rules ran.
    `effects` are changes of other objects that rules request. `faults` are bugs that rules ran into, each with its
    rule, for operators; the results hold their meaning for the request. `decision` is computed on first use.
    """

    request: Request
    resource: JSON
    results: tuple[RuleResult, ...]
    effects: tuple[Effect, ...] = ()
    faults: tuple[tuple[RuleInfo, Fault], ...] = ()
    _judges: tuple[PolicySet, Host, Sequence[Phase]] | None = field(default=None, repr=False, compare=False)

    @property
    def decision(self) -> Decision:
        """Allow or deny, with the denial text, warnings and the JSON patch of the object."""
        return decide(self.request, self.resource, self.results)

    def explain(self) -> Explanation:
        """Review the request again and return what each rule looked at: match, context, conditions, patterns, CEL.

        What rules read of a cluster is read again. Raises ValueError for a review that was put together by hand.
        """
        if self._judges is None:
            raise ValueError("only a review that an engine made can be explained")
        policies, host, phases = self._judges
        return Engine(policies, host).explain(self.request, phases)

    def locate(self, result: RuleResult, document: Document) -> Location:
        """Return file, line and column of the field that made a rule fail, in the document of the object.

        The location of the object when the field is not known. `result.rule.location` is the place of the rule.
        """
        path: tuple[str | int, ...] | None = ()
        if self._judges is not None:
            policies, host, _ = self._judges
            path = Engine(policies, host).blame(self.request, result)
        return document.location(path or ())

    def count(self, status: Status) -> int:
        """Return how many results have a status."""
        return sum(1 for result in self.results if result.status is status)


class _Course:
    """The state of a review: the current request (with the object as changed so far) and the results so far.

    `runtime` and `scope` are made on first use: a review that pass-checks decide needs neither. `plain_object` is the
    object for the fast tier, which reads nothing else; None without an object, or when supplied variables may decide
    otherwise.
    """

    __slots__ = (
        "_budget",
        "_deadline",
        "_host",
        "_is_plain",
        "_received",
        "_resource",
        "_runtime",
        "_scope",
        "effects",
        "faults",
        "plain_object",
        "request",
        "results",
    )

    def __init__(
        self, request: Request, host: Host, budget: Budget | None, deadline: float | None, *, is_plain: bool
    ) -> None:
        self._host = host
        self._budget = budget
        self._deadline = deadline
        self._runtime: Runtime | None = None
        self._is_plain = is_plain
        self._received = request.object
        self.request = request
        self.plain_object: JSON = request.object if is_plain and type(request.object) is dict else None
        self.results: list[RuleResult] = []
        self.effects: list[Effect] = []
        self.faults: list[tuple[RuleInfo, Fault]] = []
        self._resource: Resource | None = None
        self._scope: Scope | None = None

    @property
    def runtime(self) -> Runtime:
        if self._runtime is None:
            settings = self.request.settings
            if self._budget is None:
                self._budget = Budget(deadline=self._deadline, context_bytes=settings.context_bytes)
            self._runtime = Runtime(self._host, self._budget, settings)
        return self._runtime

    def check_deadline(self) -> None:
        """Raise when the deadline has passed."""
        if self._budget is not None:
            self._budget.check_deadline()
        elif self._deadline is not None and time.monotonic() > self._deadline:
            self.runtime.budget.check_deadline()

    @property
    def resource(self) -> Resource:
        if self._resource is None:
            self._resource = Resource(self.request.subject)
        return self._resource

    @property
    def scope(self) -> Scope:
        if self._scope is None:
            self._scope = base_scope(self.request, self.runtime)
        return self._scope

    def bounded(self, verdict: Verdict) -> Verdict:
        """Return a verdict, or the error that all rules so far have added more to its object than one value may have.

        What a patch repeats takes no memory here, but it does in the response.
        """
        changes = [(each.before, each.after) for each in verdict.effects if type(each) is PatchEffect]
        if verdict.patched is not None and verdict.target is None:
            changes.append((self._received, verdict.patched))
        if changes:
            from pyverno.kube.patch.growth import growth  # few reviews change an object

            budget = self.runtime.budget
            most = budget.text_bytes
            try:
                if any(growth(before, after, most, budget) > most for before, after in changes):
                    raise BudgetExceededError(f"rules add more than {most} bytes to the object", resource="bytes")
            except BudgetExceededError as error:
                return error_verdict(error, target=verdict.target)
        return verdict

    def move_to(self, request: Request) -> None:
        self.request = request
        self.plain_object = request.object if self._is_plain and type(request.object) is dict else None
        self._resource = self._scope = None


class Engine:
    """Judges requests by a set of compiled policies.

    `policies` may be swapped for a new set at any time: a review keeps the set that it started with. A review reads
    data from outside through `host` only. Policies of a namespace are confined to it.

    >>> Engine(PolicySet()).review(Request.from_manifest({"kind": "Pod", "apiVersion": "v1"})).results
    ()
    """

    def __init__(self, policies: PolicySet, host: Host = NO_HOST) -> None:
        self.policies = policies
        self.host = host

    def __repr__(self) -> str:
        return f"<Engine of {self.policies!r} with {type(self.host).__name__}>"

    def review(
        self,
        request: Request,
        phases: Sequence[Phase] = ADMISSION,
        *,
        budget: Budget | None = None,
        deadline: float | None = None,
    ) -> Review:
        """Run the rules of these phases on a request; never raises for a policy, a host or a bug.

        Whatever a rule raises is an ERROR of this rule, and all others answer as if nothing had happened.
        `deadline` (seconds of the monotonic clock) ends a review that takes too long: the rules then left are errors.
        """
        policies = self.policies
        if budget is not None:
            deadline = budget.deadline
        course = _Course(request, self.host, budget, deadline, is_plain=self._has_no_supplied_variables())
        key = IndexKey(
            request.gvk,
            request.subresource,
            request.operation.value,
            request.namespace,
            request.is_background,
            request.gvr,
        )
        for step in policies.plan(phases, key, deadline):
            if isinstance(step, RuleSequence):
                self._run_sequence(step, course)
            elif _passes(step.check, course):
                course.results += step.results
            else:
                for sequence in step.otherwise:
                    self._run_sequence(sequence, course)
        return Review(
            request,
            course.request.object,
            tuple(course.results),
            tuple(course.effects) if course.effects else (),
            tuple(course.faults) if course.faults else (),
            (policies, self.host, phases),
        )

    def _has_no_supplied_variables(self) -> bool:
        try:
            return not self.host.supplies_variables
        except Exception:  # every rule asks the host again, and ends with its error
            return False

    def explain(self, request: Request, phases: Sequence[Phase] = ADMISSION) -> Explanation:
        """Review a request by rules that record what they look at; takes far longer than `review`.

        >>> pod = {"kind": "Pod", "apiVersion": "v1"}
        >>> Engine(PolicySet()).explain(Request.from_manifest(pod)).rules
        ()
        """
        from pyverno.engine.explain.explanation import explain

        host = self.host
        return explain(
            request, self.policies, phases, lambda policies, changed: Engine(policies, host).review(changed, phases)
        )

    def blame(self, request: Request, result: RuleResult) -> tuple[str | int, ...] | None:
        """Return the path of the field that made a rule fail on the object of a request, None when it is not known.

        On DELETE that is the deleted object. The rule is evaluated again, so that reviews pay nothing for it. Nothing
        of this changes a verdict.
        """
        from pyverno.engine.blame.find import find_blame  # few front doors show places

        rule = self.policies.find_rule(result.rule)
        if rule is None or (request.object is None and request.old is None):
            return None
        runtime = Runtime(self.host, Budget(context_bytes=request.settings.context_bytes), request.settings)
        position = result.detail.position if type(result.detail) is CelDetail else -1
        try:
            run = self._start(rule, request, base_scope(request, runtime), runtime)
            return find_blame(run, position, result.message)
        except Exception:
            return None  # a failure for lack of data or time has no field at fault; a bug here is a place less

    def _run_sequence(self, sequence: RuleSequence, course: _Course) -> None:
        """Run rules in order: by their fast verdict where the object alone decides, the others in full."""
        stops, plain, results = sequence.stops, course.plain_object, course.results
        check_deadline = course.check_deadline
        for fast_verdict, candidate in sequence.rules:
            try:
                check_deadline()
                said = None if fast_verdict is None or plain is None else fast_verdict(plain)
            except Exception:  # the closures then find the error and report it
                said = None
            if said is None:
                decided = self._record(candidate.rule, self._verdicts(candidate, course), course)
                plain = course.plain_object
            else:
                results += said
                decided = stops and any(result.status in _DECIDED for result in said)
            if decided and stops:
                return

    def _record(self, rule: CompiledRule, verdicts: Sequence[Verdict], course: _Course) -> bool:
        """Record the results of a rule; return whether it passed or failed."""
        decided = False
        try:
            for verdict in verdicts:
                result = self._result(rule, verdict, course)
                patches = verdict.patched is not None and verdict.target is None
                changed = course.request.with_object(verdict.patched) if patches else None
                course.results.append(result)
                if type(result.detail) is Fault:
                    course.faults.append((rule.info, result.detail))
                if verdict.effects:
                    course.effects.extend(verdict.effects)
                if changed is not None:
                    course.move_to(changed)
                decided = decided or verdict.status in _DECIDED
        except Exception as error:
            # it is unknown which override applies: take the strictest
            action = FailureAction.ENFORCE if rule.info.can_deny else rule.failure_action
            course.results.append(RuleResult.of(rule.info, action, error_verdict(error)))
            self._note(rule, error, course)
        return decided

    @staticmethod
    def _note(rule: CompiledRule, error: Exception, course: _Course) -> None:
        """Remember a bug that changes no verdict, or whose result is recorded already."""
        if not isinstance(error, PyvernoError):
            course.faults.append((rule.info, fault_of(error)))

    def _verdicts(self, candidate: Candidate, course: _Course) -> Sequence[Verdict]:
        rule, request = candidate.rule, course.request
        try:
            if not candidate.is_certain and rule.matcher.mismatch(request, course.resource) is not None:
                return ()
            course.check_deadline()
            if candidate.problem is not None:
                raise candidate.problem
            run = self._start(rule, request, course.scope, course.runtime)
            verdicts = _run(run, candidate.guards, candidate.exceptions, course.resource)
            if any(verdict.patched is not None or verdict.effects for verdict in verdicts):
                return [course.bounded(verdict) for verdict in verdicts]
        except Exception as error:
            return (error_verdict(error),)
        try:
            if self._may_have_failed_before(rule, request, verdicts):
                return self._excuse(candidate, course, verdicts)
        except Exception as error:  # an error never excuses
            self._note(rule, error, course)
        return verdicts

    def _start(self, rule: CompiledRule, request: Request, scope: Scope, runtime: Runtime) -> Run:
        info = rule.info
        broker = Broker(self.host, runtime.budget, info.policy.namespace, info.policy)
        supplied: Mapping[str, JSON] = NOTHING
        if self.host.supplies_variables:
            supplied = self.host.recorded_variables(info.policy.name, info.name, request.name)
            scope = rule_scope(scope, supplied)
        run = Run(rule, request, scope, broker, runtime, supplied)
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

    def _excuse(self, candidate: Candidate, course: _Course, verdicts: Sequence[Verdict]) -> Sequence[Verdict]:
        """Let an update pass whose object failed the rule before; see `allowExistingViolations`."""
        rule = candidate.rule
        # Kyverno: the old object is judged without a user, so rules for certain users never exempt
        if any(block.has_user_info for block in rule.matcher.blocks):
            return verdicts
        # requests to scale, which the rule never saw, may have made the violation that would excuse this one
        if rule.misses_scale and course.request.changes_replicas:  # guard: what no rule judged excuses nothing
            return verdicts
        if all(self._fails(candidate, before, course.runtime) for before in course.request.about_old_object()):
            return (Verdict(Status.SKIP, "skipping the rule evaluation as pre-existing violations are allowed"),)
        return verdicts

    def _fails(self, candidate: Candidate, request: Request, runtime: Runtime) -> bool:
        """Return whether a rule that matches a request fails on it without an error."""
        rule, resource = candidate.rule, Resource(request.object)
        if rule.matcher.mismatch(request, resource) is not None:
            return False
        run = self._start(rule, request, base_scope(request, runtime), runtime)
        found = {verdict.status for verdict in _run(run, rule.guards, candidate.exceptions, resource)}
        return Status.FAIL in found and Status.ERROR not in found

    def _result(self, rule: CompiledRule, verdict: Verdict, course: _Course) -> RuleResult:
        request = course.request
        action = rule.failure_action
        if rule.overrides:
            action = rule.action_for(request.namespace or course.resource.namespace, request.namespace_labels)
        if type(verdict.detail) is CelDetail and verdict.detail.only_audits:
            action = FailureAction.AUDIT
        properties = NO_PROPERTIES
        if rule.report_properties is not None:
            properties = self._properties(rule, rule.report_properties, verdict, course)
        return RuleResult.of(rule.info, action, verdict, properties)

    def _properties(
        self,
        rule: CompiledRule,
        properties: Callable[[Run, Verdict], Mapping[str, str]],
        verdict: Verdict,
        course: _Course,
    ) -> Mapping[str, str]:
        try:
            return properties(self._start(rule, course.request, course.scope, course.runtime), verdict)
        except Exception as error:
            # Kyverno: a report property that cannot be resolved never changes a verdict
            self._note(rule, error, course)
            return {}


def _passes(check: Callable[[JSON], bool], course: _Course) -> bool:
    """Return whether a generated pass-check proves that rules pass; anything else falls to the exact closures."""
    subject = course.plain_object
    try:
        course.check_deadline()
        return subject is not None and check(subject) is True
    except Exception:
        return False


def _run(run: Run, guards: Sequence[Guard], exceptions: Sequence[Exemption], resource: Resource) -> Sequence[Verdict]:
    """Run a matched rule: guards, then exceptions, then the action."""
    for guard in guards:
        verdict = guard.check(run)
        if verdict is not None:
            return () if verdict is UNMATCHED else (verdict,)
    if exceptions:
        applicable = [exception for exception in exceptions if exception.applies(run, resource)]
        if applicable:
            verdicts = run.rule.action.exempt(run, applicable)
            if verdicts is not None:
                return verdicts
    return run.rule.action.run(run)
