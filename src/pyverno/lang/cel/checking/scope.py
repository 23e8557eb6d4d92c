"""Names of an environment: variables, constants, type names and functions, looked up through a container.

A name `c` used in container `a.b` means the first of `a.b.c`, `a.c` and `c` that is declared.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyverno.lang.cel.declarations import NO_STRUCTS, Overload, StructProvider
from pyverno.lang.cel.scalars import TypeValue
from pyverno.lang.cel.types import Type, type_of
from pyverno.lang.cel.values import Value
from pyverno.value import dataclass

__all__ = ["Constant", "Names"]


@dataclass(frozen=True, slots=True)
class Constant:
    """A name with a fixed value, such as a type name."""

    type: Type
    value: Value


@dataclass(frozen=True, slots=True)
class Names:
    """Everything that an expression may name."""

    variables: Mapping[str, Type]
    constants: Mapping[str, Constant]
    functions: Mapping[str, tuple[Overload, ...]]
    structs: StructProvider = NO_STRUCTS
    container: str = ""

    def candidates(self, name: str) -> tuple[str, ...]:
        """Return the full names that a name can mean, most specific first."""
        if name.startswith("."):
            return (name[1:],)
        if not self.container:
            return (name,)
        parts = self.container.split(".")
        return (*(f"{'.'.join(parts[:count])}.{name}" for count in range(len(parts), 0, -1)), name)

    def resolve(self, name: str) -> tuple[str, Type, Constant | None] | None:
        """Return (full name, type, constant) of a variable, constant or struct type, or None."""
        for full in self.candidates(name):
            found = self._declare(full)
            if found is not None:
                return found
        return None

    def _declare(self, full: str) -> tuple[str, Type, Constant | None] | None:
        declared = self.variables.get(full)
        if declared is not None:
            return full, declared, None
        constant = self.constants.get(full)
        if constant is not None:
            return full, constant.type, constant
        if self.structs.has_struct(full):
            described = type_of(self.structs.struct_type(full))
            return full, described, Constant(described, TypeValue(full))
        return None

    def function(self, name: str) -> tuple[str, tuple[Overload, ...]] | None:
        """Return (full name, overloads) of a function, or None."""
        for full in self.candidates(name):
            overloads = self.functions.get(full)
            if overloads is not None:
                return full, overloads
        return None
