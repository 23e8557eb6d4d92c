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
from pyverno.kube.gofloat import parse_float
from pyverno.kube.json import JSON, is_number
from pyverno.kube.quantity import try_quantity
from pyverno.kube.semver import try_version
from pyverno.kube.time.duration import try_duration
from pyverno.lang.pattern.leaf import split_operator
from pyverno.lang.pattern.operators_order import DURATION_ORDER, ORDER
from pyverno.lazyregex import regex
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.rule import Rule
from pyverno.policy.schema import Path

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
        if operator.value in _SIGNS and try_duration(bound) is None and try_quantity(bound) is None:
            message = f"`{written}` is true for no value: `{bound}` is no number, quantity or duration"
            yield Problem(path, message, term.start() + len(term[0]) - len(term[0].lstrip(" ")))


def _in_conditions(rule: Rule) -> Iterator[Problem]:
    for block, path, _ in condition_blocks(rule):
        for condition, place in conditions_of(block, path):
            if not isinstance(condition, dict) or "value" not in condition:
                continue
            operator, value = str(condition.get("operator")), condition["value"]
            if operator in _OPERATORS and not _is_comparable(value, has_versions=operator in ORDER):
                kinds = "number, quantity, duration or version" if operator in ORDER else "number or duration"
                yield Problem((*place, "value"), f"`{operator}` is false for every key: the value is no {kinds}")


_OPERATORS = frozenset((*ORDER, *DURATION_ORDER))


def _is_comparable(value: JSON, *, has_versions: bool) -> bool:
    if not isinstance(value, str):
        return is_number(value)
    if any(sign in value for sign in _CHANGING) or try_duration(value) is not None:
        return True
    if not has_versions:
        return False
    return try_quantity(value) is not None or parse_float(value) is not None or try_version(value) is not None
