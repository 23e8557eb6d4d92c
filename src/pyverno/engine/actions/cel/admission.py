"""Validations as the API server runs them: ValidatingAdmissionPolicy with its bindings, and `validate.cel`.

Every expression is evaluated; the first denied decision decides. Each binding, and each of its parameters, is judged by
itself. This module must never decide what a denial means for the request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pyverno.engine.actions.cel.mutate import CelMutation, laid_over
from pyverno.engine.actions.cel.validate import CelValidation
from pyverno.engine.actions.exemption import SkippedByException
from pyverno.engine.cel.constraints import ConstraintMatcher
from pyverno.engine.cel.session import (
    POLICY_COST,
    CelCondition,
    CelSession,
    CelVariable,
    Unmet,
    authorizer_bindings,
    first_unmet,
    has_run_out,
    request_bindings,
)
from pyverno.engine.fast.cel import cel_fast_tier
from pyverno.engine.result import AdmissionDetail, CelDetail, Denial, FailureAction, RuleResult, Status, Verdict
from pyverno.engine.rule import NO_FAST_TIER, Family, FastTier, RuleInfo, Run
from pyverno.errors import BudgetExceededError, EvaluationError, PyvernoError
from pyverno.kube.gvk import GVK, parse_api_version
from pyverno.kube.json import JSON, JSONObject, equal
from pyverno.kube.resource import Resource
from pyverno.lang.cel import Program
from pyverno.lang.cel.runtime.evaluation import PER_EXPRESSION
from pyverno.lang.cel.values import Value
from pyverno.value import dataclass

__all__ = ["AdmissionMutation", "AdmissionValidation", "Binding", "Params"]

_OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"
MAX_MESSAGE = 5 * 1024
_DENY = "Deny"
_SCAN_USER = "system:kyverno:background-scan"
_NO_USER: JSONObject = {"username": _SCAN_USER, "uid": _SCAN_USER, "groups": [_SCAN_USER]}
"""Stands for unknown fields of the user: no service account, and no group that a policy could name."""

_BAD = (Status.FAIL, Status.ERROR)


@dataclass(frozen=True, slots=True)
class Params:
    """The parameters of a policy: their kind, and a name or selector (no `name` and no `selector` = null)."""

    api_version: str = ""
    kind: str = ""
    has_reference: bool = False
    name: str = ""
    namespace: str = ""
    selector: JSONObject | None = None
    denies_when_missing: bool = False

    def find(self, run: Run) -> Sequence[JSON]:
        """Return the parameters; raises EvaluationError for a configuration that cannot work."""
        if not self.kind or not self.has_reference:
            return (None,)
        if self.name and self.selector is not None:
            raise EvaluationError("paramRef.name and paramRef.selector are mutually exclusive")
        if not self.name and self.selector is None:
            raise EvaluationError("one of name or selector must be provided")
        namespace = self._namespace(run)
        if self.name:
            found = run.broker.get_object(self.api_version, self.kind, namespace, self.name)
            params: Sequence[JSON] = () if found is None else (found,)
        else:
            params = run.broker.list_objects(self.api_version, self.kind, namespace, self.selector)
        if not params and self.denies_when_missing:
            raise EvaluationError("no params found for policy binding with `Deny` parameterNotFoundAction")
        return params

    def _namespace(self, run: Run) -> str:
        scoped = run.broker.host.kinds.is_namespaced(GVK(*parse_api_version(self.api_version), self.kind))
        if scoped is False:
            if self.namespace:
                raise EvaluationError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
            return ""
        request = run.request
        own = request.name if request.gvk.kind == "Namespace" else request.namespace
        if scoped and not self.namespace and not own:
            raise EvaluationError(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
            )
        return self.namespace or own


@dataclass(frozen=True, slots=True)
class Binding:
    """A binding: what it narrows the policy to, its parameters, and what its denials do (`validationActions`)."""

    name: str
    matcher: ConstraintMatcher | None = None
    params: Params = Params()
    actions: tuple[str, ...] = (_DENY,)


UNBOUND = Binding("")


@dataclass(frozen=True, slots=True)
class AdmissionValidation(SkippedByException):
    """All validations of one policy for each of its bindings (`bindings` empty: once, unbound).

    `is_rule` words verdicts as Kyverno does for `validate.cel`: errors are failures, unmet conditions are a skip.
    `reports_all` gives every denial and the audit annotations (`AdmissionDetail`), as an API server needs them.
    """

    validations: tuple[CelValidation, ...]
    conditions: tuple[CelCondition, ...] = ()
    variables: tuple[CelVariable, ...] = ()
    bindings: tuple[Binding, ...] = ()
    annotations: tuple[tuple[str, Program], ...] = ()
    ignores_errors: bool = False
    passed: str = ""
    skipped: str = "match conditions aren't met"
    is_rule: bool = False
    reports_all: bool = False

    def run(self, run: Run) -> Sequence[Verdict]:
        """Judge the request for every binding that matches it."""
        verdicts: list[Verdict] = []
        for binding in _in_force(self.bindings, run):
            verdicts.extend(self._bound(binding, run))
        return verdicts

    def fast_tier(self, info: RuleInfo, failure_action: FailureAction) -> FastTier:
        """Return the fast tier: none with audit annotations, parameters, or bindings that narrow the policy."""
        bindings = self.bindings or (UNBOUND,)
        if self.annotations or any(each.matcher is not None or each.params.kind for each in bindings):
            return NO_FAST_TIER
        # what passed is denied all the same when the messages use up the budget
        if len(self.validations) + len(self.variables) > POLICY_COST // (2 * PER_EXPRESSION) and any(
            validation.message_program is not None for validation in self.validations
        ):
            return NO_FAST_TIER
        success = Verdict(Status.PASS, self.passed)
        passed = tuple(
            RuleResult.of(info, failure_action, success._replace(detail=self._detail(binding, success)))
            for binding in bindings
        )
        validations = [validation.program for validation in self.validations]
        return cel_fast_tier(self.conditions, self.variables, validations, passed)

    def _bound(self, binding: Binding, run: Run) -> Iterator[Verdict]:
        try:
            params = binding.params.find(run)
        except PyvernoError as error:
            if not self.ignores_errors:
                prefix = "error in parameterized resource: " if self.is_rule else "failed to configure binding: "
                text = f"{prefix}{error.message}"
                # Kubernetes: a configuration that cannot work rejects, whatever the binding's actions
                detail = CelDetail(-1, binding.name, (_DENY,))
                yield Verdict(
                    Status.ERROR, text, AdmissionDetail(binding.name, errors=(text,)) if self.reports_all else detail
                )
            return
        if self.reports_all:
            for param in params:
                yield _make_verdict(self._all_of(binding.name, param, run))
            return
        verdicts: Iterable[Verdict] = (self._judge(param, run) for param in params)
        if self.is_rule:
            # Kyverno: a rule has one result, that of the first of its parameters that does not pass
            passed = Verdict(Status.PASS, self.passed)
            verdicts = (next((each for each in verdicts if each.status is not Status.PASS), passed),)
        for verdict in verdicts:
            yield verdict._replace(detail=self._detail(binding, verdict))

    def _detail(self, binding: Binding, verdict: Verdict) -> CelDetail | None:
        if verdict.status not in _BAD:
            return CelDetail(binding=binding.name) if binding.name else None
        position = verdict.detail.position if isinstance(verdict.detail, CelDetail) else -1
        is_ignored = verdict.status is Status.ERROR and self.ignores_errors
        return CelDetail(position, binding.name, () if is_ignored else binding.actions)

    def _all_of(self, binding: str, param: JSON, run: Run) -> AdmissionDetail | None:
        """Return the results for one parameter, None where match conditions are false."""
        session = self._session(param, run)
        try:
            unmet = first_unmet(session.for_conditions({"namespaceObject": None}), self.conditions)
            if unmet is not None:
                text = _aggregate(unmet) if unmet.errors else ""
                return AdmissionDetail(binding, self._erred(text)) if text else None
            denials = tuple(
                denial for denial in self._denials(session) if not self.ignores_errors or not denial.is_error
            )
            annotations, errors = self._annotate(session)
        except BudgetExceededError:
            return AdmissionDetail(binding, self._erred(_OUT_OF_BUDGET))
        return AdmissionDetail(binding, denials, () if self.ignores_errors else errors, annotations)

    def _denials(self, session: CelSession) -> Iterator[Denial]:
        """Evaluate every validation, then yield denials and errors, ignored ones too; raises BudgetExceededError.

        Messages are rendered one by one, as denials are read.
        """
        found: list[tuple[int, str]] = []
        for position, validation in enumerate(self.validations):
            try:
                if session.evaluate(validation.program) is not True:
                    found.append((position, ""))
            except PyvernoError as error:
                if has_run_out(session, error):
                    raise BudgetExceededError(_OUT_OF_BUDGET, resource="cost") from error
                found.append((position, _failed_expression(validation.text, error.message)))
        # Kubernetes: messages have variables of their own, and what is left of the budget
        messages = session.with_bindings({})
        if self._may_run_out(messages) and not self._messages_fit(messages):
            # every other decision becomes this error, those that passed included
            errors = {position: text for position, text in found if text}
            text = f"failed messageExpression: {_OUT_OF_BUDGET}"
            found = [(position, errors.get(position, text)) for position in range(len(self.validations))]
        for position, text in found:
            if text:
                yield Denial(position, text, is_error=True)
            else:
                yield Denial(position, _message(messages, self.validations[position]))

    def _annotate(self, session: CelSession) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
        """Return audit annotations that are not empty, and the errors of others; raises BudgetExceededError."""
        session = session.for_annotations()
        found: list[tuple[str, str]] = []
        errors: list[str] = []
        for key, program in self.annotations:
            try:
                value = session.evaluate(program)
            except BudgetExceededError:
                raise
            except PyvernoError as error:
                errors.append(_failed_expression(program.text.strip(), error.message))
                continue
            text = value.strip() if isinstance(value, str) else ""
            if text:
                found.append((key, text))
        return tuple(found), tuple(errors)

    def _erred(self, text: str) -> tuple[Denial, ...]:
        return () if self.ignores_errors else (Denial(0, text, is_error=True),)

    def session(self, run: Run) -> CelSession:
        """Return what the expressions are evaluated in, with the first parameter; raises what reading it raises."""
        params = [param for binding in _in_force(self.bindings, run) for param in binding.params.find(run)]
        return self._session(params[0] if params else None, run)

    def _session(self, param: JSON, run: Run) -> CelSession:
        return CelSession(
            run, {**_bindings(run, is_request=self.reports_all), "params": param}, self.variables, names_variables=True
        )

    def _judge(self, param: JSON, run: Run) -> Verdict:
        session = self._session(param, run)
        try:
            # Kubernetes: match conditions see no namespaceObject
            unmet = first_unmet(session.for_conditions({"namespaceObject": None}), self.conditions)
        except BudgetExceededError:
            return self._failed(_OUT_OF_BUDGET)
        if unmet is not None and (not unmet.errors or self.ignores_errors):
            return Verdict(Status.SKIP, self.skipped)
        if unmet is not None:
            return self._failed(_aggregate(unmet))
        decision = self._decide(session)
        try:
            _, errors = self._annotate(session)
        except BudgetExceededError:
            return self._failed(_OUT_OF_BUDGET)
        if not errors or self.ignores_errors or decision.status is not Status.PASS:
            return decision
        return self._failed(errors[0])

    def _decide(self, session: CelSession) -> Verdict:
        """Evaluate every validation; the first one denied decides and gives the message.

        An error that the failurePolicy ignores decides only where nothing is denied: it allows the request, but is
        no success.
        """
        ignored = ""
        try:
            for denial in self._denials(session):
                if not denial.is_error:
                    return Verdict(Status.FAIL, denial.message, CelDetail(denial.position))
                if not self.ignores_errors:
                    return self._failed(denial.message)
                ignored = ignored or denial.message
        except BudgetExceededError:
            return self._failed(_OUT_OF_BUDGET)
        return Verdict(Status.ERROR, ignored) if ignored else Verdict(Status.PASS, self.passed)

    def _may_run_out(self, session: CelSession) -> bool:
        """Return whether message expressions could use up the budget, if each costs as much as one may."""
        count = sum(validation.message_program is not None for validation in self.validations)
        return count > 0 and session.meter.left <= (count + len(self.variables)) * PER_EXPRESSION

    def _messages_fit(self, session: CelSession) -> bool:
        """Evaluate all message expressions, of validations that passed too, as far as the budget goes."""
        for validation in self.validations:
            if validation.message_program is not None:
                try:
                    session.evaluate(validation.message_program)
                except PyvernoError as error:
                    if has_run_out(session, error):
                        return False
        return True

    def _failed(self, text: str) -> Verdict:
        if self.ignores_errors:
            return Verdict(Status.PASS, self.passed)
        return Verdict(Status.FAIL if self.is_rule else Status.ERROR, text)


def _make_verdict(detail: AdmissionDetail | None) -> Verdict:
    if detail is None:
        return Verdict(Status.SKIP)
    status = Status.FAIL if detail.denials or detail.errors else Status.PASS
    return Verdict(status, detail=detail)


def _bindings(run: Run, *, is_request: bool) -> dict[str, Value]:
    """Return the variables of the request; its user is completed unless an API server sent it (`is_request`)."""
    request = run.request
    bindings = {**request_bindings(request, has_objects=False), **authorizer_bindings(request)}
    if run.rule.info.policy.family is Family.ADMISSION and (request.user.is_empty or not is_request):
        # Kyverno: pkg/admissionpolicy/user_info.go; without the fields `request.userInfo.groups` would be an error
        known = {} if request.user.is_empty else request.user.to_json()
        user = {**known, **{key: known.get(key) or value for key, value in _NO_USER.items()}}
        bindings["request"] = {**bindings["request"], "userInfo": user}
    return bindings


def _in_force(bindings: Sequence[Binding], run: Run) -> Sequence[Binding]:
    if not bindings:
        return (UNBOUND,)
    resource = Resource(run.request.subject)
    return [each for each in bindings if each.matcher is None or each.matcher.mismatch(run.request, resource) is None]


def _failed_expression(text: str, problem: str) -> str:
    return f"expression '{text}' resulted in error: {problem}"


def _mutation_value(program: Program, session: CelSession) -> Value:
    try:
        return session.evaluate(program)
    except PyvernoError as error:
        if has_run_out(session, error):
            raise EvaluationError(_OUT_OF_BUDGET) from error
        raise EvaluationError(_failed_expression(program.text.strip(), error.message)) from error


def _aggregate(unmet: Unmet) -> str:
    """Return the errors of match conditions as the API server lists them."""
    texts = tuple(dict.fromkeys(map(_failed_expression, unmet.expressions, unmet.errors)))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _message(session: CelSession, validation: CelValidation) -> str:
    """Return the message of a false validation: messageExpression, else message, else the expression."""
    if validation.message_program is not None:
        try:
            text: Value = session.evaluate(validation.message_program)
        except PyvernoError:
            # Kubernetes: an expression that fails falls back silently
            text = None
        found = text.strip() if isinstance(text, str) else ""
        is_one_line = "\n" not in found and "\r" not in found
        if found and is_one_line and len(found.encode()) <= MAX_MESSAGE:
            return str(found)
    return validation.message or f"failed expression: {validation.text.strip()}"


@dataclass(frozen=True, slots=True)
class AdmissionMutation(SkippedByException):
    """All mutations of a MutatingAdmissionPolicy for each of its bindings, one after another on the same object.

    `reports_all` continues after a mutation that fails, and gives all errors, as an API server needs them.
    """

    mutations: tuple[CelMutation, ...]
    conditions: tuple[CelCondition, ...] = ()
    variables: tuple[CelVariable, ...] = ()
    bindings: tuple[Binding, ...] = ()
    ignores_errors: bool = False
    skipped: str = "match conditions aren't met"
    reports_all: bool = False

    def run(self, run: Run) -> Sequence[Verdict]:
        """Mutate the object of the request; a DELETE has none."""
        if not isinstance(run.resource, dict):
            return ()
        changed: JSON = run.resource
        judged = skipped = False
        detail: CelDetail | None = None
        errors: list[str] = []
        for binding in _in_force(self.bindings, run):
            prefix = "failed to configure binding: "
            try:
                params = binding.params.find(run)
                prefix = ""
                detail = CelDetail(binding=binding.name) if binding.name else None
                for param in params:
                    found = self._changed(param, changed, run, errors)
                    judged = judged or found is not None
                    skipped = skipped or found is None
                    changed = changed if found is None else found
            except PyvernoError as error:
                if not self.ignores_errors:
                    denied = CelDetail(-1, binding.name, (_DENY,))
                    return (Verdict(Status.ERROR, f"{prefix}{error.message}", denied),)
        if errors:
            return tuple(Verdict(Status.ERROR, text) for text in errors)
        if not judged:
            return (Verdict(Status.SKIP, self.skipped, detail),) if skipped else ()
        patched = None if equal(changed, run.resource) else changed
        return (Verdict(Status.PASS, "mutation is successfully applied", detail, patched=patched),)

    def _changed(self, param: JSON, document: JSON, run: Run, errors: list[str]) -> JSON:
        """Return the object after all mutations, or None when the match conditions do not hold.

        Errors that do not end the policy are added to `errors`.
        """
        seen = {**_bindings(run, is_request=self.reports_all), "object": document, "params": param}
        session = CelSession(run, seen, self.variables, names_variables=True)
        unmet = first_unmet(session.for_conditions({"namespaceObject": None}), self.conditions)
        if unmet is not None:
            if unmet.errors and not self.ignores_errors:
                raise EvaluationError(_aggregate(unmet))
            return None
        for mutation in self.mutations:
            try:
                value = _mutation_value(mutation.program, session)
                document = laid_over(mutation, value, document, refuses_atomics=True, meter=run.runtime.budget)
            except PyvernoError as error:
                # Kubernetes: a mutation that fails is dropped, those after it still run
                if self.reports_all and not self.ignores_errors:
                    errors.append(error.message)
                elif not self.ignores_errors:
                    raise
            session = session.with_bindings({"object": document})
        return document
