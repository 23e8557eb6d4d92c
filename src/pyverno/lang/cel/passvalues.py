"""Generated code for values: paths, optional chains, variables, lists and calls.

Expressions of the generated function are texts of our own (`v3[c1]`), made of templates and integers. Each is exactly
the value of a node, or the function gives up. An optional value is written as the value itself or `MISSING`; the
checker's types say which nodes are optional. This module must never write text of an expression.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Final

from pyverno.lang.cel import ast
from pyverno.lang.cel.calls import accepts
from pyverno.lang.cel.checker import Checked
from pyverno.lang.cel.declarations import Overload
from pyverno.lang.cel.passcost import BeyondError, Unit, begin_unit, end_unit
from pyverno.lang.cel.passtrees import (
    holds_optionals,
    is_test,
    is_variables,
    literal,
    literal_cost,
    looping,
    operands_of,
    shape,
    uses_loops,
)
from pyverno.lang.cel.unification import is_optional
from pyverno.lang.cel.values import MISSING, Optional, Value
from pyverno.lang.codegen import Source
from pyverno.value import dataclass

__all__ = ["LONGEST_LIST", "LONGEST_TEXT", "TOP", "Shared", "ValueWriter"]

LONGEST_TEXT: Final = 1_024
LONGEST_LIST: Final = 65_536
DEAREST_CALL: Final = 2_048
TOP: Final = 1
"""The indentation of what surely runs: what is known there stays known in the rest of the function."""

_OR_VALUE: Final = frozenset({"orValue", "__orValueCompat__"})


@dataclass(frozen=True, slots=True)
class Shared:
    """A variable that the function has computed: where it is, and what the closures can have spent on it.

    `fixed` is a number, `spent` the variable with the rest (-1: nothing); `needs` are the variables that it reads,
    and those that these read.
    """

    name: str
    fixed: int = 0
    spent: int = -1
    needs: tuple[Shared, ...] = ()


class ValueWriter(ABC):
    """Writes values. `roots` are the variables of the function that hold variables of the environment.

    Without `roots` the one argument of the function is a mapping of all of them.
    """

    def __init__(self, source: Source, roots: Mapping[str, int] | None) -> None:
        self.source = source
        self.checked: Checked
        self.definitions: Mapping[str, Checked] = {}
        self.unit: Unit
        self.rule: Unit
        self._roots = roots
        self._locals: list[tuple[str, str, bool]] = []
        self._paths: dict[tuple[str, ...], str] = {}
        self._shared: dict[int, Shared] = {}
        self._keys: dict[Hashable, int] = {}
        self._shapes: dict[str, int] = {}
        self._looping: frozenset[str] = frozenset()
        self._charged: set[int] = set()
        self._needs: list[dict[int, Shared]] = []
        self._facts: list[tuple[int, str]] = []

    def begin_rule(self, expressions: Sequence[Checked], definitions: Mapping[str, Checked], limit: int) -> None:
        """Begin the code of a rule, which counts its own cost and has its own variables."""
        self.definitions, self._looping = definitions, looping(definitions)
        has_loops = any(uses_loops(checked, self._looping) for checked in expressions)
        self.unit = self.rule = begin_unit(self.source, limit, TOP, has_loops=has_loops)
        self._shapes, self._charged = {}, set()

    @abstractmethod
    def truth(self, node: ast.Node, indent: int) -> str:
        """Return an expression that is exactly the node's bool; what is no bool gives up."""

    # writing

    def line(self, indent: int, text: str) -> None:
        """Write one line; what was made sure of in a block that ends here is forgotten."""
        while self._facts and self._facts[-1][0] > indent:
            self._facts.pop()
        self.source.line(indent, text)

    def charge(self, cost: int) -> None:
        """Count the most that a node can cost."""
        self.unit.charge(cost)

    def constant(self, value: Value) -> str:
        """Return the constant that holds a value."""
        return f"c{self.source.constant(value)}"

    def kept(self, indent: int, text: str) -> str:
        """Store a value in a variable of its own, and return its name."""
        name = f"v{self.source.variable()}"
        self.line(indent, f"{name} = {text}")
        return name

    def named(self, indent: int, text: str) -> str:
        """Return the name of a value, which is stored unless it has one."""
        return text if text[:1] in "vc" and text[1:].isdigit() else self.kept(indent, text)

    def give_up_unless(self, indent: int, condition: str) -> None:
        """Write a way out, unless the code before it has made sure of the condition."""
        if any(fact == condition for known_at, fact in self._facts if known_at <= indent):
            return
        self.line(indent, f"if not ({condition}):")
        self.line(indent + 1, "return False")
        self.assume(indent, condition)

    def assume(self, indent: int, condition: str) -> None:
        """Remember a condition, of variables that do not change any more, until the block ends."""
        self._facts.append((indent, condition))

    # names

    def bind(self, name: str, variable: str, *, optional: bool) -> None:
        """Give a local name its variable."""
        self._locals.append((name, variable, optional))

    def unbind(self) -> None:
        """Forget the last local name."""
        self._locals.pop()

    def is_optional(self, node: ast.Node) -> bool:
        """Tell whether a node's value is optional."""
        return is_optional(self.checked.types[node.id])

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
                return self._local(reference.name, optional=False)
            return self._global((reference.name,), indent)
        writer = _VALUES.get(type(node))
        if writer is None:
            raise BeyondError
        return writer(self, node, indent)

    def _local(self, name: str, *, optional: bool) -> str:
        for known, variable, is_optional_one in reversed(self._locals):
            if known == name:
                if is_optional_one is not optional:
                    raise BeyondError
                return variable
        raise BeyondError

    def _global(self, path: tuple[str, ...], indent: int) -> str:
        """Return a path from a variable; what the top of the function has read is read once."""
        known = self._paths.get(path)
        if known is not None:
            return known
        if len(path) > 1:
            text = f"{self._global(path[:-1], indent)}[{self.constant(path[-1])}]"
        elif self._roots is None:
            text = f"v0[{self.constant(path[0])}]"
        elif path[0] in self._roots:
            return f"v{self._roots[path[0]]}"
        else:
            raise BeyondError
        if indent > TOP:
            return text
        name = self._paths[path] = self.kept(indent, text)
        return name

    # variables

    def definition(self, node: ast.Node) -> str | None:
        """Return the name of the variable that a node is (`variables.NAME`)."""
        if not isinstance(node, ast.Select) or node.optional or not self.definitions:
            return None
        is_known = node.field in self.definitions and is_variables(self.checked, node.operand)
        return node.field if is_known else None

    def variable(self, name: str, indent: int) -> str:
        """Return the value of a variable, which is computed at most once in a rule, and only where it is used."""
        self.charge(2)
        definition = self.definitions[name]
        fixed = literal(definition.root)
        if fixed is not MISSING:
            self.rule.charge_once(10 + literal_cost(definition.root))
            return self.constant(fixed)
        known = self.known(name, indent)
        if known is not None:
            return known
        if indent > TOP:
            return self._on_demand(name, definition, indent)
        return self.shared(name, lambda: self.named(indent, self._defined(definition, indent)))

    def known(self, name: str, indent: int) -> str | None:
        """Return the variable's value when the top of the function has it."""
        known = self._shared.get(self._shape(name))
        if known is None:
            return None
        self._touch(known, indent)
        return known.name

    def shared(self, name: str, compute: Callable[[], str]) -> str:
        """Compute a variable at the top of the function, where everything after it may use it, other rules too."""
        outside, before = self.unit, self.checked
        self.unit = begin_unit(self.source, outside.limit, TOP, has_loops=name in self._looping)
        self.checked = self.definitions[name]
        self._needs.append({})
        made = compute()
        end_unit(self.unit)
        shared = Shared(made, self.unit.fixed, self.unit.spent, tuple(self._needs.pop().values()))
        self.unit, self.checked = outside, before
        self._shared[self._shape(name)] = shared
        self._touch(shared, TOP)
        return made

    def _touch(self, shared: Shared, indent: int) -> None:
        """Charge the rule for a variable; each counts once, but code that may not run proves nothing for later."""
        for each in (*shared.needs, shared):
            if self._needs:
                self._needs[-1][id(each)] = each
            if id(each) in self._charged:
                continue
            if each.spent < 0:
                self.rule.charge_once(each.fixed)
            else:
                self.rule.add(each.spent, indent)
            if each.spent < 0 or indent == TOP:
                self._charged.add(id(each))

    def _on_demand(self, name: str, definition: Checked, indent: int) -> str:
        """Write a variable where it may not be needed: in a loop or a branch."""
        made = f"v{self.source.variable()}"
        unset = self.constant(_UNSET)
        self.source.first(f"{made} = {unset}")
        self.line(indent, f"if {made} is {unset}:")
        before, self.checked = self.checked, definition
        self.unit.begin_once()
        self.line(indent + 1, f"{made} = {self._defined(definition, indent + 1)}")
        self.unit.end_once()
        self.checked = before
        return made

    def _defined(self, definition: Checked, indent: int) -> str:
        root = definition.root
        if self.is_optional(root):
            return self.optional(root, indent)
        if definition.types[root.id].kind == "bool":
            return self.truth(root, indent)
        return self.value(root, indent)

    def _shape(self, name: str) -> int:
        """Return what a variable is, the same number for variables of several rules that are defined alike."""
        known = self._shapes.get(name)
        if known is None:
            key = shape(self.definitions[name], self._shape)
            known = self._shapes[name] = self._keys.setdefault(key, len(self._keys))
        return known

    # selections

    def _select(self, node: ast.Select, indent: int) -> str:
        self.charge(2)
        name = self.definition(node)
        if name is not None:
            return self.variable(name, indent)
        path = self._path(node)
        if path is not None:
            self.charge(2 * len(path))
            return self._global(path, indent)
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
            return self._local(reference.name, optional=True)
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

        `lenient`: what is not optional stays as it is.
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
        self.charge(1)
        result = self.kept(indent, f"{sides[0]} + {sides[1]}")
        # the closures look at the limit of what may be produced from here on
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

    def _collected(self, node: ast.Comprehension, indent: int) -> str:
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
        result = f"v{self.source.variable()}"
        self.line(indent, f"if {self.truth(node.condition, indent)}:")
        self.line(indent + 1, f"{result} = {self._any_value(node.truthy, indent + 1)}")
        self.line(indent, "else:")
        self.line(indent + 1, f"{result} = {self._any_value(node.falsy, indent + 1)}")
        return result

    def _test(self, node: ast.Node, indent: int) -> str:
        return self.named(indent, self.truth(node, indent))


