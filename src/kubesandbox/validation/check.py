"""Checks: functions of one value that is there, its path, and a list that collects errors; and how they are combined.

    PORT = struct({"containerPort": needed(port_number), "protocol": one_of("TCP", "UDP")})
    PORTS = each(PORT)

Fields are judged in the order of the table, which is the order of Kubernetes' own validation, so that messages with
several errors read the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from kubesandbox.objects.fielderrors import child, forbidden, go_value, invalid, required, unsupported
from kubesandbox.validation.names import Form
from pyverno.kube.json import JSON, JSONObject, equal
from pyverno.kube.labelsyntax import label_key_problems, label_value_problems
from pyverno.kube.status import FieldError

__all__ = [
    "Check",
    "Errors",
    "Needed",
    "all_of",
    "at_least",
    "between",
    "each",
    "form",
    "immutable",
    "label_selector",
    "labels",
    "needed",
    "not_negative",
    "one_of",
    "port_number",
    "port_or_name",
    "struct",
]

Errors: TypeAlias = list[FieldError]
Check: TypeAlias = Callable[[JSON, str, Errors], None]

IMMUTABLE = "field is immutable"


@dataclass(frozen=True, slots=True)
class Needed:
    """A field that must be there and not be empty; then it is checked."""

    check: Check | None = None
    detail: str = ""


def needed(check: Check | None = None, detail: str = "") -> Needed:
    """Mark a field as required."""
    return Needed(check, detail)


def struct(fields: Mapping[str, Check | Needed], *rules: Check) -> Check:
    """Return the check of an object: its fields in order, then rules about the whole.

    >>> errors = []
    >>> struct({"name": needed(), "age": not_negative})({"age": -1}, "spec", errors)
    >>> [str(error) for error in errors][0]
    'spec.name: Required value'
    """
    rows = tuple(
        (key, entry.check, entry) if isinstance(entry, Needed) else (key, entry, None) for key, entry in fields.items()
    )

    def check(value: JSON, path: str, errors: Errors) -> None:
        if type(value) is not dict:
            return
        for key, inner, need in rows:
            item = value.get(key)
            if item is None or (need is not None and item in ("", 0, []) and item is not False):
                if need is not None:
                    errors.append(required(child(path, key), need.detail))
            elif inner is not None:
                inner(item, f"{path}.{key}" if path else key, errors)
        for rule in rules:
            rule(value, path, errors)

    return check


def each(element: Check) -> Check:
    """Return the check of a list whose elements are checked."""

    def check(value: JSON, path: str, errors: Errors) -> None:
        if type(value) is list:
            for index, item in enumerate(value):
                element(item, f"{path}[{index}]", errors)

    return check


def all_of(*checks: Check) -> Check:
    """Return one check that makes several."""

    def check(value: JSON, path: str, errors: Errors) -> None:
        for inner in checks:
            inner(value, path, errors)

    return check


def form(problems: Form) -> Check:
    """Return the check of a text by a form of names.

    >>> from kubesandbox.validation.names import dns_label_problems
    >>> errors = []
    >>> form(dns_label_problems)("web", "name", errors)
    >>> errors
    []
    """

    def check(value: JSON, path: str, errors: Errors) -> None:
        if type(value) is str and value:
            errors.extend(invalid(path, value, problem) for problem in problems(value))

    return check


def one_of(*supported: str) -> Check:
    """Return the check of a value out of a fixed set, whose members are listed in messages in this order."""

    def check(value: JSON, path: str, errors: Errors) -> None:
        if value not in supported:
            errors.append(unsupported(path, value, supported))

    return check


def at_least(low: int, detail: str = "") -> Check:
    """Return the check of a number that must not be smaller than a limit."""
    text = detail or f"must be greater than or equal to {low}"

    def check(value: JSON, path: str, errors: Errors) -> None:
        if type(value) is int and value < low:
            errors.append(invalid(path, value, text))

    return check


not_negative: Check = at_least(0)


def between(low: int, high: int) -> Check:
    """Return the check of a number within limits.

    >>> errors = []
    >>> between(1, 65535)(0, "spec.port", errors)
    >>> str(errors[0])
    'spec.port: Invalid value: 0: must be between 1 and 65535, inclusive'
    """

    def check(value: JSON, path: str, errors: Errors) -> None:
        if type(value) is int and not low <= value <= high:
            errors.append(invalid(path, value, f"must be between {low} and {high}, inclusive"))

    return check


port_number: Check = between(1, 65535)


def port_or_name(value: JSON, path: str, errors: Errors) -> None:
    """Check a port that is a number or a name."""
    from kubesandbox.validation.names import port_name_problems

    if type(value) is str:
        errors.extend(invalid(path, value, problem) for problem in port_name_problems(value))
    else:
        port_number(value, path, errors)


def labels(value: JSON, path: str, errors: Errors) -> None:
    """Check a map of labels."""
    for key, item in (value if type(value) is dict else {}).items():
        errors.extend(invalid(path, key, problem) for problem in label_key_problems(key))
        errors.extend(invalid(path, item, problem) for problem in label_value_problems(str(item)))


def label_selector(value: JSON, path: str, errors: Errors) -> None:
    """Check a label selector.

    >>> errors = []
    >>> label_selector({"matchExpressions": [{"key": "a", "operator": "In"}]}, "spec.selector", errors)
    >>> str(errors[0])
    "spec.selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"
    """
    if type(value) is not dict:
        return
    labels(value.get("matchLabels") or {}, f"{path}.matchLabels", errors)
    for index, item in enumerate(value.get("matchExpressions") or ()):
        _requirement(item, f"{path}.matchExpressions[{index}]", errors)


def _requirement(item: JSONObject, path: str, errors: Errors) -> None:
    operator, values = item.get("operator"), item.get("values") or []
    if operator in ("In", "NotIn"):
        if not values:
            detail = "must be specified when `operator` is 'In' or 'NotIn'"
            errors.append(required(f"{path}.values", detail))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            errors.append(forbidden(f"{path}.values", detail))
    else:
        errors.append(invalid(f"{path}.operator", operator or "", "not a valid selector operator"))
    key = str(item.get("key", ""))
    errors.extend(invalid(f"{path}.key", key, problem) for problem in label_key_problems(key))
    for index, text in enumerate(values):
        problems = label_value_problems(str(text))
        errors.extend(invalid(f"{path}.values[{index}]", text, problem) for problem in problems)


def immutable(new: JSON, old: JSON, path: str, errors: Errors, detail: str = IMMUTABLE) -> None:
    """Check that a value did not change.

    >>> errors = []
    >>> immutable("a", "b", "type", errors)
    >>> str(errors[0])
    'type: Invalid value: "a": field is immutable'
    """
    if not equal(new, old):
        errors.append(FieldError(path, "Invalid value", detail, go_value(new)))
