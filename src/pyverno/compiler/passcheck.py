"""The pass-check of a rule's action: generated or cut short where the action allows it, absent where it does not.

Law: when the check of a rule returns True, the closures of its action return PASS. Whether anything beside the action
(guards, exceptions, matching, supplied variables) stands in the way is the engine's business.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyverno.engine.actions.deny import DenyCheck
from pyverno.engine.actions.foreach import ForeachCheck, ForeachEntry
from pyverno.engine.actions.pattern import AnyPatternCheck, PatternCheck, any_passed_message, passed_message
from pyverno.engine.rule import Action
from pyverno.engine.shortcuts import conditions_shortcut, list_shortcut
from pyverno.kube.json import JSON
from pyverno.lang.pattern.validate import Pattern

__all__ = ["PassCheck", "pass_check"]

Check = Callable[[JSON], bool]


@dataclass(frozen=True, slots=True)
class PassCheck:
    """A check of the new object, the text of the PASS it stands for, and the pattern it was generated from, if any."""

    check: Check
    message: str
    patterns: tuple[Pattern, ...] = ()


def pass_check(action: Action) -> PassCheck | None:
    """Return the pass-check of an action, or None."""
    match action:
        case PatternCheck(compiled=Pattern() as pattern, scoped=False) if pattern.passes is not None:
            return PassCheck(pattern.passes, passed_message(action.rule), (pattern,))
        case AnyPatternCheck(compiled=(Pattern() as first, *_), scoped=False) if first.passes is not None:
            return PassCheck(first.passes, any_passed_message(action.rule, 0))
        case DenyCheck():
            denies = _denies(action)
            if denies is not None:
                return PassCheck(lambda subject: not denies(_data(subject, None)), passed_message(action.rule))
        case ForeachCheck(nested=False):
            entries = [_entry(entry) for entry in action.entries]
            checks = [entry for entry in entries if entry is not None]
            if checks and len(checks) == len(entries):
                return PassCheck(lambda subject: _applied(checks, subject) > 0, "rule passed")
    return None


class _FailsError(Exception):
    """An element does not pass."""


def _data(subject: JSON, element: JSON) -> dict[str, JSON]:
    return {"request": {"object": subject}, "element": element}


def _denies(check: DenyCheck) -> Callable[[dict[str, JSON]], bool] | None:
    return None if check.conditions is None else conditions_shortcut(check.conditions)


def _applied(entries: list[Callable[[JSON], int]], subject: JSON) -> int:
    """Return how many elements passed; raises when one does not."""
    return sum([entry(subject) for entry in entries])


def _entry(entry: ForeachEntry) -> Callable[[JSON], int] | None:
    elements = entry.elements
    if elements.bindings or elements.preconditions is not None:
        return None
    get, check = list_shortcut(elements.query), _element_check(entry)
    if get is None or check is None:
        return None

    def applied(subject: JSON) -> int:
        data = _data(subject, None)
        found = get(data)
        if type(found) is not list:
            raise _FailsError
        count = 0
        for element in found:
            if element is None:
                continue
            data["element"] = element
            if check(data) is not True:
                raise _FailsError
            count += 1
        return count

    return applied


def _element_check(entry: ForeachEntry) -> Callable[[dict[str, JSON]], bool] | None:
    """Return the check of one element: it passes, and is not merely skipped."""
    match entry.check:
        case DenyCheck() as deny if entry.scoped_check is None:
            denies = _denies(deny)
            return None if denies is None else lambda data: not denies(data)
        case PatternCheck(compiled=Pattern() as pattern) if entry.element_scope is not False:
            passes = pattern.passes
            if passes is not None:
                return lambda data: type(data["element"]) is dict and passes(data["element"])
    return None
