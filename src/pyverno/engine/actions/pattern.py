"""`validate.pattern` and `validate.anyPattern`: the object must have a shape."""

from __future__ import annotations

from collections.abc import Sequence

from pyverno.engine.actions.exemption import SkippedByException
from pyverno.engine.actions.message import as_text, passed_message, rendered_message, validation_error
from pyverno.engine.result import (
    FailureAction,
    PatternDetail,
    RuleResult,
    Status,
    Verdict,
    failed_paths,
    failed_results,
)
from pyverno.engine.rule import NO_FAST_TIER, FastTier, FastVerdict, PassCheckPart, RuleInfo, Run
from pyverno.errors import ExpressionError
from pyverno.kube.json import JSON, weight
from pyverno.kube.meter import FREE_OF_CHARGE
from pyverno.lang.pattern.fast.passcheck import fuse
from pyverno.lang.pattern.outcome import Outcome
from pyverno.lang.pattern.outcome import Status as Match
from pyverno.lang.pattern.validate import Pattern, compile_pattern
from pyverno.lang.template import Template
from pyverno.value import dataclass

__all__ = ["AnyPatternCheck", "PatternCheck", "any_passed_message", "subject_name", "subject_of"]


_BYTES_PER_STEP = 2
_UNHAPPY = (Match.FAIL, Match.ERROR)


def any_passed_message(rule: str, index: int) -> str:
    """Return the text of an anyPattern rule that passed.

    >>> any_passed_message("check", 1)
    "validation rule 'check' anyPattern[1] passed."
    """
    return f"validation rule '{rule}' anyPattern[{index}] passed."


def subject_name(run: Run, scoped: bool, outer: Sequence[int]) -> str:
    """Return the variable that a pattern is matched on: an element of a foreach, or "" for the new object.

    `outer` holds the depths of the surrounding loops whose elements are maps, the innermost first.
    """
    if scoped:
        return "element"
    return next((f"element{depth}" for depth in outer if isinstance(run.scope[f"element{depth}"], dict)), "")


def subject_of(run: Run, scoped: bool, outer: Sequence[int]) -> JSON:
    """Return what a pattern is matched on: the value of `subject_name`, or the new object."""
    name = subject_name(run, scoped, outer)
    return run.scope[name] if name else run.resource


@dataclass(frozen=True, slots=True)
class PatternCheck(SkippedByException):
    """One pattern. `compiled` is set when it has no variables; `scoped` and `outer` choose the subject."""

    rule: str
    template: Template
    message: Template
    compiled: Pattern | None = None
    scoped: bool = False
    outer: tuple[int, ...] = ()

    def run(self, run: Run) -> Sequence[Verdict]:
        """Match the pattern; a DELETE has no new object and gives no result."""
        subject = subject_of(run, self.scoped, self.outer)
        if subject is None:
            return ()
        pattern = self.compiled
        if pattern is None:
            try:
                # compiled for this one request: a pass-check would cost more than it saves
                document = self.template.render(run.scope, run.runtime, delete_request=run.is_delete)
                pattern = self.make(document, run)
            except ExpressionError as error:
                return (Verdict(Status.ERROR, f"variable substitution failed: {error.message}"),)
            outcome = pattern.match(subject, run.runtime.budget)
        else:
            outcome = pattern.decide(subject, run.runtime.budget)
        if outcome.status in _UNHAPPY and not self.message.is_static:
            return (self._failure(run, outcome),)
        return (self._verdict(outcome, self.message.document),)

    def make(self, document: JSON, run: Run) -> Pattern:
        """Compile the pattern that variables made for one request."""
        return _compile(document, run)

    def fast_tier(self, info: RuleInfo, action: FailureAction) -> FastTier:
        """Return the fast tier of a rule that is this pattern."""
        if self.compiled is None or self.scoped or self.outer:
            return NO_FAST_TIER
        return FastTier(self.by_object(info, action), PassCheckPart(self.compiled, fuse), (self.passed(info, action),))

    def passed(self, info: RuleInfo, action: FailureAction) -> RuleResult:
        """Return the result of the rule when it passes; it is the same each time."""
        return RuleResult.of(info, action, Verdict(Status.PASS, passed_message(self.rule)))

    def by_object(self, info: RuleInfo, action: FailureAction) -> FastVerdict | None:
        """Return the rule as a function of the object; a message with variables leaves failures to `run`."""
        pattern = self.compiled
        if pattern is None or self.scoped or self.outer:
            return None
        message, is_static = self.message.document, self.message.is_static
        passed, failing_path = (self.passed(info, action),), pattern.failing_path
        if failing_path is None:
            passes = pattern.passes

            def by_match(subject: JSON) -> Sequence[RuleResult] | None:
                if passes is not None and passes(subject) is True:
                    return passed
                verdict = self._verdict(pattern.match(subject, FREE_OF_CHARGE), message) if is_static else None
                return None if verdict is None else (RuleResult.of(info, action, verdict),)

            return by_match
        prefix = validation_error(as_text(message), f"rule {self.rule} failed at path ")
        failed = failed_paths(info, action, prefix)

        def by_path(subject: JSON) -> Sequence[RuleResult] | None:
            path = failing_path(subject)
            if not path:
                return passed
            return failed(path) if is_static else None

        return by_path

    def _verdict(self, outcome: Outcome, message: JSON) -> Verdict:
        match outcome.status:
            case Match.PASS:
                return Verdict(Status.PASS, passed_message(self.rule))
            case Match.SKIP:
                return Verdict(Status.SKIP, outcome.message)
        text = as_text(message)
        if not outcome.path:
            tail = f"rule {self.rule} execution error: {outcome.message}"
            return Verdict(Status.ERROR, validation_error(text, tail))
        tail = f"rule {self.rule} failed at path {outcome.path}"
        return Verdict(Status.FAIL, validation_error(text, tail), PatternDetail(outcome.path))

    def _failure(self, run: Run, outcome: Outcome) -> Verdict:
        try:
            message = rendered_message(self.message, run)
        except ExpressionError as error:
            # Kyverno shows the value of the object and the expected one: either may come from a Secret or the cluster
            tail = f"variables substitution error in rule {self.rule} execution error: {error.message}"
            return Verdict(_status(outcome), f"validation error: {tail}", PatternDetail(outcome.path))
        return self._verdict(outcome, message)


