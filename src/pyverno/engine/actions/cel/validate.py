"""Validations of a ValidatingPolicy: CEL expressions that must be true of a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyverno.engine.cel.session import CelCondition, CelSession, CelVariable, Unmet, first_unmet, request_bindings
from pyverno.engine.fast.cel import cel_fast_tier
from pyverno.engine.result import CelDetail, FailureAction, RuleResult, Status, Verdict
from pyverno.engine.rule import NO_FAST_TIER, Exemption, FastTier, RuleInfo, Run
from pyverno.errors import BudgetExceededError, EvaluationError, PyvernoError
from pyverno.kube.json import JSON
from pyverno.lang.cel import Program
from pyverno.value import dataclass

__all__ = ["SKIPPED", "CelValidation", "ValidatingCheck", "exempted", "no_exceptions"]


@dataclass(frozen=True, slots=True)
class CelValidation:
    """One validation: its expression, its message when it is false, and its reason."""

    program: Program
    text: str
    message: str = ""
    message_program: Program | None = None
    reason: str = ""


_DECIDED = (Status.PASS, Status.FAIL)
_PASSED = Verdict(Status.PASS, "success")
SKIPPED = (Verdict(Status.SKIP, "skip"),)
"""The outcome of a policy for a request that its match conditions leave out."""


def no_exceptions() -> dict[str, JSON]:
    """Return the variable `exceptions` of a request to which none applies."""
    return {"allowedImages": [], "allowedValues": []}


def exempted(exemptions: Sequence[Exemption]) -> Sequence[Verdict] | None:
    """Return the verdict when exceptions exempt from the whole policy; the first by priority decides how it counts."""
    full = [exemption for exemption in exemptions if exemption.is_full]
    if not full:
        return None
    keys = tuple(exemption.key for exemption in full)
    listed = ", ".join(keys)
    chosen = max(full, key=lambda exemption: exemption.priority)
    if chosen.reports_pass:
        return (Verdict(Status.PASS, f"rule is passed due to policy exception: {listed}", exceptions=keys),)
    return (Verdict(Status.SKIP, f"rule is skipped due to policy exception: {listed}", exceptions=keys),)


@dataclass(frozen=True, slots=True)
class ValidatingCheck:
    """All validations of a policy, in order; the first that is false or fails decides."""

    validations: tuple[CelValidation, ...]
    conditions: tuple[CelCondition, ...] = ()
    variables: tuple[CelVariable, ...] = ()
    annotations: tuple[tuple[str, Program], ...] = ()
    ignores_errors: bool = False
    reads_payload: bool = False

    def run(self, run: Run) -> Sequence[Verdict]:
        """Judge the request."""
        return self._judge(run, no_exceptions())

    def exempt(self, run: Run, exemptions: Sequence[Exemption]) -> Sequence[Verdict] | None:
        """Skip the policy, or judge what an exception leaves of it; each exception is tried alone."""
        verdicts = exempted(exemptions)
        if verdicts is not None:
            return verdicts
        for exemption in exemptions:
            verdicts = self._judge(run, exemption.allowances)
            if not any(verdict.status in (Status.FAIL, Status.ERROR) for verdict in verdicts):
                return verdicts
        return None

    def fast_tier(self, info: RuleInfo, failure_action: FailureAction) -> FastTier:
        """Return the fast tier: none with audit annotations, which are computed on pass too."""
        if self.annotations:
            return NO_FAST_TIER
        passed = (RuleResult.of(info, failure_action, _PASSED),)
        validations = [validation.program for validation in self.validations]
        return cel_fast_tier(self.conditions, self.variables, validations, passed)

    def properties(self, run: Run, verdict: Verdict) -> Mapping[str, str]:
        """Return the audit annotations of a request that was judged; raises what their evaluation raises."""
        if verdict.exceptions or verdict.status not in _DECIDED:
            return {}
        return annotated(self._session(run, no_exceptions()), self.annotations)

    def session(self, run: Run) -> CelSession:
        """Return what the expressions are evaluated in when no exception applies."""
        return self._session(run, no_exceptions())

    def _session(self, run: Run, exceptions: Mapping[str, JSON]) -> CelSession:
        bindings = {"object": run.resource} if self.reads_payload else request_bindings(run.request)
        return CelSession(run, {**bindings, "exceptions": dict(exceptions)}, self.variables)

    def _judge(self, run: Run, exceptions: Mapping[str, JSON]) -> Sequence[Verdict]:
        session = self._session(run, exceptions)
        try:
            unmet = first_unmet(session.for_conditions(), self.conditions)
        except BudgetExceededError as error:
            unmet = Unmet("", (error.message,))
        if unmet is not None:
            if not unmet.errors or self.ignores_errors:
                return SKIPPED
            return (Verdict(Status.ERROR, f"failed to load context: {'; '.join(unmet.errors)}"),)
        verdict = self._validate(session)
        if self.annotations and verdict.status is not Status.ERROR:
            try:
                annotated(session, self.annotations)
            except PyvernoError as error:
                # Kyverno: after validations that hold, this error does not come from a rule
                prefix = "failed to load context" if verdict.status is Status.PASS else "error"
                return (Verdict(Status.ERROR, f"{prefix}: {error.message}", verdict.detail),)
        return (verdict,)

    def _validate(self, session: CelSession) -> Verdict:
        for index, validation in enumerate(self.validations):
            try:
                holds = session.evaluate(validation.program)
            except BudgetExceededError as error:
                return Verdict(Status.ERROR, f"error: {error.message}")
            except PyvernoError as error:
                return Verdict(Status.ERROR, f"error: {error.message}", CelDetail(index))
            if holds is not True:
                return Verdict(Status.FAIL, _message(session, validation, index), CelDetail(index))
        return _PASSED


def annotated(
    session: CelSession, annotations: Sequence[tuple[str, Program]], *, quote: str = "'"
) -> Mapping[str, str]:
    """Return audit annotations by key, empty ones left out; raises EvaluationError or BudgetExceededError.

    `quote` is around the key in the text of an error.
    """
    session = session.for_annotations()
    found: dict[str, str] = {}
    for key, program in annotations:
        try:
            text = session.evaluate(program)
        except BudgetExceededError:
            raise
        except PyvernoError as error:
            raise EvaluationError(f"failed to evaluate auditAnnotation {quote}{key}{quote}: {error.message}") from error
        if not isinstance(text, str):
            # Kyverno: null compiles but is not a text
            problem = "type conversion error from 'null_type' to 'string'"
            raise EvaluationError(f"failed to convert auditAnnotation {quote}{key}{quote} expression: {problem}")
        if text:
            found[key] = text
    return found


def _message(session: CelSession, validation: CelValidation, index: int) -> str:
    if validation.message_program is not None:
        try:
            text = session.evaluate(validation.message_program)
        except PyvernoError as error:
            return f"failed to evaluate message expression: {error.message}"
        # Kyverno: the result replaces the message of the policy, also when it is empty
        message = text if isinstance(text, str) else ""
    else:
        message = validation.message
    return message or f"CEL expression validation failed at index {index}"
