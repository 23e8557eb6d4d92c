"""Outcome of a match (pass, fail at a path, skip, or error) and the problem that caused it.

Problems are cheap to make and render their text only when it is read, because most of them are dropped (list elements
that do not apply, candidates of an existence anchor).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, StrEnum
from typing import NamedTuple, TypeAlias

from pyverno.errors import ExpressionError
from pyverno.kube.json import JSON
from pyverno.value import dataclass, field

__all__ = ["Cause", "Outcome", "Path", "Problem", "Status", "go_type", "path_text"]

Path: TypeAlias = "tuple[Path, str | int] | tuple[()]"
"""The position of a check in the resource: a linked list from the element back to the root, `()`."""


class Status(StrEnum):
    """The verdict of one pattern on one resource."""

    PASS = "pass"  # noqa: S105  # a verdict, not a password
    FAIL = "fail"
    SKIP = "skip"
    ERROR = "error"


class Cause(Enum):
    """The kind of a mismatch, which decides the outcome of the surrounding map or list."""

    MISMATCH = "mismatch"
    NEGATION = "negation"
    CONDITION = "condition"
    """A condition or global anchor did not hold; it skips the map that it stands in."""
    ALL_SKIPPED = "all skipped"
    """A map or list of which nothing applied; its parent skips only when nothing else applied there."""


class Problem(NamedTuple):
    """One reason not to pass; `path` is None where the upstream engine knows none.

    `is_skip` means "does not apply" rather than "violated". Kyverno finds this out by the type of an error or by a
    phrase in its text, and that text may quote the resource. Here only the cause counts, so that no value of a resource
    can turn a violation into a skip.
    """

    cause: Cause
    path: Path | None
    describe: Callable[[], str]
    is_skip: bool = False

    @classmethod
    def skip(cls, cause: Cause, path: Path | None, describe: Callable[[], str]) -> Problem:
        """Make a problem that means "does not apply"."""
        return cls(cause, path, describe, True)  # the only place that decides this


@dataclass(frozen=True, slots=True)
class Outcome:
    """The verdict of one pattern: `path` only with FAIL, `message` always but with PASS.

    Paths are slash separated, begin and end with a slash and contain list indexes: `/spec/containers/0/image/`.

    >>> Outcome(Status.PASS).message
    ''
    """

    status: Status
    path: str = ""
    problem: Problem | None = field(default=None, compare=False, repr=False)

    @property
    def message(self) -> str:
        """The fault, or the reason why the pattern does not apply; raises ExpressionError for too deep nesting."""
        try:
            return self.problem.describe() if self.problem is not None else ""
        except RecursionError:
            raise ExpressionError("the pattern is nested too deeply") from None


def path_text(path: Path) -> str:
    """Render a path.

    >>> path_text((((), "spec"), 0))
    '/spec/0/'
    """
    text = "/"
    while path:
        path, part = path
        text = f"/{part}{text}"
    return text


def go_type(value: JSON) -> str:
    """Name the type of a value as Go's %T does.

    >>> go_type({}), go_type(None), go_type(1)
    ('map[string]interface {}', '<nil>', 'int64')
    """
    if value is None:
        return "<nil>"
    for python_type, name in _GO_TYPES:
        if isinstance(value, python_type):
            return name
    return type(value).__name__


_GO_TYPES: tuple[tuple[type, str], ...] = (
    (dict, "map[string]interface {}"),
    (list, "[]interface {}"),
    (str, "string"),
    (bool, "bool"),
    (int, "int64"),
    (float, "float64"),
)
