"""Problems of a run: input that could not be read or used, with its place, for all machine-readable formats."""

from __future__ import annotations

from collections.abc import Iterable

from pyverno.errors import NOWHERE, CombinedError, Location, PolicyError, PyvernoError, UsageError
from pyverno.kube.json import JSONObject
from pyverno.value import dataclass

__all__ = ["Problem", "located", "problem_of", "problems_of"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One error of the run itself: its message, its stable code, and its location if known."""

    message: str
    code: str = "error"
    location: Location = NOWHERE

    def to_json(self) -> JSONObject:
        """Return the problem as an object; unknown parts are left out.

        >>> Problem("`a.yaml` does not exist", "usage").to_json()
        {'code': 'usage', 'message': '`a.yaml` does not exist'}
        """
        return {"code": self.code, "message": self.message, **located(self.location)}


def located(location: Location) -> JSONObject:
    """Return file, line and column of a location, nothing for an unknown one."""
    if not location.file:
        return {}
    if not location.line:
        return {"file": location.file}
    return {"file": location.file, "line": location.line, "column": location.column}


def problem_of(error: PyvernoError) -> Problem:
    """Return the problem described by an error; a hint is the last line of its message."""
    message = f"{error.path}: {error.message}" if error.path else error.message
    if isinstance(error, PolicyError) and error.hint:
        message = f"{message}\nhint: {error.hint}"
    file = error.file if isinstance(error, UsageError) else ""
    return Problem(message, error.code, error.location or (Location(file) if file else NOWHERE))


def problems_of(errors: Iterable[PyvernoError]) -> list[Problem]:
    """Return the problems of errors; a group of errors becomes one problem for each."""
    parts = (part for error in errors for part in (error.parts if isinstance(error, CombinedError) else (error,)))
    return [problem_of(part) for part in parts]
