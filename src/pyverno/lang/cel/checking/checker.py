"""The type checker: gives every node a type, every name its declaration and every call its overloads.

It is cel-go's checker (checker/checker.go): overload resolution with type variables, one pass, all problems collected.
In lenient mode nothing is a problem: what does not resolve is dyn and fails at run time, as expressions that were never
checked do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyverno.lang.cel.checking.checked import Checked, Reference, Resolution
from pyverno.lang.cel.checking.literals import LITERAL_FUNCTIONS
from pyverno.lang.cel.checking.scope import Names
from pyverno.lang.cel.checking.unification import Substitution, is_dyn, may_fit, most_general, unwrap_optional
from pyverno.lang.cel.declarations import Overload
from pyverno.lang.cel.syntax import ast
from pyverno.lang.cel.syntax.macros import STANDARD_MACROS
from pyverno.lang.cel.syntax.source import CompileError, Issue, Source
from pyverno.lang.cel.types import (
    BOOL,
    DYN,
    ERROR,
    INT,
    Type,
    list_of,
    map_of,
    optional_of,
)
from pyverno.lang.cel.values import type_name

__all__ = ["check"]


def check(root: ast.Node, names: Names, source: Source, *, lenient: bool = False) -> Checked:
    """Check a tree against the declarations of an environment.

    Raises CompileError with every problem found.
    """
    checker = _Checker(names, lenient=lenient)
    try:
        checker.visit(root)
        if checker.issues:
            raise CompileError(tuple(checker.issues), source)
        return checker.result(root)
    except RecursionError:
        raise CompileError((Issue(0, "expression recursion limit exceeded"),), source) from None


class _Checker:
    def __init__(self, names: Names, *, lenient: bool) -> None:
        self._names = names
        self._lenient = lenient
        self._known = Substitution()
        self._locals: list[tuple[str, Type]] = []
        self._types: dict[int, Type] = {}
        self._references: dict[int, Reference] = {}
        self._resolutions: dict[int, Resolution] = {}
        self._struct_names: dict[int, str] = {}
        self._collections: list[ast.ListLiteral | ast.MapLiteral] = []
        self._calls: list[ast.Call] = []
        self._openings: list[int] = []
        self.issues: list[Issue] = []

    def result(self, root: ast.Node) -> Checked:
        resolve = self._known.resolve
        types = {
            id_: resolve(type_, to_dyn=True) if type_.params or type_.kind == "param" else type_
            for id_, type_ in self._types.items()
        }
        return Checked(
            root,
            types,
            self._references,
            self._resolutions,
            self._struct_names,
            tuple(self._collections),
            tuple(self._calls),
            frozenset(self._openings),
        )

    def _report(self, node: ast.Node, message: str, unknown: str = "", known: tuple[str, ...] = ()) -> Type:
        if self._lenient:
            return DYN
        self.issues.append(Issue(node.offset, message, unknown, known))
        return ERROR

    def _undeclared(self, node: ast.Node, name: str) -> Type:
        names = self._names
        if type(node) is ast.Call:
            functions = (each for each in names.functions if each.rpartition(".")[2].isidentifier())
            known = (*functions, *(macro for macro, _, _ in STANDARD_MACROS))
        else:
            known = (*(local for local, _ in self._locals), *names.variables)
        message = f"undeclared reference to '{name}' (in container '{names.container}')"
        return self._report(node, message, name, known)

    def visit(self, node: ast.Node) -> Type:
        """Return the type of a node, after checking everything below it."""
        known = self._types.get(node.id)
        if known is not None:
            return known
        kind = type(node)
        # of calls that begin with calls the inner ones come first, so that long sums need no deep recursion
        if isinstance(node, ast.Call) and node.target is None and node.args and type(node.args[0]) is ast.Call:
            for inner in ast.left_calls(node)[:-1]:
                self._types[inner.id] = self._call(inner)
        type_ = self._types[node.id] = _VISITORS[kind](self, node)
        return type_

    # names

    def _literal(self, node: ast.Literal) -> Type:
        return _LITERAL_TYPES[type_name(node.value)]

    def _ident(self, node: ast.Ident) -> Type:
        local = self._local(node.name)
        if local is not None:
            self._references[node.id] = Reference(node.name, local=True)
            return local
        found = self._names.resolve(node.name)
        if found is None:
            return self._undeclared(node, node.name.removeprefix("."))
        name, type_, constant = found
        self._references[node.id] = Reference(name, constant=constant)
        return type_

    def _local(self, name: str) -> Type | None:
        for known, type_ in reversed(self._locals):
            if known == name:
                return type_
        return None

    def _select(self, node: ast.Select) -> Type:
        qualified = None if node.optional else self._qualified(node)
        found = self._names.resolve(qualified) if qualified is not None else None
        if found is not None:
            name, type_, constant = found
            self._references[node.id] = Reference(name, constant=constant)
            return type_
        return self._known.resolve(self._field(node, node.operand, node.field, optional=node.optional))

    def _qualified(self, node: ast.Node) -> str | None:
        """Return `a.b.c` for a chain of selections from a name that is not a local variable."""
        parts: list[str] = []
        while isinstance(node, ast.Select) and not node.optional:
            parts.append(node.field)
            node = node.operand
        if not isinstance(node, ast.Ident) or self._local(node.name) is not None:
            return None
        return ".".join([node.name, *reversed(parts)])

    def _has(self, node: ast.Has) -> Type:
        self._field(node, node.operand, node.field, optional=False)
        return BOOL

    def _field(self, node: ast.Node, operand: ast.Node, name: str, *, optional: bool) -> Type:
        operand_type = self._known.resolve(self.visit(operand))
        if operand_type.kind == "dyn":
            if not optional and type(operand) is ast.Ident:
                reference = self._references.get(operand.id)
                if reference is not None and not reference.local:
                    self._openings.append(operand.offset + len(operand.name))
            return optional_of(DYN) if optional else DYN
        target, was_optional = unwrap_optional(operand_type)
        result = self._field_of(node, target, name)
        return optional_of(result) if was_optional or optional else result

    def _field_of(self, node: ast.Node, target: Type, name: str) -> Type:
        if target.kind == "map":
            return target.params[1]
        if target.kind == "struct":
            found = self._names.structs.field_type(target.name, name)
            return found if found is not None else self._report(node, f"undefined field '{name}'", name)
        if target.kind == "param":
            self._known.assign(DYN, target)
            return DYN
        if not is_dyn(target) and target.kind != "error":
            self._report(node, f"type '{target}' does not support field selection")
        return DYN

    # calls

    def _call(self, node: ast.Call) -> Type:
        if node.function in _TEXT_FUNCTIONS:
            self._calls.append(node)
        args = tuple([self.visit(arg) for arg in node.args])
        if node.target is None:
            found = self._names.function(node.function)
            if found is None:
                return self._undeclared(node, node.function.removeprefix("."))
            return self._resolve(node, found[0], found[1], None, args, operands=node.args)
        qualified = self._qualified(node.target) if isinstance(node.target, (ast.Ident, ast.Select)) else None
        found = self._names.function(f"{qualified}.{node.function}") if qualified is not None else None
        if found is not None:
            return self._resolve(node, found[0], found[1], None, args, operands=node.args, drops_target=True)
        target = self.visit(node.target)
        found = self._names.function(node.function)
        if found is None:
            return self._undeclared(node, node.function)
        return self._resolve(node, found[0], found[1], target, args, operands=(node.target, *node.args))

    def _index(self, node: ast.Index) -> Type:
        name = "_[?_]" if node.optional else "_[_]"
        args = (self.visit(node.operand), self.visit(node.index))
        found = self._names.function(name)
        if found is None:
            return self._undeclared(node, name)
        return self._resolve(node, name, found[1], None, args, operands=(node.operand, node.index))

    def _resolve(
        self,
        node: ast.Node,
        function: str,
        overloads: tuple[Overload, ...],
        target: Type | None,
        args: tuple[Type, ...],
        *,
        operands: tuple[ast.Node, ...],
        drops_target: bool = False,
    ) -> Type:
        """Find the overloads that take the arguments, and the type that they agree on."""
        given = args if target is None else (target, *args)
        is_member, kinds = target is not None, [type_.kind for type_ in given]
        count = len(kinds)
        fitting: list[Overload] = []
        result: Type | None = None
        for overload in overloads:
            signature = overload.signature
            if signature.member is not is_member or len(signature.kinds) != count:
                continue
            if self._lenient:
                fitting.append(overload)
                result = DYN
                continue
            if not may_fit(kinds, signature.kinds):
                continue
            if signature.is_generic:
                own, *wanted = self._known.instantiate((signature.result, *signature.params))
                if not self._known.assign_all(given, wanted):
                    continue
                own = self._known.resolve(own)
            elif self._known.assign_all(given, signature.params):
                own = signature.result
            else:
                continue
            fitting.append(overload)
            if result is None:
                result = own
            elif own is not result and not is_dyn(result) and own != result:
                result = DYN
        if result is None:
            shown = [self._known.resolve(type_, to_dyn=True) for type_ in given]
            prefix = f"{shown.pop(0)}." if target is not None else ""
            signature_text = f"{prefix}({', '.join(map(str, shown))})"
            return self._report(node, f"found no matching overload for '{function}' applied to '{signature_text}'")
        self._resolutions[node.id] = Resolution(function, tuple(fitting), drops_target)
        return result

    def _logical(self, node: ast.Logical) -> Type:
        for term in node.terms:
            type_ = self.visit(term)
            if not self._known.assign(type_, BOOL):
                self._mismatch(term, BOOL, type_)
        return BOOL

    def _ternary(self, node: ast.Ternary) -> Type:
        args = (self.visit(node.condition), self.visit(node.truthy), self.visit(node.falsy))
        return self._conditional(node, args)

    def _conditional(self, node: ast.Node, args: tuple[Type, ...]) -> Type:
        variable = self._known.fresh()
        if self._known.assign_all(args, (BOOL, variable, variable)):
            return self._known.resolve(variable)
        shown = ", ".join(str(self._known.resolve(type_, to_dyn=True)) for type_ in args)
        return self._report(node, f"found no matching overload for '_?_:_' applied to '({shown})'")

    def _mismatch(self, node: ast.Node, expected: Type, found: Type) -> Type:
        expected, found = self._known.resolve(expected), self._known.resolve(found)
        return self._report(node, f"expected type '{expected}' but found '{found}'")

    # literals with parts

    def _list(self, node: ast.ListLiteral) -> Type:
        self._collections.append(node)
        element: Type | None = None
        for index, item in enumerate(node.elements):
            type_ = self.visit(item)
            if index in node.optionals:
                type_ = self._inside_optional(item, type_)
            element = self._join(element, type_)
        return list_of(element if element is not None else self._known.fresh())

    def _inside_optional(self, node: ast.Node, type_: Type) -> Type:
        inner, was_optional = unwrap_optional(self._known.resolve(type_))
        if not was_optional and not is_dyn(inner):
            self._mismatch(node, optional_of(inner), inner)
        return inner

    def _join(self, previous: Type | None, current: Type) -> Type:
        if previous is None:
            return current
        if self._known.assign(previous, current):
            return most_general(previous, current)
        return DYN

    def _map(self, node: ast.MapLiteral) -> Type:
        self._collections.append(node)
        key: Type | None = None
        value: Type | None = None
        for entry in node.entries:
            key = self._join(key, self.visit(entry.key))
            type_ = self.visit(entry.value)
            if entry.optional:
                type_ = self._inside_optional(entry.value, type_)
            value = self._join(value, type_)
        if key is None or value is None:
            return map_of(self._known.fresh(), self._known.fresh())
        return map_of(key, value)

    def _struct(self, node: ast.StructLiteral) -> Type:
        found = self._names.resolve(node.type_name)
        structs = self._names.structs
        if found is None:
            for member in node.fields:
                self.visit(member.value)
            return self._undeclared(node, node.type_name.removeprefix("."))
        name, type_, _ = found
        if type_.kind != "type":
            return self._report(node, f"'{type_}' is not a type")
        if not structs.has_struct(name):
            return self._report(node, f"'{type_.params[0]}' is not a message type")
        self._struct_names[node.id] = name
        for member in node.fields:
            given = self.visit(member.value)
            wanted = structs.field_type(name, member.name)
            if wanted is None:
                wanted = self._report(member, f"undefined field '{member.name}'")
            if member.optional:
                given = self._inside_optional(member.value, given)
            if not self._known.assign(wanted, given):
                given = self._known.resolve(given, to_dyn=True)
                self._report(
                    member,
                    f"expected type of field '{member.name}' is '{wanted}' but provided type is '{given}'",
                )
        return structs.struct_type(name)

    # macros

    def _comprehension(self, node: ast.Comprehension) -> Type:
        range_type = self._known.resolve(self.visit(node.range))
        before = len(self._locals)
        self._locals += zip(node.variables, self._loop_types(node, range_type), strict=True)
        condition = self.visit(node.condition) if node.condition is not None else None
        body = self.visit(node.body) if node.body is not None else None
        del self._locals[before:]
        if node.kind in ("all", "exists") and condition is not None and node.condition is not None:
            if not self._known.assign(condition, BOOL):
                self._mismatch(node.condition, BOOL, condition)
            return BOOL
        if node.kind == "existsOne" and condition is not None:
            return BOOL if self._conditional(node, (condition, INT, INT)) is not ERROR else ERROR
        element = self._element(node, range_type, body)
        if condition is not None:
            element = self._conditional(node, (condition, element, element))
        return self._known.resolve(element)

    def _element(self, node: ast.Comprehension, range_type: Type, body: Type | None) -> Type:
        """Return the type of what a transforming macro collects into."""
        if body is None:
            return list_of(self._loop_types(node, range_type)[0])
        if node.kind in ("map", "transformList"):
            return list_of(body)
        if node.kind == "transformMap":
            return map_of(self._loop_types(node, range_type)[0], body)
        # transformMapEntry: the body is a map with one entry
        key, value = self._known.fresh(), self._known.fresh()
        if not self._known.assign(body, map_of(key, value)):
            shown = self._known.resolve(body, to_dyn=True)
            return self._report(
                node, f"found no matching overload for 'cel.@mapInsert' applied to '(map(dyn, dyn), {shown})'"
            )
        return self._known.resolve(map_of(key, value))

    def _loop_types(self, node: ast.Comprehension, range_type: Type) -> tuple[Type, ...]:
        two = len(node.variables) == 2
        if range_type.kind == "list":
            return (INT, range_type.params[0]) if two else (range_type.params[0],)
        if range_type.kind == "map":
            return range_type.params if two else (range_type.params[0],)
        if range_type.kind in ("dyn", "any", "error", "param"):
            self._known.assign(DYN, range_type)
            return (DYN, DYN) if two else (DYN,)
        type_ = self._report(
            node.range,
            f"expression of type '{range_type}' cannot be range of a comprehension (must be list, map, or dynamic)",
        )
        return (type_, type_) if two else (type_,)

    def _bind(self, node: ast.Bind) -> Type:
        self._locals.append((node.name, self.visit(node.value)))
        body = self.visit(node.body)
        self._locals.pop()
        return body

    def _optional_map(self, node: ast.OptionalMap) -> Type:
        target = self._known.resolve(self.visit(node.target))
        inner, was_optional = unwrap_optional(target)
        if not was_optional and not is_dyn(target) and target.kind not in ("error", "param"):
            self._report(node, f"found no matching overload for 'hasValue' applied to '{target}.()'")
        if target.kind == "param":
            inner = DYN
        self._locals.append((node.name, inner))
        body = self.visit(node.body)
        self._locals.pop()
        if not node.flat:
            return optional_of(body)
        return self._conditional(node, (BOOL, body, optional_of(self._known.fresh())))


_TEXT_FUNCTIONS: Final = LITERAL_FUNCTIONS | {"format"}
_LITERAL_TYPES: Final = {
    "null_type": Type("null"),
    "bool": BOOL,
    "int": INT,
    "uint": Type("uint"),
    "double": Type("double"),
    "string": Type("string"),
    "bytes": Type("bytes"),
}
_VISITORS: Final[dict[type[ast.Node], Callable[..., Type]]] = {
    ast.Literal: _Checker._literal,
    ast.Ident: _Checker._ident,
    ast.Select: _Checker._select,
    ast.Has: _Checker._has,
    ast.Index: _Checker._index,
    ast.Call: _Checker._call,
    ast.Logical: _Checker._logical,
    ast.Ternary: _Checker._ternary,
    ast.ListLiteral: _Checker._list,
    ast.MapLiteral: _Checker._map,
    ast.StructLiteral: _Checker._struct,
    ast.Comprehension: _Checker._comprehension,
    ast.Bind: _Checker._bind,
    ast.OptionalMap: _Checker._optional_map,
}
