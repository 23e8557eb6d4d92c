"""Generated code for names: what is kept in variables of the function, for how long, and what it can have cost.

Paths from the object and variables of policies are computed once, at the top of the function where they surely are
needed, or where they are first used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Final

from pyverno.lang.cel.checking.checked import Checked
from pyverno.lang.cel.checking.unification import is_optional
from pyverno.lang.cel.fast.cost import BeyondError, Unit, begin_unit, end_unit
from pyverno.lang.cel.fast.trees import is_variables, literal, literal_cost, looping, shape, uses_loops
from pyverno.lang.cel.syntax import ast
from pyverno.lang.cel.values import MISSING, Value
from pyverno.lang.codegen import Source
from pyverno.value import dataclass

__all__ = ["TOP", "Shared", "VariableWriter"]

TOP: Final = 1
"""The indentation of code that always runs: what is known there stays known in the rest of the function."""

_UNSET: Final = object()


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


class VariableWriter(ABC):
    """Writes lines, and names for what they compute. `roots` hold the variables of the environment.

    They are variables of the function. Without `roots` its one argument is a mapping of all of them.
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

    @abstractmethod
    def value(self, node: ast.Node, indent: int) -> str:
        """Return an expression for the exact value of a node that is not optional."""

    @abstractmethod
    def optional(self, node: ast.Node, indent: int) -> str:
        """Return the name of an optional value: the value inside, or MISSING."""

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
        """Return whether a node's value is optional."""
        return is_optional(self.checked.types[node.id])

    def local(self, name: str, *, optional: bool) -> str:
        """Return the variable of a local name, which must be optional or not as its use is."""
        for known, variable, is_optional_one in reversed(self._locals):
            if known == name:
                if is_optional_one is not optional:
                    raise BeyondError
                return variable
        raise BeyondError

    def path_from(self, path: tuple[str, ...], indent: int) -> str:
        """Return a path from a variable; what the top of the function has read is read once."""
        known = self._paths.get(path)
        if known is not None:
            return known
        if len(path) > 1:
            text = f"{self.path_from(path[:-1], indent)}[{self.constant(path[-1])}]"
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
