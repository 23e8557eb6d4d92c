"""`validate.deny`: conditions under which the object is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyverno.engine.actions.exemption import SkippedByException
from pyverno.engine.actions.message import as_text, passed_message, rendered_message
from pyverno.engine.fast.conditions import Answers, compile_denial, denial_tier
from pyverno.engine.result import FailureAction, RuleResult, Status, Verdict
from pyverno.engine.rule import NO_FAST_TIER, FastTier, RuleInfo, Run
from pyverno.engine.rules.conditions import Conditions
from pyverno.engine.rules.guards import joined
from pyverno.errors import ExpressionError
from pyverno.lang.template import Template
from pyverno.value import dataclass, field

__all__ = ["DenyCheck"]


@dataclass(frozen=True, slots=True)
class DenyCheck(SkippedByException):
    """Denies when its conditions hold; without conditions it always denies.

    `texts` holds the texts of conditions that have variables.
    """

    rule: str
    message: Template
    conditions: Conditions | None = None
    texts: Mapping[str, Template] = field(default_factory=dict)

    def run(self, run: Run) -> Sequence[Verdict]:
        """Evaluate the conditions; unlike patterns they also judge a DELETE."""
        reasons: tuple[str, ...] = ()
        if self.conditions is not None:
            try:
                outcome = self.conditions.check(run.scope, run.runtime, delete_request=run.is_delete)
            except ExpressionError as error:
                return (Verdict(Status.ERROR, f"failed to check deny conditions: {error.message}"),)
            if not outcome.met:
                return (Verdict(Status.PASS, passed_message(self.rule)),)
            reasons = outcome.pieces
        return (Verdict(Status.FAIL, self._render_message(run, reasons)),)

    def fixed_failure(self) -> Verdict | None:
        """Return the verdict of a denial when it never depends on the request: no variables, no texts of conditions."""
        conditions = self.conditions
        if not self.message.is_static or conditions is None or conditions.has_messages:
            return None
        message = self.message.document
        text = message if isinstance(message, str) and message else f"validation error: rule {self.rule} failed"
        return Verdict(Status.FAIL, text)

    def fast_tier(self, info: RuleInfo, failure_action: FailureAction) -> FastTier:
        """Return the fast tier of a rule that is this denial: with a fixed text it is a function of the object."""
        failed = self.fixed_failure()
        if self.conditions is None or failed is None:
            return NO_FAST_TIER
        passed = Verdict(Status.PASS, passed_message(self.rule))
        denied, allowed = (RuleResult.of(info, failure_action, verdict) for verdict in (failed, passed))
        answers = Answers((denied,), (allowed,))
        return denial_tier(compile_denial(self.conditions, answers), answers)

    def _render_message(self, run: Run, reasons: tuple[str, ...]) -> str:
        # Kyverno: pkg/engine/handlers/validation - the message and the texts of the conditions are substituted as one
        written = "".join(reasons)
        try:
            message = rendered_message(self.message, run)
            found = [rendered_message(self.texts[text], run) if text in self.texts else text for text in reasons]
        except ExpressionError:
            # Kyverno: a message that cannot be resolved leaves the texts of the conditions, as they are written
            return written or f"validation error: rule {self.rule} failed"
        if message == "" and len(found) == 1:
            message, found = found[0], []
        if not isinstance(message, str):
            return "the produced message didn't resolve to a string, check your policy definition."
        return joined(message, "".join(map(as_text, found))) or f"validation error: rule {self.rule} failed"
