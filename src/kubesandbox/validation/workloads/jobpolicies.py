"""The policies of Jobs: what failed pods mean, and when enough has succeeded."""

from __future__ import annotations

from typing import Final

from kubesandbox.objects.fielderrors import duplicate, go_value, invalid, required, too_many, unsupported
from kubesandbox.validation.check import Errors, not_negative
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.labelsyntax import label_key_problems
from pyverno.kube.status import FieldError

__all__ = ["pod_failure_policy", "success_policy"]

_ACTIONS: Final = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS: Final = ("In", "NotIn")
_STATES: Final = ("False", "True", "Unknown")
_MOST: Final = 20
_MOST_CODES: Final = 255


def pod_failure_policy(value: JSONObject, spec: JSONObject, path: str, errors: Errors) -> None:
    """Check a podFailurePolicy of the specification of a Job."""
    rules = value.get("rules") or []
    if len(rules) > _MOST:
        errors.append(too_many(f"{path}.rules", len(rules), _MOST))
        return
    template = ((spec.get("template") or {}).get("spec")) or {}
    names = {item.get("name") for key in ("containers", "initContainers") for item in template.get(key) or ()}
    for index, rule in enumerate(rules):
        place = f"{path}.rules[{index}]"
        _action(rule.get("action"), spec, f"{place}.action", errors)
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or []
        if codes is not None:
            _exit_codes(codes, names, f"{place}.onExitCodes", errors)
        if conditions:
            _conditions(conditions, f"{place}.onPodConditions", errors)
        if codes is not None and conditions:
            what = "specifying both OnExitCodes and OnPodConditions is not supported"
            errors.append(FieldError(place, "Invalid value", what))
        elif codes is None and not conditions:
            what = "specifying one of OnExitCodes and OnPodConditions is required"
            errors.append(FieldError(place, "Invalid value", what))


def _listed(values: tuple[str, ...]) -> str:
    return "valid values: [" + " ".join(map(go_value, values)) + "]"


def _action(action: JSON, spec: JSONObject, path: str, errors: Errors) -> None:
    if not action:
        errors.append(required(path, _listed(_ACTIONS)))
    elif action not in _ACTIONS:
        errors.append(unsupported(path, action, _ACTIONS))
    elif action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        errors.append(invalid(path, action, "requires the backoffLimitPerIndex to be set"))


def _exit_codes(value: JSONObject, names: set[str], path: str, errors: Errors) -> None:
    operator, values, name = value.get("operator"), value.get("values") or [], value.get("containerName")
    if not operator:
        errors.append(required(f"{path}.operator", _listed(_OPERATORS)))
    elif operator not in _OPERATORS:
        errors.append(unsupported(f"{path}.operator", operator, _OPERATORS))
    if name is not None and name not in names:
        what = "must be one of the container or initContainer names in the pod template"
        errors.append(invalid(f"{path}.containerName", name, what))
    if not values:
        errors.append(invalid(f"{path}.values", [], "at least one value is required"))
    elif len(values) > _MOST_CODES:
        errors.append(too_many(f"{path}.values", len(values), _MOST_CODES))
    seen: set[int] = set()
    for index, code in enumerate(values):
        if code == 0 and operator == "In":
            errors.append(invalid(f"{path}.values[{index}]", code, "must not be 0 for the In operator"))
        if code in seen:
            errors.append(duplicate(f"{path}.values[{index}]", code))
        seen.add(code)
    if values != sorted(values):
        errors.append(invalid(f"{path}.values", values, "must be ordered"))


def _conditions(value: list[JSONObject], path: str, errors: Errors) -> None:
    if len(value) > _MOST:
        errors.append(too_many(path, len(value), _MOST))
    for index, pattern in enumerate(value):
        place, kind, status = f"{path}[{index}]", str(pattern.get("type") or ""), pattern.get("status")
        errors.extend(invalid(f"{place}.type", kind, problem) for problem in label_key_problems(kind))
        if not status:
            errors.append(required(f"{place}.status", _listed(_STATES)))
        elif status not in _STATES:
            errors.append(unsupported(f"{place}.status", status, _STATES))


def success_policy(value: JSONObject, spec: JSONObject, path: str, errors: Errors) -> None:
    """Check a successPolicy of the specification of an Indexed Job."""
    rules = value.get("rules") or []
    if not rules:
        what = "at least one rules must be specified when the successPolicy is specified"
        errors.append(required(f"{path}.rules", what))
    if len(rules) > _MOST:
        errors.append(too_many(f"{path}.rules", len(rules), _MOST))
    completions = spec.get("completions") or 0
    for index, rule in enumerate(rules):
        _success_rule(rule, completions, f"{path}.rules[{index}]", errors)


def _success_rule(rule: JSONObject, completions: int, path: str, errors: Errors) -> None:
    indexes, count = rule.get("succeededIndexes"), rule.get("succeededCount")
    if indexes is None and count is None:
        errors.append(required(path, "at least one of succeededCount or succeededIndexes must be specified"))
    total = completions
    if indexes is not None:
        total, problem = _counted(str(indexes), completions)
        if problem:
            errors.append(invalid(f"{path}.succeededIndexes", indexes, f"error parsing succeededIndexes: {problem}"))
            total = completions
    if count is None:
        return
    not_negative(count, f"{path}.succeededCount", errors)
    if count > completions:
        what = f"must be less than or equal to {completions} (the number of specified completions)"
        errors.append(invalid(f"{path}.succeededCount", count, what))
    if indexes is not None and count > total:
        what = f"must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
        errors.append(invalid(f"{path}.succeededCount", count, what))


_AT_MOST_TWO: Final = "an index interval can have at most two parts separated by '-'"


def _counted(text: str, completions: int) -> tuple[int, str]:
    """Return how many completions a list of numbers and ranges names, and what is wrong with it.

    >>> _counted("0-1,4", 5), _counted("3,2", 5)
    ((3, ''), (1, 'non-increasing order, previous: 3, current: 2'))
    """
    total, last = 0, -1
    for part in text.split(",") if text else ():
        ends = part.split("-")
        if len(ends) > 2:
            return total, f'the fragment "{part}" violates the requirement that {_AT_MOST_TWO}'
        for end in ends:
            if not end.isdigit():
                return total, f'cannot convert string to integer for index: "{end}"'
            if int(end) >= completions:
                return total, f'too large index: "{end}"'
        first, until = int(ends[0]), int(ends[-1])
        if first <= last:
            return total, f"non-increasing order, previous: {last}, current: {first}"
        if len(ends) == 2 and until <= first:
            return total, f"non-increasing order, previous: {first}, current: {until}"
        total, last = total + until - first + 1, until
    return total, ""
