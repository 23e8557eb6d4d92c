"""Turns a syntax tree into one closure, once; running it parses and looks up nothing.

A missing key travels as a `Missing` value instead of an exception, and is turned into null in exactly the places in
which the fork that Kyverno uses drops its NotFoundError. Every projected element, flattened element and function call
is charged to the budget.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pyverno.errors import EvaluationError, NullArgumentError, UnknownKeyError
from pyverno.kube.json import JSON, is_number
from pyverno.lang.jmespath.ast import Node, NodeType, SliceParts, operands_of, steps_of
from pyverno.lang.jmespath.chains import chain, item_at, sequence, walk_fields
from pyverno.lang.jmespath.cost import same
from pyverno.lang.jmespath.function import Function
from pyverno.lang.jmespath.placeholders import compile_key, filler, number_filler, text_filler
from pyverno.lang.jmespath.tokens import PLACEHOLDER
from pyverno.lang.jmespath.values import ExpRef, Missing, PlaceholderValues, Run, check_size, is_false, whole
from pyverno.lang.runtime import Runtime

__all__ = ["compile_node", "field_names"]

MAX_COPIES: Final = 64
"""How often multi-selections may repeat their input before each of them has its result measured."""

ABSORBED: Final = (UnknownKeyError, NullArgumentError)
"""Errors that flattening, a filter and a projection of values read as null: something is missing.

