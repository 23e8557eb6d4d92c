"""`cel.bind` and the two-variable loops: libraries of macros alone."""

from __future__ import annotations

from typing import Final

from pyverno.lang.cel.declarations import Library
from pyverno.lang.cel.syntax.macros import BINDINGS_MACROS, TWO_VARIABLE_MACROS

__all__ = ["BINDINGS", "TWO_VARIABLE_COMPREHENSIONS"]

BINDINGS: Final = Library("bindings", macros=BINDINGS_MACROS, doc="`cel.bind(name, value, body)`.")
TWO_VARIABLE_COMPREHENSIONS: Final = Library(
    "two-variable comprehensions",
    macros=TWO_VARIABLE_MACROS,
    introduced="1.32",
    doc="Loops over index and value, or key and value: all, exists, existsOne, transformList, transformMap, ...",
)
