"""A comparison has a bound that nothing is greater or less than.

`>`, `>=`, `<` and `<=` in patterns compare numbers, quantities (`1Gi`) and durations (`1h30m`), and the operators
`GreaterThan`, `LessThan` and their kin also versions (`1.2.3`). With any other bound, such as a misspelt unit, the
comparison is false for every value: a pattern then refuses all objects, a condition to deny refuses none.

Example::

    pattern:
      spec:
        containers:
        - resources:
            limits:
              memory: "<=1GB"

Write instead::

    pattern:
      spec:
        containers:
        - resources:
            limits:
              memory: "<=1Gi"
"""

from __future__ import annotations

from collections.abc import Iterator

from pyverno.compiler.lints.lint import Problem, Subject, Workspace
from pyverno.compiler.lints.walking import pattern_texts
from pyverno.compiler.validation.conditions import condition_blocks, conditions_of
from pyverno.kube.json import JSON, is_number
from pyverno.kube.yaml.fieldpath import Path
from pyverno.lang.pattern.leaf import split_operator
from pyverno.lazyregex import regex
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.rule import Rule

__all__ = ["check"]

_SIGNS = frozenset({">", ">=", "<", "<="})
_TERM = regex(r"[^|&]+")
_CHANGING = ("{{", "$(")
"""Texts of variables and references, whose values are not known."""


def check(subject: Subject, _workspace: Workspace) -> Iterator[Problem]:
    """Yield the bounds of patterns and conditions that compare with nothing."""
    if not isinstance(subject.written, ClusterPolicy):
        return
    for rule in subject.written.spec.rules:
        for text, path in pattern_texts(rule):
            yield from _in_pattern(text, path)
        yield from _in_conditions(rule)


def _in_pattern(text: str, path: Path) -> Iterator[Problem]:
    if any(sign in text for sign in _CHANGING):
        return
    for term in _TERM.finditer(text):
        written = term[0].strip(" ")
        operator, rest = split_operator(written)
        bound = rest.strip()
        if operator.value in _SIGNS and not _is_amount(bound):
            message = f"`{written}` is true for no value: `{bound}` is no number, quantity or duration"
            yield Problem(path, message, term.start() + len(term[0]) - len(term[0].lstrip(" ")))


def _in_conditions(rule: Rule) -> Iterator[Problem]:
    for block, path, _ in condition_blocks(rule):
        for condition, place in conditions_of(block, path):
            if not isinstance(condition, dict) or "value" not in condition:
                continue
            operator, value = str(condition.get("operator")), condition["value"]
            if "Than" in operator and (kinds := _missing_kinds(operator, value)):
                yield Problem((*place, "value"), f"`{operator}` is false for every key: the value is no {kinds}")


# most policies compare nothing by order: what follows imports its modules when a policy does


def _is_amount(bound: str) -> bool:
    from pyverno.kube.quantity import try_quantity
    from pyverno.kube.time.duration import try_duration

    return try_duration(bound) is not None or try_quantity(bound) is not None


def _missing_kinds(operator: str, value: JSON) -> str:
    """Return the kinds of values that an operator compares if the value is of none of them, else an empty text."""
    from pyverno.lang.pattern.operators_order import DURATION_ORDER, ORDER

    if operator in ORDER:
        return "" if _is_comparable(value, has_versions=True) else "number, quantity, duration or version"
    if operator in DURATION_ORDER:
        return "" if _is_comparable(value, has_versions=False) else "number or duration"
    return ""


def _is_comparable(value: JSON, *, has_versions: bool) -> bool:
    from pyverno.kube.gofloat import parse_float
    from pyverno.kube.quantity import try_quantity
    from pyverno.kube.semver import try_version
    from pyverno.kube.time.duration import try_duration

    if not isinstance(value, str):
        return is_number(value)
    if any(sign in value for sign in _CHANGING) or try_duration(value) is not None:
        return True
    if not has_versions:
        return False
    return try_quantity(value) is not None or parse_float(value) is not None or try_version(value) is not None
