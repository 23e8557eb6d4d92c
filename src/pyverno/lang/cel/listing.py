"""The functions and macros of an environment, with signatures and documentation.

Everything comes from the declarations.
"""

from __future__ import annotations

from collections.abc import Collection

from pyverno.kube.json import JSONObject
from pyverno.lang.cel import Environment
from pyverno.lang.cel.declarations import Declaration
from pyverno.lang.cel.syntax.macros import STANDARD_MACROS, MacroTable
from pyverno.lang.cel.types import Signature
from pyverno.value import dataclass

__all__ = ["Listed", "listed_functions"]

_EXAMPLE = "CEL: "


@dataclass(frozen=True, slots=True)
class Listed:
    """One function of a library, or a macro (which has the forms of its calls instead of typed signatures)."""

    name: str
    signatures: tuple[str, ...]
    library: str
    note: str = ""
    examples: tuple[str, ...] = ()

    def to_json(self) -> JSONObject:
        """Return a JSON object without empty fields."""
        found: JSONObject = {"name": self.name, "signatures": list(self.signatures), "library": self.library}
        found |= {"note": self.note} if self.note else {}
        return found | ({"examples": list(self.examples)} if self.examples else {})


def listed_functions(environment: Environment, names: Collection[str] = ()) -> tuple[Listed, ...]:
    """Return the functions by name, or those that are named; operators (`_+_`) only where they are named.

    >>> from pyverno.lang.cel import STANDARD
    >>> listed_functions(STANDARD, ["startsWith"])[0].signatures
    ('string.startsWith(string) -> bool',)
    """
    found = [*_macros(STANDARD_MACROS, "standard")]
    for library in environment.libraries:
        found += [_function(declaration, library.name) for declaration in library.declarations]
        found += _macros(library.macros, library.name)
    kept = (each for each in found if (each.name in names if names else not _is_internal(each.name)))
    return tuple(sorted(kept, key=lambda each: (each.name, each.library)))


def _is_internal(name: str) -> bool:
    return name.startswith(("_", "@", "!", "-")) or ".@" in name


def _function(declaration: Declaration, library: str) -> Listed:
    signatures = (_format_signature(declaration.name, overload.signature) for overload in declaration.overloads)
    lines = [line.strip() for line in declaration.doc.strip().splitlines()]
    return Listed(
        declaration.name,
        tuple(dict.fromkeys(signatures)),
        library,
        lines[0] if lines else "",
        tuple(line.removeprefix(_EXAMPLE) for line in lines if line.startswith(_EXAMPLE)),
    )


def _format_signature(name: str, signature: Signature) -> str:
    params = [str(param) for param in signature.params]
    head = f"{params.pop(0)}." if signature.member else ""
    return f"{head}{name}({', '.join(params)}) -> {signature.result}"


def _macros(table: MacroTable, library: str) -> list[Listed]:
    forms: dict[str, list[str]] = {}
    for name, count, is_member in sorted(table):
        arguments = ", ".join(f"arg{number}" for number in range(1, count + 1))
        forms.setdefault(name, []).append(f"{'target.' if is_member else ''}{name}({arguments})")
    return [Listed(name, tuple(calls), library, "a macro") for name, calls in forms.items()]
