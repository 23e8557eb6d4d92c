"""Collects what is wrong with a policy: errors with code, place and text, and warnings.

This module must not know any check.
"""

from __future__ import annotations

from collections.abc import Callable

from pyverno.errors import PolicyError
from pyverno.kube.yaml.fieldpath import Path, Place, Source, locate, path_text
from pyverno.value import dataclass, field

__all__ = ["Findings", "Problems"]

_MOST_PLACES = 20
"""How many errors of a document have exact places that must be looked for."""


@dataclass(frozen=True, slots=True)
class Problems:
    """Everything that validation found; a policy without errors is valid."""

    errors: tuple[PolicyError, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(slots=True)
class Findings:
    """Collects errors and warnings of one document; the same finding counts once."""

    source: Source
    errors: dict[tuple[str, str], PolicyError] = field(default_factory=dict)
    warnings: dict[str, None] = field(default_factory=dict)
    codes: set[str] = field(default_factory=set)

    def error(
        self, code: str, path: Path, message: str, *, at: Place | Callable[[], Place | None] | None = None
    ) -> None:
        """Record an error; rules made by autogen have the path of their origin, so their errors fall together.

        `at` is the exact place of what is at the path, where it is known, or finds it: for a new error, and while
        there are few.
        """
        where = path_text(path)
        if (where, message) in self.errors:
            return
        if callable(at):
            at = at() if len(self.errors) < _MOST_PLACES else None
        self.codes.add(code)
        location = locate(self.source, path) if at is None else at.location(self.source)
        self.errors[where, message] = PolicyError(message, location=location, path=where, code=code)

    def warn(self, message: str) -> None:
        """Record a warning."""
        self.warnings.setdefault(message, None)

    def problems(self) -> Problems:
        """Return what was found, in the order of the document."""
        ordered = sorted(self.errors.values(), key=lambda each: (each.location is None, each.location or 0))
        return Problems(tuple(ordered), tuple(self.warnings))
