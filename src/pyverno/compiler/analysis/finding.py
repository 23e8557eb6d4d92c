"""Reports of the checks of the analysis: a finding, and the objects on which the engine shows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

from pyverno.compiler.lints.lint import Severity
from pyverno.errors import NOWHERE, Location
from pyverno.kube.json import JSONObject
from pyverno.value import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyverno.compiler.analysis.workspace import Workspace

__all__ = ["Check", "CheckModule", "Finding", "Observation", "Witness"]


@dataclass(frozen=True, slots=True)
class Witness:
    """An object that shows a finding.

    `results` are rules and their results for the object, for a CREATE request; `after` are the objects that rules leave
    or make of it, one after the other.
    """

    text: str
    resource: JSONObject
    results: tuple[tuple[str, str], ...] = ()
    after: tuple[JSONObject, ...] = ()

    def to_json(self) -> JSONObject:
        """Return the witness as an object; empty parts are left out."""
        return {
            "shows": self.text,
            "resource": self.resource,
            **({"results": dict(self.results)} if self.results else {}),
            **({"after": list(self.after)} if self.after else {}),
        }


@dataclass(frozen=True, slots=True)
class Observation:
    """One result of a check: a message, the rules that it names, the place of the first one, and witnesses."""

    message: str
    rules: tuple[str, ...]
    witnesses: tuple[Witness, ...]
    location: Location = NOWHERE


@dataclass(frozen=True, slots=True)
class Finding:
    """An observation with the code, name and severity of its check."""

    code: str
    name: str
    severity: Severity
    observation: Observation

    def to_json(self) -> Mapping[str, object]:
        """Return the finding as an object."""
        seen = self.observation
        return {
            "code": self.code,
            "name": self.name,
            "severity": str(self.severity),
            "message": seen.message,
            "file": seen.location.file,
            "line": seen.location.line,
            "rules": list(seen.rules),
            "witnesses": [each.to_json() for each in seen.witnesses],
        }


class CheckModule(Protocol):
    """A module of a check: its docstring is the text of the reference."""

    def check(self, workspace: Workspace, /) -> Iterator[Observation]:
        """Yield what the policies do that they should not."""


@dataclass(frozen=True, slots=True)
class Check:
    """A row of the registry; `load` imports the module of the check."""

    code: str
    name: str
    severity: Severity
    load: Callable[[], CheckModule]

    @property
    def documentation(self) -> str:
        """The text of the reference, the summary in its first line."""
        return (self.load().__doc__ or "").strip()
