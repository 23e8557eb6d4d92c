"""Generated code for tests: what must be true, what must be false, and lists that must be empty.

A demand (`require`, `refuse`, `require_empty`) needs no result: where it is not met the function returns False at once,
loops included. This module must never decide that an expression is false.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from pyverno.lang.cel.checking.checked import Resolution
from pyverno.lang.cel.fast.cost import BeyondError
from pyverno.lang.cel.fast.trees import literal
from pyverno.lang.cel.fast.values import LONGEST_TEXT, ValueWriter
from pyverno.lang.cel.fast.variables import TOP
from pyverno.lang.cel.regex import kept_pattern, search_work
from pyverno.lang.cel.syntax import ast
from pyverno.lang.cel.values import MISSING

__all__ = ["TruthWriter"]

_EXACT_INTEGER: Final = 2**53
_ORDERINGS: Final = {"_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">="}
_TEXT_TESTS: Final = {"startsWith": "({}.startswith({}))", "endsWith": "({}.endswith({}))", "contains": "({1} in {0})"}


class TruthWriter(ValueWriter):
    """Writes tests and demands."""

    # demands

    def require(self, node: ast.Node, indent: int) -> None:
        """Write code that returns False unless a node is true."""
        if isinstance(node, ast.Logical) and node.operator == "_&&_":
            for term in node.terms:
                self.require(term, indent)
        elif isinstance(node, ast.Call) and self._function(node) == "!_":
            self.charge(1)
            self.refuse(node.args[0], indent)
        elif isinstance(node, ast.Comprehension) and node.kind == "all" and node.condition is not None:
            self.begin_loop(node, indent)
            self.require(node.condition, indent + 1)
            self.end_loop()
        elif isinstance(node, ast.Ternary):
            self._branches(node, self.require, indent)
        elif (items := self._empty(node)) is not None:
            self.charge(2)
            self.require_empty(items, indent)
        else:
            self.give_up_unless(indent, self.truth(node, indent))

    def refuse(self, node: ast.Node, indent: int) -> None:
        """Write code that returns False unless a node is false."""
        if isinstance(node, ast.Logical) and node.operator == "_||_":
            for term in node.terms:
                self.refuse(term, indent)
        elif isinstance(node, ast.Call) and self._function(node) == "!_":
            self.charge(1)
            self.require(node.args[0], indent)
        elif isinstance(node, ast.Comprehension) and node.kind == "exists" and node.condition is not None:
            self.begin_loop(node, indent)
            self.refuse(node.condition, indent + 1)
            self.end_loop()
        elif isinstance(node, ast.Ternary):
            self._branches(node, self.refuse, indent)
        else:
            self.line(indent, f"if {self.truth(node, indent)}:")
            self.line(indent + 1, "return False")

    def _branches(self, node: ast.Ternary, demand: Callable[[ast.Node, int], None], indent: int) -> None:
        self.line(indent, f"if {self.truth(node.condition, indent)}:")
        demand(node.truthy, indent + 1)
        self.line(indent + 1, "pass")
        self.line(indent, "else:")
        demand(node.falsy, indent + 1)
        self.line(indent + 1, "pass")

    def _empty(self, node: ast.Node) -> ast.Node | None:
        """Return the list that a node wants to be empty (`x.size() == 0`)."""
        if not isinstance(node, ast.Call) or self._function(node) != "_==_":
            return None
        sized, zero = node.args
        if not isinstance(zero, ast.Literal) or type(zero.value) is not int or zero.value != 0:
            return None
        if not isinstance(sized, ast.Call) or self._function(sized) != "size":
            return None
        operands = sized.args if sized.target is None else (sized.target, *sized.args)
        is_list = len(operands) == 1 and self.checked.types[operands[0].id].kind in ("list", "dyn")
        return operands[0] if is_list else None

    def require_empty(self, node: ast.Node, indent: int) -> None:
        """Write code that returns False unless a node is an empty list (or an empty map)."""
        name = self.definition(node)
        if name is not None and literal(self.definitions[name].root) is MISSING:
            self.charge(4)
            self._require_empty_variable(name, indent)
        elif isinstance(node, ast.Call) and self._function(node) == "_+_":
            self.charge(1)
            for side in node.args:
                self.require_empty(side, indent)
        elif isinstance(node, ast.Ternary):
            self._branches(node, self.require_empty, indent)
        elif isinstance(node, ast.ListLiteral) and not node.optionals:
            self.charge(10)
            if node.elements:
                self.line(indent, "return False")
        elif isinstance(node, ast.Comprehension) and node.kind == "filter" and node.condition is not None:
            self.begin_loop(node, indent)
            self.refuse(node.condition, indent + 1)
            self.end_loop()
        elif isinstance(node, ast.Comprehension) and node.kind == "map" and len(node.variables) == 1:
            self._require_empty_map(node, indent)
        else:
            value = self.named(indent, self.value(node, indent))
            self.give_up_unless(indent, f"not {value} and (type({value}) is list or type({value}) is dict)")

    def _require_empty_map(self, node: ast.Comprehension, indent: int) -> None:
        """Write the demand for `map`: nothing to visit, or nothing that its condition lets through."""
        self.charge(12)
        if node.condition is None:
            self.require_empty(node.range, indent)
            return
        self.begin_loop(node, indent)
        self.refuse(node.condition, indent + 1)
        self.end_loop()

    def _require_empty_variable(self, name: str, indent: int) -> None:
        definition = self.definitions[name]
        known = self.known(name, indent)
        if known is None and indent == TOP:

            def compute() -> str:
                self.require_empty(definition.root, indent)
                return self.constant([])

            self.shared(name, compute)
            return
        value = known if known is not None else self.variable(name, indent)
        self.give_up_unless(indent, f"not {value} and (type({value}) is list or type({value}) is dict)")

    # tests

    def truth(self, node: ast.Node, indent: int) -> str:
        """Return an expression that is exactly the node's bool; what is no bool gives up."""
        writer = _TRUTHS.get(type(node))
        if writer is not None:
            return writer(self, node, indent)
        if isinstance(node, ast.Call):
            return self._call_truth(node, indent)
        return self._as_bool(self.value(node, indent), indent)

    def _as_bool(self, value: str, indent: int) -> str:
        name = self.named(indent, value)
        self.give_up_unless(indent, f"{name} is True or {name} is False")
        return name

    def _literal_truth(self, node: ast.Literal, _indent: int) -> str:
        if not isinstance(node.value, bool):
            raise BeyondError
        return "True" if node.value else "False"

    def _logical_truth(self, node: ast.Logical, indent: int) -> str:
        result = self.kept(indent, self.truth(node.terms[0], indent))
        condition = f"if {result}:" if node.operator == "_&&_" else f"if not {result}:"
        for term in node.terms[1:]:
            self.line(indent, condition)
            self.line(indent + 1, f"{result} = {self.truth(term, indent + 1)}")
        return result

    def _ternary_truth(self, node: ast.Ternary, indent: int) -> str:
        return self.chosen(node, self.truth, indent)

    def _has_truth(self, node: ast.Has, indent: int) -> str:
        operand = self.named(indent, self.value(node.operand, indent))
        self.charge(2)
        self.give_up_unless(indent, f"type({operand}) is dict")
        return f"({self.constant(node.field)} in {operand})"

    def _quantifier_truth(self, node: ast.Comprehension, indent: int) -> str:
        if node.condition is None or node.kind not in ("all", "exists", "existsOne"):
            raise BeyondError
        if node.kind == "existsOne":
            return self._exactly_one(node, node.condition, indent)
        result = self.kept(indent, "True" if node.kind == "all" else "False")
        self.begin_loop(node, indent)
        body = self.truth(node.condition, indent + 1)
        self.line(indent + 1, f"if not {body}:" if node.kind == "all" else f"if {body}:")
        self.line(indent + 2, f"{result} = {'False' if node.kind == 'all' else 'True'}")
        self.line(indent + 2, "break")
        self.end_loop()
        return result

    def _exactly_one(self, node: ast.Comprehension, condition: ast.Node, indent: int) -> str:
        count = self.kept(indent, self.constant(0))
        one = self.constant(1)
        self.begin_loop(node, indent)
        self.line(indent + 1, f"if {self.truth(condition, indent + 1)}:")
        self.line(indent + 2, f"{count} = {count} + {one}")
        self.end_loop()
        return f"({count} == {one})"

    def _bind_truth(self, node: ast.Bind, indent: int) -> str:
        self.charge(12)
        optional = self.is_optional(node.value)
        value = self.optional(node.value, indent) if optional else self.named(indent, self.value(node.value, indent))
        self.bind(node.name, value, optional=optional)
        result = self.kept(indent, self.truth(node.body, indent))
        self.unbind()
        return result

    # calls

    def _function(self, node: ast.Call) -> str:
        resolution = self.checked.resolutions.get(node.id)
        return resolution.function if resolution is not None else ""

    def _call_truth(self, node: ast.Call, indent: int) -> str:
        resolution = self.checked.resolutions.get(node.id)
        if resolution is None:
            raise BeyondError
        name = resolution.function
        if name in ("_==_", "_!=_"):
            equal = self._equality(node.args[0], node.args[1], indent)
            return equal if name == "_==_" else f"(not {equal})"
        writer = _CALLS.get(name)
        if writer is None:
            return self._as_bool(self.value(node, indent), indent)
        return writer(self, node, resolution, indent)

    def _negation(self, node: ast.Call, _: Resolution, indent: int) -> str:
        self.charge(1)
        return f"(not {self.truth(node.args[0], indent)})"

    def _equality(self, left: ast.Node, right: ast.Node, indent: int) -> str:
        if isinstance(left, ast.Literal) and not isinstance(right, ast.Literal):
            left, right = right, left
        if not isinstance(right, ast.Literal):
            return self._text_equality(left, right, indent)
        value = right.value
        self.charge(1 + (len(value) // 10 + 1 if isinstance(value, (str, bytes)) else 0))
        if self._is_bool(left) and isinstance(value, bool):
            truth = self.truth(left, indent)
            return f"({truth})" if value else f"(not {truth})"
        operand = self.value(left, indent)
        if value is None or isinstance(value, bool):
            return f"({operand} is {value})"
        if isinstance(value, str):
            return f"({operand} == {self.constant(value)})"
        if type(value) in (int, float) and abs(value) < _EXACT_INTEGER:
            name = self.named(indent, operand)
            return f"({name} == {self.constant(value)} and type({name}) is not bool)"
        raise BeyondError

    def _is_bool(self, node: ast.Node) -> bool:
        """Return whether a node is a test whose value is not read from data."""
        return self.checked.types[node.id].kind == "bool" and not isinstance(node, (ast.Select, ast.Ident, ast.Index))

    def _text_equality(self, left: ast.Node, right: ast.Node, indent: int) -> str:
        one = self.text(left, indent)
        two = self.text(right, indent)
        self.charge(1 + LONGEST_TEXT // 10)
        return f"({one} == {two})"

    def _ordering(self, node: ast.Call, resolution: Resolution, indent: int) -> str:
        sides = [self._integer(side, indent) for side in node.args]
        self.charge(1)
        return f"({sides[0]} {_ORDERINGS[resolution.function]} {sides[1]})"

    def _integer(self, node: ast.Node, indent: int) -> str:
        if isinstance(node, ast.Literal):
            if type(node.value) is not int:
                raise BeyondError
            return self.constant(node.value)
        value = self.value(node, indent)
        if isinstance(node, ast.Call) and self._function(node) == "size" and value.startswith("len"):
            return value
        name = self.named(indent, value)
        self.give_up_unless(indent, f"type({name}) is int")
        return name

    def _membership(self, node: ast.Call, _: Resolution, indent: int) -> str:
        item, container = node.args
        listed = self._list_elements(container)
        if listed is not None:
            if not all(type(value) is str for value in listed):
                raise BeyondError
            name = self.named(indent, self.value(item, indent))
            self.charge(12 + len(listed))
            return f"(type({name}) is str and {name} in {self.constant(frozenset(listed))})"
        wanted = self.text(item, indent)
        among = self.named(indent, self.value(container, indent))
        self.give_up_unless(
            indent, f"type({among}) is dict or (type({among}) is list and len({among}) <= {LONGEST_TEXT})"
        )
        self.charge(1 + LONGEST_TEXT)
        return f"({wanted} in {among})"

    def _list_elements(self, node: ast.Node) -> Sequence[object] | None:
        """Return the elements of a list that is written out, here or as a variable."""
        name = self.definition(node)
        if name is not None:
            self.rule.charge_once(10)
            self.charge(4)
        found = literal(node if name is None else self.definitions[name].root)
        return found if isinstance(found, list) and found else None

    def _text_test(self, node: ast.Call, resolution: Resolution, indent: int) -> str:
        if node.target is None or resolution.drops_target:
            raise BeyondError
        text = self.text(node.target, indent)
        part = self.text(node.args[0], indent)
        steps = LONGEST_TEXT // 10 + 1
        self.charge(steps * steps if resolution.function == "contains" else steps)
        return _TEXT_TESTS[resolution.function].format(text, part)

    def _regex_test(self, node: ast.Call, _: Resolution, indent: int) -> str:
        operands = node.args if node.target is None else (node.target, *node.args)
        pattern = operands[1]
        if not isinstance(pattern, ast.Literal) or not isinstance(pattern.value, str):
            raise BeyondError
        text = self.text(operands[0], indent)
        compiled = kept_pattern(pattern.value)
        _most, usual = search_work(compiled, "a" * LONGEST_TEXT)
        self.charge(max((LONGEST_TEXT // 10 + 2) * (len(pattern.value) // 4 + 1), usual))
        return f"{self.constant(compiled.found)}({text})"

    def _presence_test(self, node: ast.Call, _: Resolution, indent: int) -> str:
        return self.presence(node, indent)


_TRUTHS: Final[dict[type, Callable[..., str]]] = {
    ast.Literal: TruthWriter._literal_truth,
    ast.Logical: TruthWriter._logical_truth,
    ast.Ternary: TruthWriter._ternary_truth,
    ast.Has: TruthWriter._has_truth,
    ast.Comprehension: TruthWriter._quantifier_truth,
    ast.Bind: TruthWriter._bind_truth,
}
_CALLS: Final[dict[str, Callable[..., str]]] = {
    "!_": TruthWriter._negation,
    **dict.fromkeys(_ORDERINGS, TruthWriter._ordering),
    **dict.fromkeys(_TEXT_TESTS, TruthWriter._text_test),
    "@in": TruthWriter._membership,
    "matches": TruthWriter._regex_test,
    "hasValue": TruthWriter._presence_test,
}
