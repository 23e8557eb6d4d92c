"""The fast tier of CEL: generated functions that answer only "true".

    passes(variables) is True  =>  the closures give true, within their cost limit

Anything else, an exception inside included, means "ask the closures". A generated function may therefore give up on
whatever is rare: numbers of mixed types, structs, optionals that are not opened at once, long texts. Several
expressions become one function that looks up each shared path once. This module writes templates and integers only
(see `codegen`); no text of an expression enters the source. It must never decide that an expression is false.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from pyverno.errors import BudgetExceededError, EvaluationError
from pyverno.lang.cel import ast
from pyverno.lang.cel.calls import accepts
from pyverno.lang.cel.checker import Checked
from pyverno.lang.cel.declarations import Overload
from pyverno.lang.cel.regex import compile_pattern
from pyverno.lang.cel.values import Optional, Value
from pyverno.lang.codegen import Source

__all__ = ["PassCheck", "compile_pass_check"]

PassCheck: TypeAlias = Callable[[Mapping[str, Value]], bool]

COST_LIMIT: Final = 1_000_000
LONGEST_TEXT: Final = 1_024
DEAREST_CALL: Final = 2_048
_EXACT_INTEGER: Final = 2**53
_FALLBACK: Final = (EvaluationError, BudgetExceededError, LookupError, TypeError, AttributeError, ValueError)
_ORDERINGS: Final = {"_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">="}
_TRUTH_CALLS: Final = frozenset(
    {"!_", "_==_", "_!=_", "@in", "startsWith", "endsWith", "contains", "matches", "hasValue", *_ORDERINGS}
)
_TEXT_TESTS: Final = {"startsWith": "{}.startswith({})", "endsWith": "{}.endswith({})"}


def compile_pass_check(*expressions: Checked) -> PassCheck | None:
    """Generate the pass-check of boolean expressions that must all be true; None when one is beyond it.

    Variables come as a mapping; missing ones make the answer False.

    >>> from pyverno.lang.cel import STANDARD, types
    >>> checked = STANDARD.with_variables({"x": types.DYN}).check("x.a.startsWith('b') && size(x.c) < 2")
    >>> passes = compile_pass_check(checked)
    >>> passes({"x": {"a": "bc", "c": []}}), passes({"x": {}})
    (True, False)
    """
    generator = _Generator()
    try:
        return generator.build(expressions)
    except (_BeyondError, ValueError, RecursionError):
        return None


def _library_call(overloads: tuple[Overload, ...]) -> Callable[..., Value]:
    """Return a function that calls the overload whose parameters take the values; dear calls raise ValueError."""
    if any(overload.in_context for overload in overloads):
        raise _BeyondError
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


class _BeyondError(Exception):
    """An expression has a part that generated code does not cover."""


class _Generator:
    """Writes one function. Expressions are texts of our own (`v3[c1]`), made of templates and integers."""

    def __init__(self) -> None:
        self._source = Source(arguments=1)
        self._locals: list[tuple[str, str]] = []
        self._paths: dict[tuple[str, ...], str] = {}
        self._static_cost = 0
        self._loop_cost = 0
        self._inside_loop = 0
        self._visits = -1
        self._checked: Checked

    def build(self, expressions: Sequence[Checked]) -> PassCheck:
        """Return the function for expressions that must all be true."""
        source = self._source
        errors = source.constant(_FALLBACK)
        self._visits = source.variable()
        source.line(0, "v{} = 0", self._visits)
        source.line(0, "try:")
        for checked in expressions:
            self._checked = checked
            self._require(checked.root, 1)
        source.line(0, "except c{}:", errors)
        source.line(1, "return False")
        left = COST_LIMIT - self._static_cost
        if left < 0:
            raise _BeyondError
        most_visits = source.constant(left // self._loop_cost if self._loop_cost else left)
        source.line(0, "return v{} <= c{}", self._visits, most_visits)
        function: PassCheck = source.build()
        return function

    # writing

    def _line(self, indent: int, text: str) -> None:
        self._source.line(indent, text)

    def _charge(self, cost: int) -> None:
        """Count the most that a node can cost, per run or per visit of a loop."""
        if self._inside_loop:
            self._loop_cost += cost
        else:
            self._static_cost += cost

    def _constant(self, value: Value) -> str:
        return f"c{self._source.constant(value)}"

    def _kept(self, indent: int, text: str) -> str:
        """Store a value in a variable of its own, and return its name."""
        name = f"v{self._source.variable()}"
        self._line(indent, f"{name} = {text}")
        return name

    def _give_up_unless(self, indent: int, condition: str) -> None:
        self._line(indent, f"if not ({condition}):")
        self._line(indent + 1, "return False")

    # truth

    def _require(self, node: ast.Node, indent: int) -> None:
        """Write code that returns False unless a node is true."""
        if isinstance(node, ast.Logical) and node.operator == "_&&_":
            for term in node.terms:
                self._require(term, indent)
            return
        self._give_up_unless(indent, self._truth(node, indent))

    def _truth(self, node: ast.Node, indent: int) -> str:
        """Return an expression that is exactly the node's bool; what is no bool gives up."""
        writer = _TRUTHS.get(type(node))
        if writer is not None:
            return writer(self, node, indent)
        if isinstance(node, ast.Call):
            return self._call_truth(node, indent)
        return self._as_bool(self._value(node, indent), indent)

    def _as_bool(self, value: str, indent: int) -> str:
        name = self._kept(indent, value)
        self._give_up_unless(indent, f"{name} is True or {name} is False")
        return name

    def _literal_truth(self, node: ast.Literal, _indent: int) -> str:
        if not isinstance(node.value, bool):
            raise _BeyondError
        return "True" if node.value else "False"

    def _logical_truth(self, node: ast.Logical, indent: int) -> str:
        result = self._kept(indent, self._truth(node.terms[0], indent))
        condition = f"if {result}:" if node.operator == "_&&_" else f"if not {result}:"
        for term in node.terms[1:]:
            self._line(indent, condition)
            self._line(indent + 1, f"{result} = {self._truth(term, indent + 1)}")
        return result

    def _ternary_truth(self, node: ast.Ternary, indent: int) -> str:
        result = f"v{self._source.variable()}"
        self._line(indent, f"if {self._truth(node.condition, indent)}:")
        self._line(indent + 1, f"{result} = {self._truth(node.truthy, indent + 1)}")
        self._line(indent, "else:")
        self._line(indent + 1, f"{result} = {self._truth(node.falsy, indent + 1)}")
        return result

    def _has_truth(self, node: ast.Has, indent: int) -> str:
        operand = self._kept(indent, self._value(node.operand, indent))
        self._charge(2)
        self._give_up_unless(indent, f"type({operand}) is dict")
        return f"({self._constant(node.field)} in {operand})"

    def _quantifier_truth(self, node: ast.Comprehension, indent: int) -> str:
        if node.condition is None or node.kind not in ("all", "exists", "existsOne"):
            raise _BeyondError
        if node.kind == "existsOne":
            return self._exactly_one(node, node.condition, indent)
        result = self._kept(indent, "True" if node.kind == "all" else "False")
        self._loop(node, indent)
        body = self._truth(node.condition, indent + 1)
        self._line(indent + 1, f"if not {body}:" if node.kind == "all" else f"if {body}:")
        self._line(indent + 2, f"{result} = {'False' if node.kind == 'all' else 'True'}")
        self._line(indent + 2, "break")
        self._end_loop()
        return result

    def _exactly_one(self, node: ast.Comprehension, condition: ast.Node, indent: int) -> str:
        count = self._kept(indent, "0")
        self._loop(node, indent)
        self._line(indent + 1, f"if {self._truth(condition, indent + 1)}:")
        self._line(indent + 2, f"{count} = {count} + 1")
        self._end_loop()
        return f"({count} == 1)"

    def _bind_truth(self, node: ast.Bind, indent: int) -> str:
        self._locals.append((node.name, self._kept(indent, self._value(node.value, indent))))
        self._charge(2)
        result = self._kept(indent, self._truth(node.body, indent))
        self._locals.pop()
        return result

    def _loop(self, node: ast.Comprehension, indent: int) -> str:
        """Write the head of a loop over a list or the keys of a map; the body goes one level deeper."""
        if len(node.variables) != 1:
            raise _BeyondError
        items = self._kept(indent, self._value(node.range, indent))
        self._give_up_unless(indent, f"type({items}) is list or type({items}) is dict")
        visits = f"v{self._visits}"
        self._line(indent, f"{visits} = {visits} + len({items})")
        element = f"v{self._source.variable()}"
        self._line(indent, f"for {element} in {items}:")
        self._inside_loop += 1
        self._charge(16)
        self._locals.append((node.variables[0], element))
        return element

    def _end_loop(self) -> None:
        self._locals.pop()
        self._inside_loop -= 1

    # calls

    def _call_truth(self, node: ast.Call, indent: int) -> str:
        resolution = self._checked.resolutions.get(node.id)
        if resolution is None:
            raise _BeyondError
        name = resolution.function
        if name == "!_":
            self._charge(1)
            return f"(not {self._truth(node.args[0], indent)})"
        if name in ("_==_", "_!=_"):
            equal = self._equality(node.args[0], node.args[1], indent)
            return equal if name == "_==_" else f"(not {equal})"
        if name in _ORDERINGS:
            return self._ordering(_ORDERINGS[name], node, indent)
        if name == "@in":
            return self._membership(node.args[0], node.args[1], indent)
        if node.target is not None and not resolution.drops_target and name in ("startsWith", "endsWith", "contains"):
            return self._text_test(name, node, indent)
        if name == "matches":
            return self._regex_test(node, indent)
        if name == "hasValue":
            return self._presence(node, indent)
        return self._as_bool(self._value(node, indent), indent)

    def _equality(self, left: ast.Node, right: ast.Node, indent: int) -> str:
        if isinstance(left, ast.Literal) and not isinstance(right, ast.Literal):
            left, right = right, left
        if not isinstance(right, ast.Literal):
            return self._text_equality(left, right, indent)
        value = right.value
        self._charge(1 + (len(value) // 10 + 1 if isinstance(value, (str, bytes)) else 0))
        if self._is_bool(left) and isinstance(value, bool):
            truth = self._truth(left, indent)
            return f"({truth})" if value else f"(not {truth})"
        operand = self._value(left, indent)
        if value is None or isinstance(value, bool):
            return f"({operand} is {value})"
        if isinstance(value, str):
            return f"({operand} == {self._constant(value)})"
        if isinstance(value, (int, float)) and abs(value) < _EXACT_INTEGER:
            name = self._kept(indent, operand)
            return f"({name} == {self._constant(value)} and type({name}) is not bool)"
        raise _BeyondError

    def _is_bool(self, node: ast.Node) -> bool:
        """Return whether a node is a test whose value is not read from data."""
        return self._checked.types[node.id].kind == "bool" and not isinstance(node, (ast.Select, ast.Ident, ast.Index))

    def _text_equality(self, left: ast.Node, right: ast.Node, indent: int) -> str:
        one = self._text(left, indent)
        two = self._text(right, indent)
        self._charge(1 + LONGEST_TEXT // 10)
        return f"({one} == {two})"

    def _text(self, node: ast.Node, indent: int) -> str:
        """Return a value that is a text of moderate length; anything else gives up."""
        if isinstance(node, ast.Literal):
            if not isinstance(node.value, str):
                raise _BeyondError
            return self._constant(node.value)
        name = self._kept(indent, self._value(node, indent))
        self._give_up_unless(indent, f"type({name}) is str and len({name}) <= {LONGEST_TEXT}")
        return name

    def _ordering(self, sign: str, node: ast.Call, indent: int) -> str:
        sides = [self._integer(side, indent) for side in node.args]
        self._charge(1)
        return f"({sides[0]} {sign} {sides[1]})"

    def _integer(self, node: ast.Node, indent: int) -> str:
        if isinstance(node, ast.Literal):
            if type(node.value) is not int:
                raise _BeyondError
            return self._constant(node.value)
        value = self._value(node, indent)
        if isinstance(node, ast.Call) and node.function == "size":
            return value
        name = self._kept(indent, value)
        self._give_up_unless(indent, f"type({name}) is int")
        return name

    def _membership(self, item: ast.Node, container: ast.Node, indent: int) -> str:
        if isinstance(container, ast.ListLiteral) and container.elements:
            values = [element.value for element in container.elements if isinstance(element, ast.Literal)]
            if len(values) != len(container.elements) or not all(type(value) is str for value in values):
                raise _BeyondError
            name = self._kept(indent, self._value(item, indent))
            self._charge(12 + len(values))
            return f"(type({name}) is str and {name} in {self._constant(frozenset(values))})"
        wanted = self._text(item, indent)
        among = self._kept(indent, self._value(container, indent))
        self._give_up_unless(
            indent, f"type({among}) is dict or (type({among}) is list and len({among}) <= {LONGEST_TEXT})"
        )
        self._charge(1 + LONGEST_TEXT)
        return f"({wanted} in {among})"

    def _text_test(self, name: str, node: ast.Call, indent: int) -> str:
        if node.target is None:
            raise _BeyondError
        text = self._text(node.target, indent)
        part = self._text(node.args[0], indent)
        self._charge((LONGEST_TEXT // 10 + 1) * (LONGEST_TEXT // 10 + 1 if name == "contains" else 1))
        if name == "contains":
            return f"({part} in {text})"
        return "(" + _TEXT_TESTS[name].format(text, part) + ")"

    def _regex_test(self, node: ast.Call, indent: int) -> str:
        operands = node.args if node.target is None else (node.target, *node.args)
        pattern = operands[1]
        if not isinstance(pattern, ast.Literal) or not isinstance(pattern.value, str):
            raise _BeyondError
        text = self._text(operands[0], indent)
        self._charge((LONGEST_TEXT // 10 + 2) * (len(pattern.value) // 4 + 1))
        return f"{self._constant(compile_pattern(pattern.value).found)}({text})"

    # values

    def _value(self, node: ast.Node, indent: int) -> str:
        """Return an expression for the exact value of a node."""
        reference = self._checked.references.get(node.id)
        if reference is not None:
            self._charge(1)
            if reference.constant is not None:
                raise _BeyondError
            return self._local(reference.name) if reference.local else self._global((reference.name,), indent)
        writer = _VALUES.get(type(node))
        if writer is None:
            raise _BeyondError
        return writer(self, node, indent)

    def _local(self, name: str) -> str:
        return next(variable for known, variable in reversed(self._locals) if known == name)

    def _global(self, path: tuple[str, ...], indent: int) -> str:
        """Return a path from a variable; what the first level of the function has read is read once."""
        known = self._paths.get(path)
        if known is not None:
            return known
        parent = self._global(path[:-1], indent) if len(path) > 1 else "v0"
        text = f"{parent}[{self._constant(path[-1])}]"
        if indent > 1:
            return text
        name = self._paths[path] = self._kept(indent, text)
        return name

    def _select(self, node: ast.Select, indent: int) -> str:
        if node.optional:
            raise _BeyondError
        self._charge(2)
        path = self._path(node)
        if path is not None:
            return self._global(path, indent)
        return f"{self._value(node.operand, indent)}[{self._constant(node.field)}]"

    def _path(self, node: ast.Node) -> tuple[str, ...] | None:
        fields: list[str] = []
        while isinstance(node, ast.Select) and not node.optional and node.id not in self._checked.references:
            fields.append(node.field)
            node = node.operand
        reference = self._checked.references.get(node.id)
        if reference is None or reference.local or reference.constant is not None:
            return None
        return (reference.name, *reversed(fields))

    def _index(self, node: ast.Index, indent: int) -> str:
        if node.optional:
            raise _BeyondError
        self._charge(3)
        operand = self._kept(indent, self._value(node.operand, indent))
        if isinstance(node.index, ast.Literal) and isinstance(node.index.value, str):
            return f"{operand}[{self._constant(node.index.value)}]"
        if isinstance(node.index, ast.Literal) and type(node.index.value) is int and node.index.value >= 0:
            self._give_up_unless(indent, f"type({operand}) is list")
            return f"{operand}[{self._constant(node.index.value)}]"
        key = self._text(node.index, indent)
        self._give_up_unless(indent, f"type({operand}) is dict")
        return f"{operand}[{key}]"

    def _call_value(self, node: ast.Call, indent: int) -> str:
        resolution = self._checked.resolutions.get(node.id)
        name = resolution.function if resolution is not None else ""
        operands = node.args if node.target is None or (resolution and resolution.drops_target) else (
            node.target, *node.args
        )  # fmt: skip
        if name == "size" and len(operands) == 1:
            self._charge(1)
            return f"len({self._value(operands[0], indent)})"
        if name == "_+_" and self._checked.types[node.id].kind in ("list", "dyn"):
            sides = [self._kept(indent, self._value(operand, indent)) for operand in operands]
            self._give_up_unless(indent, " and ".join(f"type({side}) is list" for side in sides))
            self._charge(1)
            return f"({sides[0]} + {sides[1]})"
        if name in ("orValue", "__orValueCompat__"):
            return self._or_value(operands[0], operands[1], indent)
        if name in _TRUTH_CALLS:
            return self._kept(indent, self._call_truth(node, indent))
        if resolution is None or not name[:1].isalpha():
            raise _BeyondError
        function = _library_call(resolution.overloads)
        self._charge(DEAREST_CALL)
        arguments = [self._kept(indent, self._value(operand, indent)) for operand in operands if operand is not None]
        return f"{self._constant(function)}({', '.join(arguments)})"

    def _presence(self, node: ast.Call, indent: int) -> str:
        """Write `a.?b.?c.hasValue()`."""
        if node.target is None:
            raise _BeyondError
        chain, fields = self._optional_part(node.target)
        value = self._kept(indent, self._value(chain, indent))
        result = self._kept(indent, "False")
        self._descend(value, fields, indent, result, "True")
        return result

    def _descend(self, value: str, fields: list[str], indent: int, result: str, found: str) -> None:
        """Write nested tests for a path; where all of it is there, store `found` (the value when empty)."""
        for depth, name in enumerate(fields):
            self._charge(2)
            self._give_up_unless(indent + depth, f"type({value}) is dict")
            key = self._constant(name)
            self._line(indent + depth, f"if {key} in {value}:")
            value = self._kept(indent + depth + 1, f"{value}[{key}]")
        self._line(indent + len(fields), f"{result} = {found or value}")

    def _or_value(self, chain: ast.Node, default: ast.Node, indent: int) -> str:
        """Write `a.?b.?c.orValue(d)`: the path when all of it is there, otherwise the default."""
        if not self._has_optional_part(chain):
            value = self._kept(indent, self._value(chain, indent))
            self._simple_constant(default)
            self._give_up_unless(indent, f"type({value}) is not {self._constant(Optional)}")
            return value
        chain, fields = self._optional_part(chain)
        value = self._kept(indent, self._value(chain, indent))
        # the default is only written when it is cheap and can not fail
        fallback = self._simple_constant(default)
        result = f"v{self._source.variable()}"
        self._line(indent, f"{result} = {fallback}")
        self._descend(value, fields, indent, result, "")
        return result

    def _has_optional_part(self, node: ast.Node) -> bool:
        """Return whether a chain of selections has an optional one; what is not typed as optional need not."""
        while isinstance(node, (ast.Select, ast.Index)):
            if node.optional:
                return True
            node = node.operand
        return False

    def _optional_part(self, node: ast.Node) -> tuple[ast.Node, list[str]]:
        """Split a chain of selections before its first optional one; returns what is before and the fields after."""
        fields: list[str] = []
        last = 0
        before = node
        while isinstance(node, (ast.Select, ast.Index)) and node.id not in self._checked.references:
            if isinstance(node, ast.Select):
                fields.append(node.field)
            elif isinstance(node.index, ast.Literal) and isinstance(node.index.value, str):
                fields.append(node.index.value)
            else:
                break
            if node.optional:
                last, before = len(fields), node.operand
            node = node.operand
        if not last:
            raise _BeyondError
        return before, fields[last - 1 :: -1]

    def _simple_constant(self, node: ast.Node) -> str:
        if isinstance(node, ast.Literal):
            return self._constant(node.value)
        self._charge(30)
        if isinstance(node, ast.ListLiteral) and all(isinstance(item, ast.Literal) for item in node.elements):
            return self._constant([item.value for item in node.elements if isinstance(item, ast.Literal)])
        if isinstance(node, ast.MapLiteral) and not node.entries:
            return self._constant({})
        raise _BeyondError

    def _collected(self, node: ast.Comprehension, indent: int) -> str:
        if node.kind not in ("map", "filter"):
            return self._truth(node, indent)
        result = self._kept(indent, "list()")
        element = self._loop(node, indent)
        inner = indent + 1
        if node.condition is not None:
            self._line(inner, f"if {self._truth(node.condition, inner)}:")
            inner += 1
        made = element if node.body is None else self._value(node.body, inner)
        self._line(inner, f"{result}.append({made})")
        self._end_loop()
        return result

    def _literal(self, node: ast.Literal, _indent: int) -> str:
        return self._constant(node.value)

    def _list_literal(self, node: ast.ListLiteral, indent: int) -> str:
        if node.optionals:
            raise _BeyondError
        self._charge(10)
        items = [self._value(element, indent) for element in node.elements]
        return f"[{', '.join(items)}]"

    def _truth_value(self, node: ast.Node, indent: int) -> str:
        return self._kept(indent, self._truth(node, indent))


_TRUTHS: Final[dict[type, Callable[..., str]]] = {
    ast.Literal: _Generator._literal_truth,
    ast.Logical: _Generator._logical_truth,
    ast.Ternary: _Generator._ternary_truth,
    ast.Has: _Generator._has_truth,
    ast.Comprehension: _Generator._quantifier_truth,
    ast.Bind: _Generator._bind_truth,
}
_VALUES: Final[dict[type, Callable[..., str]]] = {
    ast.Select: _Generator._select,
    ast.Index: _Generator._index,
    ast.Call: _Generator._call_value,
    ast.Comprehension: _Generator._collected,
    ast.Literal: _Generator._literal,
    ast.ListLiteral: _Generator._list_literal,
    ast.Logical: _Generator._truth_value,
    ast.Has: _Generator._truth_value,
}
