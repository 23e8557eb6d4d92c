"""The interface of lints: their input and their findings.

A check yields problems at paths of one document; `run` turns them into diagnostics with code, severity and place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from pyverno.compiler.lints.fields import FieldTable
from pyverno.errors import Location
from pyverno.kube.kinds import KindTable
from pyverno.kube.yaml.documents import Document
from pyverno.kube.yaml.fieldpath import Path, path_text
from pyverno.value import dataclass, field

if TYPE_CHECKING:
    from pyverno.policy.decode import AnyPolicy

__all__ = ["Check", "CheckModule", "Diagnostic", "Edit", "Lint", "Problem", "Severity", "Subject", "Workspace"]


class Severity(StrEnum):
    """The severity of a finding: `error` for parts that cannot work, `warning` for probable mistakes."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Edit:
    """A fix: at a path, and at an offset of its text, `old` becomes `new`; with `key` in the name of the field."""

    path: Path
    old: str
    new: str
    offset: int = 0
    key: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding of a check; `offset` is the character of the text at `path`, `key` points at the field's name."""

    path: Path
    message: str
    offset: int | None = None
    key: bool = False
    edit: Edit | None = None


@dataclass(frozen=True, slots=True)
class Subject:
    """One decoded document."""

    document: Document
    written: AnyPolicy

    @property
    def name(self) -> str:
        """The kind and name that people know the document by.

        `Policy/namespace/name` for a document with a namespace.
        """
        written = self.written
        return "/".join((written.kind, *((written.namespace,) if written.namespace else ()), written.name))


@dataclass(frozen=True, slots=True)
class Workspace:
    """All documents linted together, and the known kinds."""

    subjects: tuple[Subject, ...]
    kinds: KindTable
    fields: Callable[[], FieldTable]
    memo: dict[str, object] = field(default_factory=dict, compare=False)


Check = Callable[[Subject, Workspace], Iterator[Problem]]
"""Yields what is wrong with one document."""


class CheckModule(Protocol):
    """A module of a lint: its docstring is the text of the reference."""

    def check(self, subject: Subject, workspace: Workspace, /) -> Iterator[Problem]:
        """Yield the findings in one document."""


@dataclass(frozen=True, slots=True)
class Lint:
    """A row of the registry; `words` are texts of which a document has one where the lint can find anything.

    With `compares` the lint compares two rules, and has nothing to find where there is one.
    `load` imports the module of the check: its function `check`, and its docstring.
    """

    code: str
    name: str
    severity: Severity
    load: Callable[[], CheckModule]
    words: tuple[str, ...] = ()
    is_fixable: bool = False
    compares: bool = False

    @property
    def check(self) -> Check:
        """The check."""
        return self.load().check

    @property
    def documentation(self) -> str:
        """The text of the reference, the summary in its first line."""
        return (self.load().__doc__ or "").strip()


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding with its place; `subject` is the kind and name of the policy, `edit` its fix if there is one."""

    code: str
    name: str
    severity: Severity
    message: str
    location: Location
    path: Path = ()
    subject: str = ""
    document: Document | None = field(default=None, compare=False, repr=False)
    edit: Edit | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.location}: {self.code} {self.message}"

    def to_json(self) -> Mapping[str, object]:
        """Return the finding as an object; empty parts are left out."""
        where = self.location
        item = {
            "code": self.code,
            "name": self.name,
            "severity": str(self.severity),
            "message": self.message,
            "file": where.file,
            "line": where.line,
            "column": where.column,
            "path": path_text(self.path),
            "policy": self.subject,
            "fixable": self.edit is not None,
        }
        return {key: value for key, value in item.items() if value != ""}
