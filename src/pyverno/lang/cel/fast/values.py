"""Generated code for values: paths, optional chains, lists and calls.

Expressions of the generated function are texts of our own (`v3[c1]`), made of templates and integers. Each is exactly
the value of a node, or the function gives up. An optional value is written as the value itself or `MISSING`; the
checker's types show which nodes are optional. This module must never write text of an expression.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyverno.lang.cel.declarations import Overload
from pyverno.lang.cel.fast.cost import BeyondError
from pyverno.lang.cel.fast.trees import (
    holds_optionals,
    is_test,
    literal,
    operands_of,
)
from pyverno.lang.cel.fast.variables import VariableWriter
from pyverno.lang.cel.runtime.calls import accepts
from pyverno.lang.cel.runtime.evaluation import Evaluation
from pyverno.lang.cel.syntax import ast
from pyverno.lang.cel.values import MISSING, Optional, Value
from pyverno.lang.runtime import Budget, Runtime

__all__ = ["LONGEST_LIST", "LONGEST_TEXT", "ValueWriter"]

LONGEST_TEXT: Final = 1_024
LONGEST_LIST: Final = 4_096
DEAREST_CALL: Final = 2_048
LONGEST_CALL: Final = 256
"""Steps of the longest call in generated code, which charges none."""

_OR_VALUE: Final = frozenset({"orValue", "__orValueCompat__"})


class ValueWriter(VariableWriter):
    """Writes values."""

    def value(self, node: ast.Node, indent: int) -> str:
        """Return an expression for the exact value of a node that is not optional."""
        if holds_optionals(self.checked.types[node.id]):
            raise BeyondError
        reference = self.checked.references.get(node.id)
        if reference is not None:
            self.charge(1)
            if reference.constant is not None:
                raise BeyondError
            if reference.local:
                return self.local(reference.name, optional=False)
            return self.path_from((reference.name,), indent)
        writer = _VALUES.get(type(node))
        if writer is None:
            raise BeyondError
        return writer(self, node, indent)

    # selections

    def _select(self, node: ast.Select, indent: int) -> str:
        self.charge(2)
        name = self.definition(node)
        if name is not None:
            return self.variable(name, indent)
        path = self._path(node)
        if path is not None:
            self.charge(2 * len(path))
            return self.path_from(path, indent)
        return f"{self.value(node.operand, indent)}[{self.constant(node.field)}]"

    def _path(self, node: ast.Node) -> tuple[str, ...] | None:
        selected: list[str] = []
        while isinstance(node, ast.Select) and not node.optional and node.id not in self.checked.references:
            if self.definition(node) is not None:
                return None
            selected.append(node.field)
            node = node.operand
        reference = self.checked.references.get(node.id)
        if reference is None or reference.local or reference.constant is not None:
            return None
        return (reference.name, *reversed(selected))

    def _index(self, node: ast.Index, indent: int) -> str:
        self.charge(3)
        operand = self.named(indent, self.value(node.operand, indent))
        if isinstance(node.index, ast.Literal) and isinstance(node.index.value, str):
            return f"{operand}[{self.constant(node.index.value)}]"
        if isinstance(node.index, ast.Literal) and type(node.index.value) is int and node.index.value >= 0:
            self.give_up_unless(indent, f"type({operand}) is list")
            return f"{operand}[{self.constant(node.index.value)}]"
        key = self.text(node.index, indent)
        self.give_up_unless(indent, f"type({operand}) is dict")
        return f"{operand}[{key}]"

    # optional values

    def optional(self, node: ast.Node, indent: int) -> str:
        """Return the name of an optional value: the value inside, or MISSING."""
        if not self.is_optional(node):
            raise BeyondError
        reference = self.checked.references.get(node.id)
        if reference is not None and reference.local:
            self.charge(1)
            return self.local(reference.name, optional=True)
        name = self.definition(node)
        if name is not None and self.is_optional(node):
            self.charge(2)
            return self.variable(name, indent)
        if isinstance(node, (ast.Select, ast.Index)):
            return self._chain(node, self.constant(MISSING), indent)
        if isinstance(node, ast.Call):
            return self._optional_call(node, indent)
        raise BeyondError

    def _optional_call(self, node: ast.Call, indent: int) -> str:
        resolution = self.checked.resolutions.get(node.id)
        name = resolution.function if resolution is not None else ""
        self.charge(2)
        if name == "or" and node.target is not None:
            one = self.optional(node.target, indent)
            other = self.optional(node.args[0], indent)
            result = self.kept(indent, one)
            self.line(indent, f"if {result} is {self.constant(MISSING)}:")
            self.line(indent + 1, f"{result} = {other}")
            return result
        if name == "optional.none":
            return self.constant(MISSING)
        if name == "optional.of":
            return self.named(indent, self.value(node.args[0], indent))
        raise BeyondError

    def _chain(self, node: ast.Node, default: str, indent: int, *, found: str = "") -> str:
        """Write `a.?b.?c`: the path (or `found`) when all of it is there, otherwise the default."""
        selected: list[str] = []
        while isinstance(node, (ast.Select, ast.Index)) and self.definition(node) is None and self.is_optional(node):
            if isinstance(node, ast.Select):
                selected.append(node.field)
            elif isinstance(node.index, ast.Literal) and isinstance(node.index.value, str):
                selected.append(node.index.value)
            else:
                raise BeyondError
            is_first, node = node.optional, node.operand
            if is_first and not self.is_optional(node):
                break
        is_open = not self.is_optional(node)
        value = self.named(indent, self.value(node, indent)) if is_open else self.optional(node, indent)
        result = self.kept(indent, default)
        if not is_open:
            self.line(indent, f"if {value} is not {self.constant(MISSING)}:")
            indent += 1
        for name in reversed(selected):
            self.charge(3)
            self.give_up_unless(indent, f"type({value}) is dict")
            key = self.constant(name)
            self.line(indent, f"if {key} in {value}:")
            indent += 1
            value = self.kept(indent, f"{value}[{key}]")
        self.line(indent, f"{result} = {found or value}")
        return result

    def presence(self, node: ast.Call, indent: int) -> str:
        """Write `a.?b.?c.hasValue()`."""
        if node.target is None or not self.is_optional(node.target):
            raise BeyondError
        self.charge(2)
        if isinstance(node.target, (ast.Select, ast.Index)) and self.definition(node.target) is None:
            return self._chain(node.target, "False", indent, found="True")
        return f"({self.optional(node.target, indent)} is not {self.constant(MISSING)})"

    def _or_value(self, holder: ast.Node, default: ast.Node, indent: int, *, lenient: bool) -> str:
        """Write `a.?b.?c.orValue(d)`; the default is computed in any case, because its errors count.

        With `lenient`, a value that is not optional stays as it is.
        """
        self.charge(2)
        if not self.is_optional(holder):
            if not lenient:
                raise BeyondError
            value = self.named(indent, self.value(holder, indent))
            self.named(indent, self._any_value(default, indent))
            self.give_up_unless(indent, f"type({value}) is not {self.constant(Optional)}")
            return value
        fallback = self.named(indent, self._any_value(default, indent))
        if isinstance(holder, (ast.Select, ast.Index)) and self.definition(holder) is None:
            return self._chain(holder, fallback, indent)
        value = self.optional(holder, indent)
        result = self.kept(indent, value)
        self.line(indent, f"if {result} is {self.constant(MISSING)}:")
        self.line(indent + 1, f"{result} = {fallback}")
        return result

    def _any_value(self, node: ast.Node, indent: int) -> str:
        """Return a value that may be a test."""
        return self.truth(node, indent) if is_test(node, self.checked) else self.value(node, indent)

    # calls

    def text(self, node: ast.Node, indent: int) -> str:
        """Return a value that is a text of moderate length; anything else gives up."""
        if isinstance(node, ast.Literal):
            if not isinstance(node.value, str):
                raise BeyondError
            return self.constant(node.value)
        name = self.named(indent, self.value(node, indent))
        self.give_up_unless(indent, f"type({name}) is str and len({name}) <= {LONGEST_TEXT}")
        return name

    def _call(self, node: ast.Call, indent: int) -> str:
        resolution = self.checked.resolutions.get(node.id)
        if resolution is None:
            raise BeyondError
        name = resolution.function
        operands = operands_of(node, drops_target=resolution.drops_target)
        if name == "size" and len(operands) == 1:
            self.charge(1)
            return f"len({self.value(operands[0], indent)})"
        if name == "_+_":
            return self._sum(node, indent)
        if name in _OR_VALUE and len(operands) == 2:
            return self._or_value(operands[0], operands[1], indent, lenient=name != "orValue")
        if is_test(node, self.checked):
            return self.named(indent, self.truth(node, indent))
        if not name[:1].isalpha():
            raise BeyondError
        function = _library_call(resolution.overloads)
        self.charge(DEAREST_CALL)
        arguments = [self.named(indent, self._any_value(operand, indent)) for operand in operands]
        return f"{self.constant(function)}({', '.join(arguments)})"

    def _sum(self, node: ast.Call, indent: int) -> str:
        kind = self.checked.types[node.id].kind
        if kind == "string":
            sides = [self.text(operand, indent) for operand in node.args]
            self.charge(2 + 2 * LONGEST_TEXT // 10)
            return f"({sides[0]} + {sides[1]})"
        if kind not in ("list", "dyn"):
            raise BeyondError
        sides = [self.named(indent, self.value(operand, indent)) for operand in node.args]
        for side in sides:
            self.give_up_unless(indent, f"type({side}) is list")
        self.charge(1 + LONGEST_LIST // 256)
        result = self.kept(indent, f"{sides[0]} + {sides[1]}")
        # the closures look at what may be produced
        self.give_up_unless(indent, f"len({result}) <= {LONGEST_LIST}")
        self.assume(indent, f"type({result}) is list")
        self.assume(indent, f"type({result}) is list or type({result}) is dict")
        return result

    # lists, maps and branches

    def begin_loop(self, node: ast.Comprehension, indent: int) -> str:
        """Write the head of a loop over a list or the keys of a map; the body goes one level deeper."""
        if len(node.variables) != 1:
            raise BeyondError
        self.charge(12)
        optional = False
        if isinstance(node.range, ast.ListLiteral) and holds_optionals(self.checked.types[node.range.id]):
            items, optional = self._optional_elements(node.range, indent), True
        else:
            items = self.named(indent, self.value(node.range, indent))
            if items[0] == "c":
                items = self.kept(indent, items)
            self.give_up_unless(indent, f"type({items}) is list or type({items}) is dict")
        self.unit.begin_loop(int(items[1:]), indent)
        element = f"v{self.source.variable()}"
        self.line(indent, f"for {element} in {items}:")
        self.bind(node.variables[0], element, optional=optional)
        return element

    def end_loop(self) -> None:
        """End a loop."""
        self.unbind()
        self.unit.end_loop()

    def _optional_elements(self, node: ast.ListLiteral, indent: int) -> str:
        if node.optionals or not all(self.is_optional(element) for element in node.elements):
            raise BeyondError
        self.charge(10)
        items = [self.optional(element, indent) for element in node.elements]
        return self.kept(indent, f"[{', '.join(items)}]")

    def _collect(self, node: ast.Comprehension, indent: int) -> str:
        if node.kind not in ("map", "filter"):
            return self.named(indent, self.truth(node, indent))
        result = self.kept(indent, "list()")
        element = self.begin_loop(node, indent)
        inner = indent + 1
        if node.condition is not None:
            self.line(inner, f"if {self.truth(node.condition, inner)}:")
            inner += 1
        made = element if node.body is None else self._any_value(node.body, inner)
        self.line(inner, f"{result}.append({made})")
        self.end_loop()
        return result

    def _literal(self, node: ast.Literal, _indent: int) -> str:
        return self.constant(node.value)

    def _list(self, node: ast.ListLiteral, indent: int) -> str:
        if node.optionals:
            raise BeyondError
        self.charge(10)
        found = literal(node)
        if found is not MISSING:
            return self.constant(found)
        items = [self._any_value(element, indent) for element in node.elements]
        return self.kept(indent, f"[{', '.join(items)}]")

    def _map(self, node: ast.MapLiteral, _indent: int) -> str:
        self.charge(30)
        found = literal(node)
        if found is MISSING:
            raise BeyondError
        return self.constant(found)

    def _ternary(self, node: ast.Ternary, indent: int) -> str:
        return self.chosen(node, self._any_value, indent)

    def chosen(self, node: ast.Ternary, write: Callable[[ast.Node, int], str], indent: int) -> str:
        """Return the variable that holds one of two branches, each written where it is taken."""
        result = f"v{self.source.variable()}"
        self.line(indent, f"if {self.truth(node.condition, indent)}:")
        self.line(indent + 1, f"{result} = {write(node.truthy, indent + 1)}")
        self.line(indent, "else:")
        self.line(indent + 1, f"{result} = {write(node.falsy, indent + 1)}")
        return result

    def _test(self, node: ast.Node, indent: int) -> str:
        return self.named(indent, self.truth(node, indent))


_VALUES: Final[dict[type, Callable[..., str]]] = {
    ast.Select: ValueWriter._select,
    ast.Index: ValueWriter._index,
    ast.Call: ValueWriter._call,
    ast.Comprehension: ValueWriter._collect,
    ast.Literal: ValueWriter._literal,
    ast.ListLiteral: ValueWriter._list,
    ast.MapLiteral: ValueWriter._map,
    ast.Ternary: ValueWriter._ternary,
    ast.Logical: ValueWriter._test,
    ast.Has: ValueWriter._test,
}


def _library_call(overloads: tuple[Overload, ...]) -> Callable[..., Value]:
    """Return a function that calls the overload whose parameters take the values; dear calls raise ValueError."""
    if any(overload.in_context and not overload.metered for overload in overloads):
        raise BeyondError
    table = tuple(
        (overload, tuple(accepts(type_) or _anything for type_ in overload.signature.params)) for overload in overloads
    )

    def call(*values: Value) -> Value:
        for overload, guards in table:
            if all(guard(value) for guard, value in zip(guards, values, strict=True)):
                if overload.work(values) > LONGEST_CALL:
                    raise ValueError("long call")
                if overload.metered:
                    evaluation = Evaluation(Runtime(budget=Budget(steps=LONGEST_CALL)))
                    try:
                        result = overload.apply(evaluation, *values)
                    finally:
                        evaluation.frame.clear()
                else:
                    result = overload.apply(*values)
                if overload.cost is not None and overload.cost(values, result) > DEAREST_CALL:
                    raise ValueError("dear call")
                return result
        raise TypeError("no overload")

    return call


def _anything(_: Value) -> bool:
    return True
