"""Declarations: functions with their overloads, libraries, and the declarations of struct types in a schema.

A library function is a plain Python function with a `@function(...)` declaration: its CEL name, its signatures, its
work and cost, and the version of its library that brought it. The docstring is its documentation, with an example line
`CEL: expression ⇒ value` that the tests run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol, TypeAlias

from pyverno.lang.cel.syntax.macros import MacroTable
from pyverno.lang.cel.types import Signature, Type, parse_signature, struct
from pyverno.lang.cel.values import StructValue, Value
from pyverno.lang.cel.work import Work
from pyverno.value import dataclass, field

__all__ = [
    "NO_STRUCTS",
    "CallCost",
    "Declaration",
    "Implementation",
    "Library",
    "Overload",
    "StructProvider",
    "function",
    "merge_functions",
]

Implementation: TypeAlias = Callable[..., Value]
CallCost: TypeAlias = Callable[[tuple[Value, ...], Value], int]
Version: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature of a function, with what runs it.

    `work` computes the steps of a call, which are charged before it (see `work`); every overload has one.
    `cost` gives the cost of a call as cel-go counts it, from arguments and result (None = 1); with `resolved_only` it
    counts only where the checker found this overload alone (cel-go charges built-in overloads by id). `in_context`
    functions get the `Evaluation` as first argument; `metered` ones use no more of it than the budget. `pattern` is
    the position of the parameter that is a regular expression: what the expression writes there is compiled with it.
    """

    signature: Signature
    apply: Implementation
    work: Work
    cost: CallCost | None = None
    resolved_only: bool = False
    in_context: bool = False
    metered: bool = False
    pattern: int = -1


@dataclass(frozen=True, slots=True)
class Declaration:
    """A function of a library: its CEL name, overloads, documentation and the library version that brought it."""

    name: str
    overloads: tuple[Overload, ...]
    doc: str
    since: Version = (0,)
    until: Version | None = None

    def __call__(self, *args: Value) -> Value:
        """Call the implementation of the first overload; for tests and other libraries."""
        return self.overloads[0].apply(*args)


def function(
    name: str,
    *signatures: str,
    work: Work,
    cost: CallCost | None = None,
    resolved_only: bool = False,
    in_context: bool = False,
    metered: bool = False,
    pattern: int = -1,
    since: Version = (0,),
    until: Version | None = None,
) -> Callable[[Implementation], Declaration]:
    """Declare a Python function as a CEL function.

    `signatures` are texts such as `string.(int) -> string`; all share the implementation. `work` tells what a call
    takes at most, whatever its operands.

    >>> from pyverno.lang.cel.work import instant
    >>> @function("twice", "(int) -> int", work=instant)
    ... def twice(value: int) -> int:
    ...     '''Double a number.'''
    ...     return 2 * value
    >>> str(twice.overloads[0].signature)
    '(int) -> int'
    """

    def declare(implementation: Implementation) -> Declaration:
        overloads = tuple(
            Overload(
                parse_signature(text),
                implementation,
                work,
                cost,
                resolved_only,
                in_context or metered,
                metered,
                pattern,
            )
            for text in signatures
        )
        return Declaration(name, overloads, implementation.__doc__ or "", since, until)

    return declare


@dataclass(frozen=True, slots=True)
class Library:
    """A named set of functions, macros, types, variables and constants.

    `introduced` is the Kubernetes version (or Kyverno version, for Kyverno's libraries) whose environments have it.
    `types` are the opaque types it brings, `variables` names it declares and binds (`resource`, `http`), `versions`
    what `at` may choose.
    """

    name: str
    declarations: tuple[Declaration, ...] = ()
    macros: MacroTable = field(default_factory=dict)
    types: tuple[Type, ...] = ()
    variables: Mapping[str, Type] = field(default_factory=dict)
    globals: Mapping[str, Value] = field(default_factory=dict)
    introduced: str = ""
    doc: str = ""

    def at(self, *version: int) -> Library:
        """Return the library as it was in one of its versions."""
        kept = tuple(
            declaration
            for declaration in self.declarations
            if declaration.since <= version and (declaration.until is None or version < declaration.until)
        )
        return Library(
            self.name, kept, self.macros, self.types, self.variables, self.globals, self.introduced, self.doc
        )


class StructProvider(Protocol):
    """The struct types of a schema; the checker looks up fields in it, the evaluator constructs values."""

    def has_struct(self, name: str) -> bool:
        """Return whether a struct type of that name is declared."""
        ...

    def struct_type(self, name: str) -> Type:
        """Return the type that a literal `name{...}` has."""
        ...

    def field_type(self, name: str, field_name: str) -> Type | None:
        """Return the type of a field, or None when the struct has no such field."""
        ...

    def construct(self, name: str, fields: dict[str, Value]) -> Value:
        """Return the value of a literal; raises EvaluationError when fields do not fit."""
        ...


class _NoStructs:
    def has_struct(self, name: str) -> bool:
        return False

    def struct_type(self, name: str) -> Type:
        return struct(name)

    def field_type(self, name: str, field_name: str) -> Type | None:
        return None

    def construct(self, name: str, fields: dict[str, Value]) -> Value:
        return StructValue(name, fields)


NO_STRUCTS: Final[StructProvider] = _NoStructs()


def merge_functions(libraries: tuple[Library, ...]) -> dict[str, tuple[Overload, ...]]:
    """Return every function of some libraries by name; overloads of one name follow the order of the libraries."""
    merged: dict[str, list[Overload]] = {}
    for library in libraries:
        for declaration in library.declarations:
            known = merged.setdefault(declaration.name, [])
            known.extend(overload for overload in declaration.overloads if overload not in known)
    return {name: tuple(overloads) for name, overloads in merged.items()}
