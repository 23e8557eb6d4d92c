"""Changes of preconditions and of the conditions of deny: operators, values, conditions dropped, `any` for `all`."""

from __future__ import annotations

from typing import Final

from pyverno.compiler.mutants.mutant import Changes, removed, renamed, replaced
from pyverno.compiler.mutants.values import constant_changes
from pyverno.engine.explain.nodes import FieldPath
from pyverno.kube.json import JSON, JSONObject

__all__ = ["condition_changes"]

_OPERATORS: Final = {
    "Equal": ("NotEqual",),
    "Equals": ("NotEquals",),
    "NotEqual": ("Equal",),
    "NotEquals": ("Equals",),
    "In": ("NotIn",),
    "NotIn": ("In",),
    "AnyIn": ("AnyNotIn",),
    "AllIn": ("AllNotIn",),
    "AnyNotIn": ("AnyIn",),
    "AllNotIn": ("AllIn",),
    "GreaterThan": ("GreaterThanOrEquals", "LessThan"),
    "GreaterThanOrEquals": ("GreaterThan", "LessThanOrEquals"),
    "LessThan": ("LessThanOrEquals", "GreaterThan"),
    "LessThanOrEquals": ("LessThan", "GreaterThanOrEquals"),
    "DurationGreaterThan": ("DurationGreaterThanOrEquals",),
    "DurationGreaterThanOrEquals": ("DurationGreaterThan",),
    "DurationLessThan": ("DurationLessThanOrEquals",),
    "DurationLessThanOrEquals": ("DurationLessThan",),
}


def condition_changes(conditions: JSON, place: FieldPath) -> Changes:
    """Yield the changes of conditions: a map of `any` and `all`, or a list."""
    if isinstance(conditions, list):
        for index, each in enumerate(conditions):
            if len(conditions) > 1:
                yield removed((*place, index), "a condition is dropped")
            yield from condition_changes(each, (*place, index))
        return
    if not isinstance(conditions, dict):
        return
    if "operator" in conditions:
        yield from _of_condition(conditions, place)
        return
    groups = [group for group in ("any", "all") if isinstance(conditions.get(group), list)]
    for group in groups:
        listed = conditions[group]
        if len(groups) == 1 and len(listed) > 1:
            yield renamed((*place, group), "all" if group == "any" else "any")
        if len(groups) > 1:
            yield removed((*place, group), f"`{group}` is dropped")
        yield from condition_changes(listed, (*place, group))


def _of_condition(condition: JSONObject, place: FieldPath) -> Changes:
    operator = condition.get("operator")
    for other in _OPERATORS.get(operator, ()) if isinstance(operator, str) else ():
        yield replaced((*place, "operator"), other, f"`{operator}` becomes `{other}`")
    if "value" in condition:
        yield from constant_changes(condition["value"], (*place, "value"))
