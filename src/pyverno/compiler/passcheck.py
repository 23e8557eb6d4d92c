"""What of a rule can be told from the object alone: its pass-check, and the rule as a function of the object.

Laws: when the check of a rule returns True, the closures of its action return PASS; when the judge of a rule returns
results, they are those of the closures. Whether anything beside the action (guards, exceptions, matching, supplied
variables) stands in the way is the engine's business.
"""

from __future__ import annotations

from pyverno.engine.actions.deny import DenyCheck
from pyverno.engine.actions.foreach import PASSED, ForeachCheck
from pyverno.engine.actions.pattern import AnyPatternCheck, PatternCheck, passed_message
from pyverno.engine.result import FailureAction, RuleResult, Status, Verdict
from pyverno.engine.rule import NO_SHORTCUT, Action, Judge, RuleInfo, Shortcut
from pyverno.engine.shortcuts import Answers, compile_denial, compile_denial_of_each
from pyverno.lang.pattern.validate import Pattern

__all__ = ["make_shortcut"]


def make_shortcut(action: Action, info: RuleInfo, failure_action: FailureAction) -> Shortcut:
    """Return the fast tier of an action: what it is fused by, and the action as a function of the object."""
    match action:
        case PatternCheck(compiled=Pattern() as pattern, scoped=False):
            passed = action.passed(info, failure_action)
            return Shortcut(action.by_object(info, failure_action), pattern, passed)
        case AnyPatternCheck():
            return Shortcut(action.by_object(info, failure_action))
        case DenyCheck():
            return Shortcut(_deny_judge(action, info, failure_action))
        case ForeachCheck(nested=False):
            return Shortcut(_foreach_judge(action, info, failure_action))
    return NO_SHORTCUT


def _deny_judge(action: DenyCheck, info: RuleInfo, failure_action: FailureAction) -> Judge | None:
    failed = action.fixed_failure()
    if action.conditions is None or failed is None:
        return None
    passed = Verdict(Status.PASS, passed_message(action.rule))
    denied, allowed = (RuleResult.of(info, failure_action, verdict) for verdict in (failed, passed))
    return compile_denial(action.conditions, Answers((denied,), (allowed,)))


def _foreach_judge(action: ForeachCheck, info: RuleInfo, failure_action: FailureAction) -> Judge | None:
    """Judge a foreach over one list whose elements are denied with a fixed text."""
    if len(action.entries) != 1:
        return None
    elements, check = action.entries[0].elements, action.entries[0].check
    if elements.bindings or elements.preconditions is not None or not isinstance(check, DenyCheck):
        return None
    failed = check.fixed_failure()
    if check.conditions is None or failed is None:
        return None
    failed = Verdict(failed.status, f"validation failure: {failed.message}")
    denied, allowed = (RuleResult.of(info, failure_action, verdict) for verdict in (failed, PASSED))
    return compile_denial_of_each(elements.query, check.conditions, Answers((denied,), (allowed,), ()))
