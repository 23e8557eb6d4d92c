"""`validate.foreach`: a check for every element of lists, possibly nested."""

from __future__ import annotations

from collections.abc import Sequence

from pyverno.engine.actions.deny import DenyCheck
from pyverno.engine.actions.elements import Elements
from pyverno.engine.actions.exemption import SkippedByException
from pyverno.engine.fast.conditions import Answers, compile_denial_of_each, denial_tier
from pyverno.engine.result import FailureAction, RuleResult, Status, Verdict
from pyverno.engine.rule import NO_FAST_TIER, Action, FastTier, RuleInfo, Run
from pyverno.errors import (
    BudgetExceededError,
    ContextEntryError,
    ExpressionError,
    HostError,
    PyvernoError,
)
from pyverno.kube.json import JSON
from pyverno.lang.pattern.outcome import go_type
from pyverno.value import dataclass

__all__ = ["PASSED", "ForeachCheck", "ForeachEntry"]

PASSED = Verdict(Status.PASS, "rule passed")
"""The message of a foreach of which every element passed."""

_UNKNOWN_KEY = "Unknown key"


@dataclass(frozen=True, slots=True)
class ForeachEntry:
    """One list and what is checked for its elements.

    `check` judges the element when `scoped_check` does not; which of the two is used depends on `element_scope`
    (None = the element is matched when it is a map).
    """

    elements: Elements
    check: Action
    scoped_check: Action | None = None
    element_scope: bool | None = None

    def check_for(self, element: JSON) -> Action:
        """Return the check of an element."""
        if self.scoped_check is None:
            return self.check
        if self.element_scope is None:
            return self.scoped_check if isinstance(element, dict) else self.check
        return self.scoped_check if self.element_scope else self.check

    def scope_error(self, element: JSON) -> str:
        """Return why the entry cannot be scoped to an element, "" when it can."""
        if not self.element_scope or isinstance(element, dict):
            return ""
        return (
            "failed to process foreach: cannot use elementScope=true foreach rules for elements that are not maps, "
            f"expected type=map got type={go_type(element)}"
        )


@dataclass(frozen=True, slots=True)
class ForeachCheck(SkippedByException):
    """Entries in order; the first element that fails or errs ends the rule, no applied element means no result.

    A list that cannot be evaluated is an error of the rule unless an element of another list fails.
    """

    entries: tuple[ForeachEntry, ...]
    nested: bool = False

    def fast_tier(self, info: RuleInfo, failure_action: FailureAction) -> FastTier:
        """Return the fast tier of a foreach over one list whose elements are denied with a fixed text."""
        if self.nested or len(self.entries) != 1:
            return NO_FAST_TIER
        elements, check = self.entries[0].elements, self.entries[0].check
        if elements.bindings or elements.preconditions is not None or not isinstance(check, DenyCheck):
            return NO_FAST_TIER
        failed = check.fixed_failure()
        if check.conditions is None or failed is None:
            return NO_FAST_TIER
        failed = Verdict(failed.status, f"validation failure: {failed.message}")
        denied, allowed = (RuleResult.of(info, failure_action, verdict) for verdict in (failed, PASSED))
        answers = Answers((denied,), (allowed,), ())
        return denial_tier(compile_denial_of_each(elements.query, check.conditions, answers), answers)

    def run(self, run: Run) -> Sequence[Verdict]:
        """Check all elements of all lists."""
        applied = 0
        list_error = ""
        for entry in self.entries:
            try:
                values = entry.elements.values(run)
            except (BudgetExceededError, ContextEntryError, HostError):
                raise
            except ExpressionError as error:
                # Kyverno: a list that does not exist has no elements
                if _UNKNOWN_KEY not in error.message:
                    list_error = list_error or error.message
                continue
            count, verdict = _check_elements(entry, values, run)
            if verdict is not None:
                return (verdict,)
            applied += count
        if list_error:  # also beside lists whose elements pass: an error is never a pass
            return (Verdict(Status.ERROR, f"failed to evaluate list: {list_error}"),)
        if applied:
            return (Verdict(Status.PASS) if self.nested else PASSED,)
        return ()


def _check_elements(entry: ForeachEntry, values: list[JSON], run: Run) -> tuple[int, Verdict | None]:
    applied = 0
    for _, element, inner in entry.elements.visit(run, values):
        scope_error = entry.scope_error(element)
        if scope_error:
            return applied, Verdict(Status.ERROR, scope_error)
        if entry.elements.preconditions is not None:
            try:
                if entry.elements.preconditions.check(inner) is not None:
                    continue
            except (BudgetExceededError, HostError):
                raise
            except ExpressionError as error:
                return applied, Verdict(Status.ERROR, f"validation failure: {error.message}")
        try:
            verdicts = entry.check_for(element).run(inner)
        except (BudgetExceededError, HostError):
            raise
        except PyvernoError as error:
            return applied, Verdict(Status.ERROR, f"validation failure: {error.message}")
        for verdict in verdicts:
            if verdict.status in (Status.FAIL, Status.ERROR):
                return applied, Verdict(verdict.status, f"validation failure: {verdict.message}", verdict.detail)
            if verdict.status is Status.PASS:
                applied += 1
    return applied, None
