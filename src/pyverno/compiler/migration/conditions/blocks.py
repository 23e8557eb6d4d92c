"""Conditions joined: `any` and `all`, lists of both, and the older bare list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from pyverno.compiler.migration.conditions.equality import equals, not_equals
from pyverno.compiler.migration.conditions.membership import member
from pyverno.compiler.migration.conditions.ordering import duration_order, order
from pyverno.compiler.migration.conditions.sides import Operands
from pyverno.compiler.migration.expressions import Names, translate
from pyverno.compiler.migration.expressions.value import are_alike, constant, truth
from pyverno.compiler.migration.outcome import UnconvertibleError, join_path
from pyverno.compiler.migration.text import FALSE, TRUE, Cel, all_of, any_of, compare, ternary
from pyverno.kube.json import JSON
from pyverno.value import dataclass, replace

__all__ = ["Test", "condition", "conditions", "conditions_test"]

_ORDERS: Final[Mapping[str, str]] = {
    "GreaterThan": ">",
    "GreaterThanOrEquals": ">=",
    "LessThan": "<",
    "LessThanOrEquals": "<=",
}
_MEMBERSHIP: Final[Mapping[str, str]] = {
    name.lower(): name for name in ("AnyIn", "AllIn", "AnyNotIn", "AllNotIn", "In", "NotIn")
}


@dataclass(frozen=True, slots=True, eq=False)
class Test:
    """A test, and whether it can fail: CEL forgets an error beside a value that decides, Kyverno does not."""

    cel: Cel
    fails: bool = False


def conditions(written: JSON, names: Names, path: str, *, strict: bool = True) -> Cel:
    """Return whether conditions hold; nothing written holds always.

    Without `strict` an error counts as true, as it does in the conditions of a denial: both refuse the object.

    >>> from pyverno.compiler.migration.expressions import names_of
    >>> from pyverno.compiler.migration.text import Reference
    >>> written = {"any": [{"key": "{{ request.operation }}", "operator": "In", "value": ["CREATE", "UPDATE"]}]}
    >>> conditions(written, names_of(Reference("object")), "deny.conditions").text
    "request.operation in ['CREATE', 'UPDATE']"
    """
    return conditions_test(written, names, path, strict=strict).cel


def conditions_test(written: JSON, names: Names, path: str, *, strict: bool = True) -> Test:
    """Return the same as `conditions` with the word whether the test can fail."""
    if written is None:
        return Test(TRUE)
    if isinstance(written, dict):
        return _block(written, names, path, strict)
    if not isinstance(written, list):
        raise UnconvertibleError("conditions", path, "conditions that are neither a map nor a list", "mend the rule")
    if any(isinstance(each, dict) and ("any" in each or "all" in each) for each in written):
        blocks = [_block(each, names, f"{path}[{index}]", strict) for index, each in enumerate(written)]
        return _all(blocks)
    return _all(_tests(written, names, path))


def condition(written: JSON, names: Names, path: str) -> Cel:
    """Return whether one condition holds."""
    return _test(written, names, path).cel


def _block(block: JSON, names: Names, path: str, strict: bool) -> Test:
    if not isinstance(block, dict):
        raise UnconvertibleError("conditions", path, "conditions that are no map", "mend the rule")
    every = _all(_tests(block.get("all") or [], names, join_path(path, "all")))
    if block.get("any") is None:
        return every
    some = _any(_tests(block["any"], names, join_path(path, "any")), strict)
    fails = some.fails or every.fails
    if not fails:
        return Test(all_of([some.cel, every.cel]))
    if every.cel.text == "true":
        return some
    if not every.fails:
        return Test(ternary(some.cel, every.cel, FALSE), fails=True)
    if not some.fails:
        return Test(ternary(every.cel, some.cel, FALSE), fails=True)
    # Kyverno looks at both, whatever the first one gives
    return Test(ternary(some.cel, every.cel, ternary(every.cel, FALSE, FALSE)), fails=True)


def _tests(written: JSON, names: Names, path: str) -> list[Test]:
    if not isinstance(written, list):
        raise UnconvertibleError("conditions", path, "conditions that are no list", "mend the rule")
    return [_test(each, names, f"{path}[{index}]") for index, each in enumerate(written)]


def _all(tests: Iterable[Test]) -> Test:
    """Join tests in order; one that fails ends the list, also where a later one is false."""
    found = Test(TRUE)
    for test in reversed([*tests]):
        if test.fails and found.cel.text != "true":
            found = Test(ternary(test.cel, found.cel, FALSE), fails=True)
        else:
            found = Test(all_of([test.cel, found.cel]), fails=test.fails or found.fails)
    return found


def _any(tests: Iterable[Test], strict: bool) -> Test:
    found = Test(FALSE)
    for test in reversed([*tests]):
        if strict and test.fails and found.cel.text != "false":
            found = Test(ternary(test.cel, TRUE, found.cel), fails=True)
        else:
            found = Test(any_of([test.cel, found.cel]), fails=test.fails or found.fails)
    return found


def _test(written: JSON, names: Names, path: str) -> Test:
    if not isinstance(written, dict):
        raise UnconvertibleError("conditions", path, "a condition that is no map", "mend the rule")
    key = translate(written.get("key"), names, join_path(path, "key"))
    value = translate(written.get("value"), names, join_path(path, "value"))
    operands = Operands.of(written, key, value, names, path)
    cel = _compare_either(str(written.get("operator") or ""), operands)
    if value.fails and not key.is_always:
        # Kyverno looks at the value also where there is no key
        cel = ternary(key.present, cel, compare(value.cel, "!=", value.cel))
    return Test(cel, fails=key.fails or value.fails)


def _compare_either(operator: str, operands: Operands) -> Cel:
    """Compare `value || constant`: where the two have no common type, one after the other."""
    default = operands.key.default
    if default is None or are_alike(default[0], constant(default[1])):
        return _compare(operator, operands)
    first, known = default[0], truth(default[0])
    met = _compare(operator, replace(operands, key=replace(first, present=TRUE)))
    otherwise = _compare(operator, replace(operands, key=constant(default[1])))
    if otherwise.text == FALSE.text:
        return all_of([known, met])
    return any_of([known.not_(), met]) if otherwise.text == TRUE.text else ternary(known, met, otherwise)


def _compare(operator: str, operands: Operands) -> Cel:
    if operands.key.is_null:
        return FALSE
    folded = operator.lower()
    if folded in ("equal", "equals"):
        return equals(operands)
    if folded in ("notequal", "notequals"):
        return not_equals(operands)
    if folded in _MEMBERSHIP:
        return member(operands, _MEMBERSHIP[folded])
    if operator in _ORDERS:
        return order(operands, _ORDERS[operator])
    if operator.startswith("Duration") and operator.removeprefix("Duration") in _ORDERS:
        return duration_order(operands, _ORDERS[operator.removeprefix("Duration")])
    path = join_path(operands.path, "operator")
    raise UnconvertibleError("operator", path, f"the operator `{operator}` is not known", "mend the rule")