Kyverno: every error. `parse_json(text)[?bad]` would be empty, and a rule pass, for a text that is no JSON.
"""

_NEVER_MISSING: Final = frozenset(NodeType) - {
    NodeType.FIELD,
    NodeType.SUBEXPRESSION,
    NodeType.INDEX_EXPRESSION,
    NodeType.AND,
}


def compile_node(node: Node, functions: Mapping[str, Function]) -> Run:
    """Return the closure of a tree; it gives a `Missing` where the whole expression ends on an unknown key."""
    return _Compiler(functions, copies=_copies(node)).loud(node)


def field_names(node: Node) -> tuple[str, ...] | None:
    """Return the names of a tree that is a plain chain of fields (`a.b.c`), None for any other.

    >>> from pyverno.lang.jmespath.parser import parse
    >>> field_names(parse("a.b.c")), field_names(parse("a[0]"))
    (('a', 'b', 'c'), None)
    """
    steps = steps_of(node)
    if all(step.type is NodeType.FIELD and not PLACEHOLDER.search(step.value) for step in steps):
        return tuple(step.value for step in steps)
    return None


def _copies(node: Node) -> int:
    """Bound how often an expression can repeat its input inside its output: only multi-selections repeat."""
    copies, todo = 1, [node]
    while todo:
        current = todo.pop()
        if current.type in (NodeType.MULTI_SELECT_HASH, NodeType.MULTI_SELECT_LIST):
            copies = min(copies * len(current.children), MAX_COPIES + 1)
        todo.extend(current.children)
    return copies


class _Compiler:
    def __init__(self, functions: Mapping[str, Function], copies: int) -> None:
        self.functions = functions
        self.measured = copies > MAX_COPIES

    def loud(self, node: Node) -> Run:
        """Compile a node whose missing key shows as `Missing`."""
        return _LOUD[node.type](self, node)

    def quiet(self, node: Node) -> Run:
        """Compile a node whose missing key is null."""
        names = field_names(node)
        if names is not None:
            return chain(names, quiet=True)
        run = self.loud(node)
        if node.type in _NEVER_MISSING:
            return run

        def quiet(value: JSON, runtime: Runtime, placeholders: PlaceholderValues) -> JSON:
            result = run(value, runtime, placeholders)
            return None if result.__class__ is Missing else result

        return quiet

    # --- values -----------------------------------------------------------------------------------------------------

    def current(self, _node: Node) -> Run:
        return lambda value, _runtime, _placeholders: whole(value)

    def literal(self, node: Node) -> Run:
        constant = node.value
        fill = filler(constant)
        if fill is None:
            return lambda _value, _runtime, _placeholders: constant
        return lambda _value, runtime, placeholders: fill(runtime, placeholders)

    def field(self, node: Node) -> Run:
        if not PLACEHOLDER.search(node.value):
            return chain((node.value,))
        fill = text_filler(node.value)

        def field(value: JSON, runtime: Runtime, placeholders: PlaceholderValues) -> JSON:
            return walk_fields(value, (fill(runtime, placeholders),), is_data=True)

        return field

    def index(self, node: Node) -> Run:
        if isinstance(node.value, str):
            number = number_filler(node.value)
            return lambda value, runtime, placeholders: item_at(value, number(runtime, placeholders))
        constant: int = node.value
        return lambda value, _runtime, _placeholders: item_at(value, constant)

    def slice(self, node: Node) -> Run:
        written: SliceParts = node.value
        parts = [number_filler(part) if isinstance(part, str) else part for part in written]

        def slice_list(value: JSON, runtime: Runtime, placeholders: PlaceholderValues) -> JSON:
            if not isinstance(value, list):
                return None
            start, stop, step = (part(runtime, placeholders) if callable(part) else part for part in parts)
            if step == 0:
                raise EvaluationError("Invalid slice, step cannot be 0")
            result = value[start:stop:step]
            runtime.budget.charge_steps(len(result))
            return result

        return slice_list

    def steps(self, node: Node) -> Run:
        names: list[str] = []
        runs: list[Run] = []
        for step in steps_of(node):
            if step.type is NodeType.FIELD and not PLACEHOLDER.search(step.value):
                names.append(step.value)
                continue
            if names:
                runs.append(chain(tuple(names)))
                names = []
            runs.append(self.loud(step))
        if names:
            runs.append(chain(tuple(names)))
        return sequence(tuple(runs))

    # --- projections ------------------------------------------------------------------------------------------------

    def flatten(self, node: Node) -> Run:
        left = self.quiet(node.children[0])

        def flatten(value: JSON, runtime: Runtime, placeholders: PlaceholderValues) -> JSON:
            try:
                items = left(value, runtime, placeholders)
            except ABSORBED:
                return None
            if not isinstance(items, list):
                return None
            result: list[JSON] = []
            for item in items:
                if isinstance(item, list):
                    result.extend(item)
                else:
                    result.append(item)
            runtime.budget.charge_steps(len(items) + len(result) + 1)
            return result

        return flatten

    def projection(self, node: Node) -> Run:
        if node.children[0].type is NodeType.FLATTEN:
            return self.flat_projection(node)
        left = self.quiet(node.children[0])
        project = self.projector(node.children[1])

        def projection(value: JSON, runtime: Runtime, placeholders: PlaceholderValues) -> JSON:
            items = left(value, runtime, placeholders)
            if not isinstance(items, list):
                return None
            runtime.budget.charge_steps(len(items) + 1)
            return project(items, runtime, placeholders)

        return projection

    def flat_projection(self, node: Node) -> Run:
        """Compile `left[].right`: flattening has charged the elements already."""
        flatten = self.flatten(node.children[0])
        project = self.projector(node.children[1])

        def flat_projection(value: JSON, runtime: Runtime, placeholders: PlaceholderValues) -> JSON:
            items = flatten(value, runtime, placeholders)
            return None if items is None else project(items, runtime, placeholders)

        return flat_projection

    def projector(self, right: Node) -> Callable[[list[JSON], Runtime, PlaceholderValues], list[JSON]]:
        """Compile the right side of a projection over a list; null results are dropped."""
        if right.type is NodeType.IDENTITY:
            return lambda items, _runtime, _placeholders: [item for item in items if item is not None]
        run = self.quiet(right)

        def project(items: list[JSON], runtime: Runtime, placeholders: PlaceholderValues) -> list[JSON]:
            return [result for item in items if (result := run(item, runtime, placeholders)) is not None]

        return project

    def filter_projection(self, node: Node) -> Run:
        left, condition = self.quiet(node.children[0]), self.quiet(node.children[2])
        project = self.projector(node.children[1])

        def filter_projection(value: JSON, runtime: Runtime, placeholders: PlaceholderValues) -> JSON:
            try:
                items = left(value, runtime, placeholders)
            except ABSORBED:
                return None
            if not isinstance(items, list):
                return None
            runtime.budget.charge_steps(len(items) + 1)
            kept = []
            for item in items:
                met = condition(item, runtime, placeholders)
                if met or not is_false(met):
                    kept.append(item)
            return project(kept, runtime, placeholders)

        return filter_projection

    def value_projection(self, node: Node) -> Run:
        left = self.quiet(node.children[0])
        project = self.projector(node.children[1])

        def value_projection(value: JSON, runtime: Runtime, placeholders: PlaceholderValues) -> JSON:
            try:
                items = whole(left(value, runtime, placeholders))
            except ABSORBED:
                return None
            if not isinstance(items, dict):
                return None
            runtime.budget.charge_steps(len(items) + 1)
            if not items:
                return []
            # COMPAT: upstream projects as many nulls as there are values first
            nulls = project([None], runtime, placeholders) * len(items)
            return nulls + project(list(items.values()), runtime, placeholders)

        return value_projection

    # --- operators --------------------------------------------------------------------------------------------------

    def comparator(self, node: Node) -> Run:
        left, right = (self.quiet(child) for child in node.children)
        if node.value in _EQUALITIES:
            wanted = _EQUALITIES[node.value]

            def equality(value: JSON, runtime: Runtime, placeholders: PlaceholderValues) -> JSON:
                return (
                    same(left(value, runtime, placeholders), right(value, runtime, placeholders), runtime.budget)
                    is wanted
                )

            return equality
        compare = _ORDERS[node.value]

        def comparator(value: JSON, runtime: Runtime, placeholders: PlaceholderValues) -> JSON:
            return compare(left(value, runtime, placeholders), right(value, runtime, placeholders))

        return comparator

    def either(self, node: Node) -> Run:
        *runs, last = (self.quiet(operand) for operand in operands_of(node))
        if len(runs) == 1:
            (first,) = runs

            def either_of_two(value: JSON, runtime: Runtime, placeholders: PlaceholderValues) -> JSON:
                result = first(value, runtime, placeholders)
                return result if result or not is_false(result) else last(value, runtime, placeholders)

            return either_of_two

        def either(value: JSON, runtime: Runtime, placeholders: PlaceholderValues) -> JSON:
            for run in runs:
                result = run(value, runtime, placeholders)
                if result or not is_false(result):
                    return result
            return last(value, runtime, placeholders)

        return either

    def both(self, node: Node) -> Run:
        operands = operands_of(node)
        runs, last = [self.quiet(operand) for operand in operands[:-1]], self.loud(operands[-1])

        def both(value: JSON, runtime: Runtime, placeholders: PlaceholderValues) -> JSON:
            for run in runs:
                result = run(value, runtime, placeholders)
                if not result and is_false(result):
                    return result
            return last(value, runtime, placeholders)

        return both

    def negation(self, node: Node) -> Run:
        run = self.quiet(node.children[0])
        return lambda value, runtime, placeholders: is_false(run(value, runtime, placeholders))

    def pipe(self, node: Node) -> Run:
        runs = tuple(self.quiet(operand) for operand in operands_of(node))

        def pipe(value: JSON, runtime: Runtime, placeholders: PlaceholderValues) -> JSON:
            for run in runs:
                value = run(value, runtime, placeholders)
            return value

        return pipe

    # --- selections and functions -----------------------------------------------------------------------------------

    def multi_select_list(self, node: Node) -> Run:
        runs = tuple(self.quiet(child) for child in node.children)
        measured = self.measured

        def multi_select_list(value: JSON, runtime: Runtime, placeholders: PlaceholderValues) -> JSON:
            if value is None:
                return None
            runtime.budget.charge_steps()
            result = [run(value, runtime, placeholders) for run in runs]
            if measured:
                check_size(result, runtime.budget)
            return result

        return multi_select_list

    def multi_select_hash(self, node: Node) -> Run:
        members = tuple((compile_key(child.value), self.quiet(child.children[0])) for child in node.children)
        measured = self.measured

        def multi_select_hash(value: JSON, runtime: Runtime, placeholders: PlaceholderValues) -> JSON:
            if value is None:
                return None
            runtime.budget.charge_steps()
            result = {
                (key if isinstance(key, str) else key(runtime, placeholders)): run(value, runtime, placeholders)
                for key, run in members
            }
            if measured:
                check_size(result, runtime.budget)
            return result

        return multi_select_hash

    def expression_reference(self, _node: Node) -> Run:
        def expression_reference(_value: JSON, _runtime: Runtime, _placeholders: PlaceholderValues) -> JSON:
            raise EvaluationError("an expression reference may only be an argument of a function")

        return expression_reference

    def call(self, node: Node) -> Run:
        function = self.functions.get(node.value)
        arguments = tuple(self.argument(child) for child in node.children)
        if function is None:
            unknown = f"unknown function: {node.value}"

            def fail(value: JSON, runtime: Runtime, placeholders: PlaceholderValues) -> JSON:
                for argument in arguments:
                    argument(value, runtime, placeholders)
                raise EvaluationError(unknown)

            return fail
        invoke = function.caller(len(arguments))
        if len(arguments) == 2:
            first, second = arguments

            def call_with_two(value: JSON, runtime: Runtime, placeholders: PlaceholderValues) -> JSON:
                return invoke([first(value, runtime, placeholders), second(value, runtime, placeholders)], runtime)

            return call_with_two

        def call(value: JSON, runtime: Runtime, placeholders: PlaceholderValues) -> JSON:
            return invoke([argument(value, runtime, placeholders) for argument in arguments], runtime)

        return call

    def argument(self, node: Node) -> Run:
        if node.type is not NodeType.EXPREF:
            return self.quiet(node)
        run = self.quiet(node.children[0])
        return lambda _value, runtime, placeholders: ExpRef(run, runtime, placeholders)


_LOUD: Final[dict[NodeType, Callable[[_Compiler, Node], Run]]] = {
    NodeType.COMPARATOR: _Compiler.comparator,
    NodeType.CURRENT: _Compiler.current,
    NodeType.EXPREF: _Compiler.expression_reference,
    NodeType.FUNCTION: _Compiler.call,
    NodeType.FIELD: _Compiler.field,
    NodeType.FILTER_PROJECTION: _Compiler.filter_projection,
    NodeType.FLATTEN: _Compiler.flatten,
    NodeType.IDENTITY: lambda _compiler, _node: lambda value, _runtime, _placeholders: value,
    NodeType.INDEX: _Compiler.index,
    NodeType.INDEX_EXPRESSION: _Compiler.steps,
    NodeType.LITERAL: _Compiler.literal,
    NodeType.MULTI_SELECT_HASH: _Compiler.multi_select_hash,
    NodeType.MULTI_SELECT_LIST: _Compiler.multi_select_list,
    NodeType.OR: _Compiler.either,
    NodeType.AND: _Compiler.both,
    NodeType.NOT: _Compiler.negation,
    NodeType.PIPE: _Compiler.pipe,
    NodeType.PROJECTION: _Compiler.projection,
    NodeType.SUBEXPRESSION: _Compiler.steps,
    NodeType.SLICE: _Compiler.slice,
    NodeType.VALUE_PROJECTION: _Compiler.value_projection,
}


# --- comparisons ---------------------------------------------------------------------------------------------------


_EQUALITIES: Final = {"tEQ": True, "tNE": False}
_ORDERS: Final[dict[str, Callable[[JSON, JSON], JSON]]] = {
    "tLT": lambda left, right: left < right if is_number(left) and is_number(right) else None,
    "tLTE": lambda left, right: left <= right if is_number(left) and is_number(right) else None,
    "tGT": lambda left, right: left > right if is_number(left) and is_number(right) else None,
    "tGTE": lambda left, right: left >= right if is_number(left) and is_number(right) else None,
}
