"""The result of the checker for an expression: the type, reference and overload of every node."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyverno.lang.cel.checking.scope import Constant
from pyverno.lang.cel.declarations import Overload
from pyverno.lang.cel.syntax import ast
from pyverno.lang.cel.types import (
    Type,
)
from pyverno.value import dataclass, field

__all__ = ["Checked", "Reference", "Resolution"]


@dataclass(frozen=True, slots=True)
class Reference:
    """The meaning of an identifier: a local variable, a variable of the environment, or a constant."""

    name: str
    local: bool = False
    constant: Constant | None = None


@dataclass(frozen=True, slots=True)
class Resolution:
    """The meaning of a call: the function's full name, the overloads that may apply, and whether the target is gone."""

    function: str
    overloads: tuple[Overload, ...]
    drops_target: bool = False


@dataclass(frozen=True, slots=True)
class Checked:
    """A checked tree: types by node id, references of names, resolutions of calls, full names of struct literals.

    `collections` are the literals of lists and maps, `calls` those of functions that take a text with a syntax of its
    own or format one (see `literal_checks`). `openings` are the ends of names without a known type of which a field is
    selected (see `cel.rebase`).
    """

    root: ast.Node
    types: dict[int, Type]
    references: dict[int, Reference]
    resolutions: dict[int, Resolution]
    struct_names: dict[int, str] = field(default_factory=dict)
    collections: tuple[ast.ListLiteral | ast.MapLiteral, ...] = ()
    calls: tuple[ast.Call, ...] = ()
    openings: frozenset[int] = frozenset()
    _type: Type | None = field(default=None, compare=False, repr=False)
    _make: Callable[[], tuple[ast.Node, dict[int, Type]]] | None = field(default=None, compare=False, repr=False)

    @property
    def type(self) -> Type:
        """The type of the whole expression."""
        return self._type or self.types[self.root.id]

    def later(self, make: Callable[[], tuple[ast.Node, dict[int, Type]]]) -> Checked:
        """Return a copy with other nodes and types, which are made on first use."""
        checked = Checked.__new__(Checked)
        known = {
            "references": self.references,
            "resolutions": self.resolutions,
            "struct_names": self.struct_names,
            "collections": (),
            "calls": (),
            "openings": frozenset(),
            "_type": self.type,
            "_make": make,
        }
        for name, value in known.items():
            object.__setattr__(checked, name, value)
        return checked

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> ast.Node | dict[int, Type]:
            # called only for an empty slot
            if name not in ("root", "types"):
                raise AttributeError(name)
            root, types = self._make()
            object.__setattr__(self, "root", root)
            object.__setattr__(self, "types", types)
            return root if name == "root" else types
