"""What of a rule's action can be told from the object alone: its pass-check, and the action as a function of the object.

Laws: when the check of a rule returns True, the closures of its action return PASS; when the judge of a rule returns
verdicts, they are those of the closures. Whether anything beside the action (guards, exceptions, matching, supplied
variables) stands in the way is the engine's business.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyverno.engine.actions.deny import DenyCheck
from pyverno.engine.actions.foreach import ForeachCheck
from pyverno.engine.actions.pattern import AnyPatternCheck, PatternCheck, passed_message
from pyverno.engine.result import Status, Verdict
from pyverno.engine.rule import Action, Judge
from pyverno.engine.shortcuts import conditions_shortcut, list_shortcut
from pyverno.kube.json import JSON
from pyverno.lang.pattern.validate import Pattern

__all__ = ["PassCheck", "object_judge", "pass_check"]


@dataclass(frozen=True, slots=True)
class PassCheck:
    """A check of the new object, the text of the PASS it stands for, and the pattern that it was generated from."""

    check: Callable[[JSON], bool]
    message: str
    pattern: Pattern


def pass_check(action: Action) -> PassCheck | None:
    """Return the generated pass-check of an action, or None."""
    match action:
        case PatternCheck(compiled=Pattern() as pattern, scoped=False) if pattern.passes is not None:
            return PassCheck(pattern.passes, passed_message(action.rule), pattern)
    return None


def object_judge(action: Action) -> Judge | None:
    """Return the action as a function of the object, when nothing else has a say in its verdict."""
    match action:
        case PatternCheck():
            return action.by_object()
        case AnyPatternCheck(compiled=tuple(), scoped=False) if action.message.is_static:
            return action.judge
        case DenyCheck():
            return _deny_judge(action)
        case ForeachCheck(nested=False):
            return _foreach_judge(action)
    return None


def _deny_judge(action: DenyCheck) -> Judge | None:
    denies, failed = _denies(action), action.fixed_failure()
    if denies is None or failed is None:
        return None
    verdicts, passed = (failed,), (Verdict(Status.PASS, passed_message(action.rule)),)
    return lambda subject: verdicts if denies({"request": {"object": subject}}) else passed


def _foreach_judge(action: ForeachCheck) -> Judge | None:
    """Judge a foreach over one list whose elements are denied with a fixed text."""
    if len(action.entries) != 1:
        return None
    elements, check = action.entries[0].elements, action.entries[0].check
    if elements.bindings or elements.preconditions is not None or not isinstance(check, DenyCheck):
        return None
    get, denies, failed = list_shortcut(elements.query), _denies(check), check.fixed_failure()
    if get is None or denies is None or failed is None:
        return None
    verdicts = (Verdict(failed.status, f"validation failure: {failed.message}"),)
    passed = (Verdict(Status.PASS, "rule passed"),)

    def judge(subject: JSON) -> Sequence[Verdict]:
        data: dict[str, JSON] = {"request": {"object": subject}}
        found = get(data)
        applied = False
        for element in found if type(found) is list else [found]:
            if element is not None:
                data["element"] = element
                if denies(data):
                    return verdicts
                applied = True
        return passed if applied else ()

    return judge


def _denies(check: DenyCheck) -> Callable[[dict[str, JSON]], bool] | None:
    return None if check.conditions is None else conditions_shortcut(check.conditions)
