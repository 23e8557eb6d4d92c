"""Checks of literals at compile time, as Kubernetes does since 1.29.

`duration('x')`, `timestamp('x')`, `s.matches('[')` and `s.find('[')` do not compile, nor do conversions of literals
that cannot be converted (`int('x')`, `double('1e400')`), nor calls of `format` whose values do not fit the text, nor
lists and maps whose elements differ in type even where dyn would allow them, except inside `format` calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from pyverno.errors import EvaluationError
from pyverno.lang.cel.checking.checked import Checked
from pyverno.lang.cel.checking.formatcalls import FORMAT, format_issues
from pyverno.lang.cel.checking.unification import unwrap_optional
from pyverno.lang.cel.regex import check_pattern
from pyverno.lang.cel.syntax import ast
from pyverno.lang.cel.syntax.source import Issue
from pyverno.lang.cel.times import parse_duration, parse_timestamp
from pyverno.lang.cel.types import Type

__all__ = ["LITERAL_FUNCTIONS", "literal_issues"]

_CHECKS: Final[dict[str, tuple[Callable[[str], object], int]]] = {
    "duration": (parse_duration, 0),
    "timestamp": (parse_timestamp, 0),
    "matches": (check_pattern, 0),
    "find": (check_pattern, 0),
    "findAll": (check_pattern, 0),
}
_CONVERSIONS: Final = frozenset({"bool", "bytes", "double", "int", "string", "uint"})
"""Functions that cel-go computes for constants when it plans the program."""

LITERAL_FUNCTIONS: Final = frozenset(_CHECKS) | _CONVERSIONS
"""The functions whose literal arguments are checked."""

_EXEMPT: Final = frozenset({FORMAT})


def literal_issues(checked: Checked, *, homogeneous: bool, texts: bool, formats: bool) -> tuple[Issue, ...]:
    """Return what is wrong with the literals of a checked expression: mixed types, texts that do not parse."""
    found: tuple[Issue, ...] = ()
    if formats:
        calls = [node for node in checked.calls if node.function == FORMAT]
        found = tuple(issue for node in calls for issue in format_issues(checked, node))
    if not homogeneous and not texts:
        return found
    if any(call.function in _EXEMPT for call in checked.calls):
        calls, literals = _of_interest(checked.root)
    else:
        calls = list(checked.calls)
        literals = list(checked.collections)
    if texts:
        found += tuple(issue for node in calls for issue in (*_texts(node), *_conversions(checked, node)))
    return (*found, *(issue for node in literals for issue in _mixtures(checked, node))) if homogeneous else found


def _of_interest(root: ast.Node) -> tuple[list[ast.Call], list[ast.ListLiteral | ast.MapLiteral]]:
    """Return the calls whose arguments are checked, and the lists and maps outside of exempt calls."""
    calls: list[ast.Call] = []
    literals: list[ast.ListLiteral | ast.MapLiteral] = []
    waiting: list[tuple[ast.Node, bool]] = [(root, False)]
    while waiting:
        node, is_exempt = waiting.pop()
        if isinstance(node, ast.Call):
            if node.function in _CHECKS or node.function in _CONVERSIONS:
                calls.append(node)
            is_exempt = is_exempt or node.function in _EXEMPT
        elif isinstance(node, (ast.ListLiteral, ast.MapLiteral)) and not is_exempt:
            literals.append(node)
        waiting.extend([(child, is_exempt) for child in ast.children(node)])
    return calls, literals


def _texts(node: ast.Call) -> Iterator[Issue]:
    if node.function not in _CHECKS:
        return
    check, position = _CHECKS[node.function]
    if node.function == "matches" and node.target is None:
        position = 1
    argument = node.args[position] if position < len(node.args) else None
    if not isinstance(argument, ast.Literal) or not isinstance(argument.value, str):
        return
    try:
        check(argument.value)
    except EvaluationError:
        yield Issue(argument.offset, f"invalid {node.function} argument")


def _conversions(checked: Checked, node: ast.Call) -> Iterator[Issue]:
    """Return the error of converting a literal, which shows in no run: cel-go computes it when it plans the program."""
    resolution = checked.resolutions.get(node.id)
    if node.function not in _CONVERSIONS or resolution is None or node.target is not None or len(node.args) != 1:
        return
    argument = node.args[0]
    if isinstance(argument, ast.Literal) and resolution.function == node.function:
        if argument.value is None:
            # null fits the types of times, which some conversions take
            yield Issue(argument.offset, f"no such overload: {node.function}(null_type)")
            return
        try:
            resolution.overloads[0].apply(argument.value)
        except EvaluationError as error:
            yield Issue(argument.offset, error.message)


def _mixtures(checked: Checked, node: ast.ListLiteral | ast.MapLiteral) -> Iterator[Issue]:
    if isinstance(node, ast.ListLiteral):
        yield from _differing(
            checked, [(item, position in node.optionals) for position, item in enumerate(node.elements)]
        )
    else:
        yield from _differing(checked, [(entry.key, False) for entry in node.entries])
        yield from _differing(checked, [(entry.value, entry.optional) for entry in node.entries])


def _differing(checked: Checked, items: list[tuple[ast.Node, bool]]) -> Iterator[Issue]:
    first: Type | None = None
    for node, optional in items:
        type_ = checked.types[node.id]
        if optional:
            type_ = unwrap_optional(type_)[0]
        if first is None:
            first = type_
        elif type_ != first:
            yield Issue(node.offset, f"expected type '{first}' but found '{type_}'")
            return
