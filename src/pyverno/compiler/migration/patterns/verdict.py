"""Verdicts of patterns on values, and the form in which patterns are read."""

from __future__ import annotations

from typing import Final

from pyverno.compiler.migration.text import Cel
from pyverno.value import dataclass

__all__ = ["Context", "Verdict"]

_VARIABLES: Final = {
    "containers": "c",
    "initContainers": "c",
    "ephemeralContainers": "c",
    "volumes": "v",
    "volumeMounts": "m",
    "ports": "p",
    "env": "e",
    "rules": "r",
    "tolerations": "t",
    "subjects": "s",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of a pattern: `ok` unless it fails, `passes` without a skip. `parts` are `ok`, one for each key."""

    ok: Cel
    passes: Cel
    parts: tuple[Cel, ...] = ()

    @property
    def can_skip(self) -> bool:
        """Whether the pattern can skip."""
        return self.ok.text != self.passes.text


@dataclass(frozen=True, slots=True)
class Context:
    """The context of patterns: numbers as floats (anyPattern), types of fields without a schema, used variables."""

    floats: bool = False
    assumes_types: bool = False
    taken: tuple[str, ...] = ()

    def variable(self, name: str) -> tuple[str, Context]:
        """Return a free name for the elements of a list, and the context within."""
        first = _VARIABLES.get(name) or next((each for each in name.lower() if each.isascii() and each.isalpha()), "e")
        free = next(
            each for each in (first, "e", "x", "y", "z", *(f"e{n}" for n in range(99))) if each not in self.taken
        )
        return free, Context(self.floats, self.assumes_types, (*self.taken, free))