def _compile(document: JSON, run: Run, *, float_numbers: bool = False) -> Pattern:
    """Compile a pattern that variables have made: what it costs depends on the request."""
    run.runtime.budget.charge_bytes(weight(document), per_step=_BYTES_PER_STEP)
    return compile_pattern(document, float_numbers=float_numbers)


def _status(outcome: Outcome) -> Status:
    return Status.FAIL if outcome.path else Status.ERROR


@dataclass(frozen=True, slots=True)
class AnyPatternCheck(SkippedByException):
    """Alternatives of which one must fit; `compiled` is set when they have no variables."""

    rule: str
    template: Template
    message: Template
    compiled: tuple[Pattern, ...] | None = None
    scoped: bool = False
    outer: tuple[int, ...] = ()

    def run(self, run: Run) -> Sequence[Verdict]:
        """Match the alternatives in order."""
        subject = subject_of(run, self.scoped, self.outer)
        if subject is None:
            return ()
        patterns = self.compiled
        if patterns is None:
            try:
                patterns = self._render_patterns(run)
            except ExpressionError as error:
                return (Verdict(Status.ERROR, f"variable substitution failed: {error.message}"),)
            if patterns is None:
                text = "failed to deserialize anyPattern, expected type array"
                return (Verdict(Status.ERROR, text),)
        return self._judge(patterns, subject, run)

    def make(self, document: JSON, run: Run) -> Pattern:
        """Compile one alternative that variables made for one request."""
        return _compile(document, run, float_numbers=True)

    def fast_tier(self, info: RuleInfo, action: FailureAction) -> FastTier:
        """Return the fast tier of a rule that is these alternatives; its pass-check proves the first of them."""
        verdict = self.by_object(info, action)
        if verdict is None or not self.compiled or self.outer:
            return FastTier(verdict)
        return FastTier(verdict, PassCheckPart(self.compiled[0], fuse), (self._passed(info, action, 0),), is_apart=True)

    def by_object(self, info: RuleInfo, action: FailureAction) -> FastVerdict | None:
        """Return the rule as a function of the object, when neither the alternatives nor the message have variables."""
        if not self.compiled or self.scoped or not self.message.is_static:
            return None
        alternatives = []
        for index, pattern in enumerate(self.compiled):
            if pattern.failing_path is None:
                return None
            passed = (self._passed(info, action, index),)
            alternatives.append((pattern.failing_path, f"rule {self.rule}[{index}] failed at path ", passed))
        prefix = validation_error(as_text(self.message.document), "")
        failed_result = failed_results(info, action)

        def verdict(subject: JSON) -> Sequence[RuleResult]:
            text = prefix
            separator = ""
            for failing_path, failed, passed in alternatives:
                path = failing_path(subject)
                if not path:
                    return passed
                text += separator + failed + path
                separator = " "
            return (failed_result(text),)

        return verdict

    def _passed(self, info: RuleInfo, action: FailureAction, index: int) -> RuleResult:
        return RuleResult.of(info, action, Verdict(Status.PASS, any_passed_message(self.rule, index)))

    def _judge(self, patterns: Sequence[Pattern], subject: JSON, run: Run) -> Sequence[Verdict]:
        if not patterns:
            return (Verdict(Status.PASS, self._message_or_empty(run)),)
        is_kept = patterns is self.compiled
        pieces, failed = [], []
        for index, pattern in enumerate(patterns):
            match = pattern.decide if is_kept else pattern.match
            outcome = match(subject, run.runtime.budget)
            if outcome.status is Match.PASS:
                return (Verdict(Status.PASS, any_passed_message(self.rule, index)),)
            if outcome.status is Match.SKIP:
                pieces.append(f"rule {self.rule}[{index}] skipped: {outcome.message}")
            elif outcome.path:
                failed.append(f"rule {self.rule}[{index}] failed at path {outcome.path}")
            else:
                failed.append(f"rule {self.rule}[{index}] failed: {outcome.message}")
        if not failed:
            return (Verdict(Status.SKIP, " ".join(pieces)),)
        return (Verdict(Status.FAIL, self._failure(run, " ".join(failed))),)

    def _render_patterns(self, run: Run) -> tuple[Pattern, ...] | None:
        document = self.template.render(run.scope, run.runtime, delete_request=run.is_delete)
        if not isinstance(document, list):
            return None
        return tuple(self.make(item, run) for item in document)

    def _failure(self, run: Run, found: str) -> str:
        try:
            message = as_text(rendered_message(self.message, run))
        except ExpressionError:
            return f"validation error: variables substitution error in rule {self.rule} execution error: {found}"
        return validation_error(message, found)

    def _message_or_empty(self, run: Run) -> str:
        try:
            return as_text(rendered_message(self.message, run))
        except ExpressionError:
            return ""
