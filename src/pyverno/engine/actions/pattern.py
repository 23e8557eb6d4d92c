"""`validate.pattern` and `validate.anyPattern`: the object must have a shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


_UNHAPPY = (Match.FAIL, Match.ERROR)


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
                # compiled for this one request: a pass-check would cost more than it saves
                document = self.template.render(run.scope, run.runtime, delete_request=run.is_delete)
                pattern = compile_pattern(document)
            except ExpressionError as error:
                return (Verdict(Status.ERROR, f"variable substitution failed: {error.message}"),)
        elif surely_passes(pattern, subject):
            return (Verdict(Status.PASS, passed_message(self.rule)),)
        outcome = pattern.match(subject)
        if outcome.status in _UNHAPPY and not self.message.is_static:
            return (self._failure(run, outcome),)
        return (self._verdict(outcome, self.message.document),)

    def by_object(self) -> Callable[[JSON], Sequence[Verdict]] | None:
        """Return the check as a function of the object, when neither pattern nor message has variables."""
        pattern = self.compiled
        if pattern is None or self.scoped or not self.message.is_static:
            return None
        failing_path, message = pattern.failing_path, self.message.document
        prefix = validation_error(as_text(message), f"rule {self.rule} failed at path ")

        def judge(subject: JSON) -> Sequence[Verdict]:
            path = failing_path(subject)
            if path:
                return (Verdict(Status.FAIL, prefix + path, PatternDetail(path)),)
            return (self._verdict(pattern.match(subject), message),)

        return judge

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
            tail = f"variables substitution error in rule {self.rule} execution error: {error.message}"
            return Verdict(_status(outcome), f"validation error: {tail}", PatternDetail(outcome.path))
        return self._verdict(outcome, message)


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
        return self._judged(
            patterns, subject, lambda: self._message_or_empty(run), uses_checks=patterns is self.compiled
        )

    def judge(self, subject: JSON) -> Sequence[Verdict]:
        """Match the alternatives when neither they nor the message have variables."""
        assert self.compiled is not None  # noqa: S101 - the compiler asks for this form only then
        return self._judged(self.compiled, subject, lambda: as_text(self.message.document), uses_checks=True)

    def _judged(
        self, patterns: Sequence[Pattern], subject: JSON, message: Callable[[], str], *, uses_checks: bool
    ) -> Sequence[Verdict]:
        if not patterns:
            return (Verdict(Status.PASS, message()),)
        pieces, failed = [], []
        for index, pattern in enumerate(patterns):
            if uses_checks and surely_passes(pattern, subject):
                return (Verdict(Status.PASS, any_passed_message(self.rule, index)),)
            path = pattern.failing_path(subject) if uses_checks else ""
            if path:
                failed.append(f"rule {self.rule}[{index}] failed at path {path}")
                continue
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
        return (Verdict(Status.FAIL, validation_error(message(), " ".join(failed))),)

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