_UNSET: Final = object()
_VALUES: Final[dict[type, Callable[..., str]]] = {
    ast.Select: ValueWriter._select,
    ast.Index: ValueWriter._index,
    ast.Call: ValueWriter._call,
    ast.Comprehension: ValueWriter._collected,
    ast.Literal: ValueWriter._literal,
    ast.ListLiteral: ValueWriter._list,
    ast.MapLiteral: ValueWriter._map,
    ast.Ternary: ValueWriter._ternary,
    ast.Logical: ValueWriter._test,
    ast.Has: ValueWriter._test,
}


def _library_call(overloads: tuple[Overload, ...]) -> Callable[..., Value]:
    """Return a function that calls the overload whose parameters take the values; dear calls raise ValueError."""
    if any(overload.in_context for overload in overloads):
        raise BeyondError
    table = tuple(
        (overload, tuple(accepts(type_) or _anything for type_ in overload.signature.params)) for overload in overloads
    )

    def call(*values: Value) -> Value:
        for overload, guards in table:
            if all(guard(value) for guard, value in zip(guards, values, strict=True)):
                result = overload.apply(*values)
                if overload.cost is not None and overload.cost(values, result) > DEAREST_CALL:
                    raise ValueError("dear call")
                return result
        raise TypeError("no overload")

    return call


def _anything(_: Value) -> bool:
    return True
