"""`validate.pattern` and `validate.anyPattern`: the object must have a shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyverno.engine.actions.exemption import SkippedByException
from pyverno.engine.actions.message import as_text, rendered_message, validation_error
from pyverno.engine.result import PatternDetail, Status, Verdict
from pyverno.engine.rule import Run
from pyverno.errors import ExpressionError
from pyverno.kube.json import JSON
from pyverno.lang.pattern.outcome import Outcome
from pyverno.lang.pattern.outcome import Status as Match
from pyverno.lang.pattern.validate import Pattern, compile_pattern
from pyverno.lang.template import Template

__all__ = ["AnyPatternCheck", "PatternCheck", "any_passed_message", "passed_message", "subject_of", "surely_passes"]


def passed_message(rule: str) -> str:
    """Return the text of a rule that passed.

    >>> passed_message("check")
    "validation rule 'check' passed."
    """
    return f"validation rule '{rule}' passed."


def any_passed_message(rule: str, index: int) -> str:
    """Return the text of an anyPattern rule that passed.

    >>> any_passed_message("check", 1)
    "validation rule 'check' anyPattern[1] passed."
    """
    return f"validation rule '{rule}' anyPattern[{index}] passed."


def surely_passes(pattern: Pattern, subject: JSON) -> bool:
    """Tell whether the generated pass-check of a pattern proves that it passes."""
    return pattern.passes is not None and pattern.passes(subject) is True


def subject_of(run: Run, scoped: bool) -> JSON:
    """Return what a pattern is matched on: the element of a foreach, or the new object."""
    return run.scope["element"] if scoped else run.resource


@dataclass(frozen=True, slots=True)
class PatternCheck(SkippedByException):
    """One pattern. `compiled` is set when it has no variables; `scoped` matches the foreach element."""

    rule: str
    template: Template
    message: Template
    compiled: Pattern | None = None
    scoped: bool = False

    def run(self, run: Run) -> Sequence[Verdict]:
        """Match the pattern; a DELETE has no new object and gives no result."""
        subject = subject_of(run, self.scoped)
        if subject is None:
            return ()
        pattern = self.compiled
        if pattern is None:
            try:
                # compiled for this one request: its pass-check would cost more than it saves
                document = self.template.render(run.scope, run.runtime, delete_request=run.is_delete)
                pattern = compile_pattern(document)
            except ExpressionError as error:
                return (Verdict(Status.ERROR, f"variable substitution failed: {error.message}"),)
        if pattern is self.compiled and surely_passes(pattern, subject):
            return (Verdict(Status.PASS, passed_message(self.rule)),)
        outcome = pattern.match(subject)
        match outcome.status:
            case Match.PASS:
                return (Verdict(Status.PASS, passed_message(self.rule)),)
            case Match.SKIP:
                return (Verdict(Status.SKIP, outcome.message),)
            case _:
                return (self._failure(run, outcome),)

    def _failure(self, run: Run, outcome: Outcome) -> Verdict:
        try:
            message = as_text(rendered_message(self.message, run))
        except ExpressionError as error:
            tail = f"variables substitution error in rule {self.rule} execution error: {error.message}"
            return Verdict(_status(outcome), f"validation error: {tail}", PatternDetail(outcome.path))
        if not outcome.path:
            tail = f"rule {self.rule} execution error: {outcome.message}"
            return Verdict(Status.ERROR, validation_error(message, tail))
        tail = f"rule {self.rule} failed at path {outcome.path}"
        return Verdict(Status.FAIL, validation_error(message, tail), PatternDetail(outcome.path))


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

    def run(self, run: Run) -> Sequence[Verdict]:
        """Match the alternatives in order."""
        subject = subject_of(run, self.scoped)
        if subject is None:
            return ()
        patterns = self.compiled
        if patterns is None:
            try:
                patterns = self._rendered(run)
            except ExpressionError as error:
                return (Verdict(Status.ERROR, f"variable substitution failed: {error.message}"),)
            if patterns is None:
                text = "failed to deserialize anyPattern, expected type array"
                return (Verdict(Status.ERROR, text),)
        if not patterns:
            return (Verdict(Status.PASS, self._message_or_empty(run)),)
        pieces, failed = [], []
        for index, pattern in enumerate(patterns):
            if patterns is self.compiled and surely_passes(pattern, subject):
                return (Verdict(Status.PASS, any_passed_message(self.rule, index)),)
            outcome = pattern.match(subject)
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
        message = self._message_or_empty(run)
        return (Verdict(Status.FAIL, validation_error(message, " ".join(failed))),)

    def _rendered(self, run: Run) -> tuple[Pattern, ...] | None:
        document = self.template.render(run.scope, run.runtime, delete_request=run.is_delete)
        if not isinstance(document, list):
            return None
        return tuple(compile_pattern(item, float_numbers=True) for item in document)

    def _message_or_empty(self, run: Run) -> str:
        try:
            return as_text(rendered_message(self.message, run))
        except ExpressionError:
            return ""
