"""Short cuts of conditions: whether they hold for an object, without scopes, budgets or messages.

They exist for conditions whose variables read nothing but `request.object` and `element` in simple forms. A short cut
gives the answer that the conditions give, or raises; it must never give another. Only pass-checks use them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyverno.engine.conditions import Condition, ConditionBlock, Conditions, as_float
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.wildcard import has_wildcard
from pyverno.lang.jmespath.shortcut import shortcut
from pyverno.lang.pattern.operators import compile_operator, operator
from pyverno.lang.template import Template
from pyverno.lang.template.expression_text import ExpressionText
from pyverno.lang.template.syntax import parse_string

__all__ = ["conditions_shortcut", "list_shortcut"]

Get = Callable[[JSONObject], JSON]
Test = Callable[[JSONObject], bool]


def is_known(names: tuple[str, ...]) -> bool:
    """Tell whether a chain of fields reads the new object or the element of a foreach."""
    return names[:2] == ("request", "object") or names[0] == "element"


def list_shortcut(query: ExpressionText) -> Get | None:
    """Return the short cut of the list of a foreach."""
    return None if query.inner else shortcut(query.expression, is_known)


def conditions_shortcut(conditions: Conditions) -> Test | None:
    """Return a function that tells whether the conditions hold for `{"request": {"object": …}, "element": …}`."""
    if conditions.listed or not conditions.is_single_block:
        return None
    return _block(conditions.blocks[0])


def _block(block: ConditionBlock) -> Test | None:
    any_of = None if block.any is None else [_condition(condition) for condition in block.any]
    all_of = [_condition(condition) for condition in block.all]
    if None in all_of or (any_of is not None and None in any_of):
        return None
    either = None if any_of is None else [test for test in any_of if test is not None]
    every = [test for test in all_of if test is not None]
    if either is None and len(every) == 1:
        return every[0]

    def holds(data: JSONObject) -> bool:
        # both parts are looked at, so that an error in either sends the caller to the closures
        any_holds = either is None or any(test(data) for test in either)
        return all(test(data) for test in every) and any_holds

    return holds


def _condition(condition: Condition) -> Test | None:
    key, value = _side(condition.key), _side(condition.value)
    if key is None or value is None:
        return None
    name = condition.operator
    if condition.value.is_static:
        return _against_fixed(name, key, condition.value.document)
    compare = operator(name)
    if compare is None:
        return None
    if name == "AnyNotIn" and condition.key.is_static and isinstance(condition.key.document, str):
        wanted = condition.key.document

        def is_missing(data: JSONObject) -> bool:
            found = value(data)
            return False if type(found) is list and wanted in found else compare(wanted, as_float(found))

        return is_missing
    return lambda data: compare(as_float(key(data)), as_float(value(data)))


def _against_fixed(name: str, key: Get, fixed: JSON) -> Test | None:
    check = compile_operator(name, as_float(fixed))
    if check is None:
        return None
    if name == "AnyNotIn" and _is_plain_texts(fixed):
        known = frozenset(fixed)

        def has_others(data: JSONObject) -> bool:
            found = key(data)
            return False if type(found) is list and _all_known(found, known) else check(as_float(found))

        return has_others
    return lambda data: check(as_float(key(data)))


def _is_plain_texts(value: JSON) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) and not has_wildcard(item) for item in value)


def _all_known(found: Sequence[JSON], known: frozenset[str]) -> bool:
    return all(type(item) is str and item in known for item in found)


def _side(template: Template) -> Get | None:
    """Return how to get one side of a condition: a fixed value, or one whole variable with a short cut."""
    document = template.document
    if template.is_static:
        return lambda data: document
    if not isinstance(document, str) or template.errors:
        return None
    parsed = parse_string(document)
    if parsed.whole is None or len(template.variables) != 1 or template.variables[0].expression is None:
        return None
    return shortcut(template.variables[0].expression, is_known)
