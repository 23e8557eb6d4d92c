"""The exceptions of pyverno, and source locations in files.

PyvernoError
├── DocumentError             YAML or JSON that cannot be read, or exceeds a limit
├── PolicyError               a policy document that is not valid (decode or compile)
├── UsageError                flags, paths or input files that do not fit together (command line, library calls)
│   └── CombinedError             several independent errors of the input, each with its own place
├── ValueSyntaxError          a quantity, duration, version range, cron line, selector or time that does not parse
├── PatchError                a JSON patch, merge patch or strategic merge that cannot be applied
├── ExpressionError           an expression in a policy
│   ├── ExpressionSyntaxError     does not parse (carries the offset)
│   ├── EvaluationError           fails at run time
│   │   ├── UnknownKeyError           JMESPath: a map has no such key
│   │   └── NullArgumentError         JMESPath: a function received null and takes none
│   ├── ContextEntryError         a variable of the scope cannot be computed; no expression that reads it absorbs this
│   └── SubstitutionError         a variable or reference in a template cannot be resolved
├── HostError                 a cluster, service or registry answered with an error
│   ├── NotFoundError             an object does not exist
│   ├── HostUnavailableError      nothing answers this kind of question here
│   └── QuarantinedError          a rule changed one object too often (`controllers/writeguard.py`)
├── VerificationError         a signature, attestation, certificate or log entry that does not hold
├── StatusError               an API server refused a request (`kube/status.py`)
└── BudgetExceededError       a review used up its time, steps, bytes or calls

The fields of an error hold what happened; its text is for people. Programs match on `code`, which is stable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pyverno.value import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

__all__ = [
    "NOWHERE",
    "BudgetExceededError",
    "CombinedError",
    "ContextEntryError",
    "DocumentError",
    "EvaluationError",
    "ExpressionError",
    "ExpressionSyntaxError",
    "HostError",
    "HostUnavailableError",
    "Location",
    "NotFoundError",
    "NullArgumentError",
    "PatchError",
    "PolicyError",
    "PyvernoError",
    "SubstitutionError",
    "UnknownKeyError",
    "UsageError",
    "ValueSyntaxError",
    "VerificationError",
    "raise_all",
]


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A place in a source: file name (or `-`), line and column counted from 1 (0 = unknown).

    >>> str(Location("policy.yaml", 14, 9))
    'policy.yaml:14:9'
    """

    file: str = ""
    line: int = 0
    column: int = 0
    _find: Callable[[], tuple[int, int]] | None = field(default=None, compare=False, repr=False)

    @classmethod
    def later(cls, file: str, find: Callable[[], tuple[int, int]]) -> Location:
        """Return a location whose line and column are computed at their first use.

        >>> Location.later("policy.yaml", lambda: (14, 9))
        Location(file='policy.yaml', line=14, column=9)
        """
        place = cls.__new__(cls)
        object.__setattr__(place, "file", file)
        object.__setattr__(place, "_find", find)
        return place

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> int:
            # Python calls this only for an empty slot
            if name not in ("line", "column") or self._find is None:
                raise AttributeError(name)
            line, column = self._find()
            for known, value in (("line", line), ("column", column), ("_find", None)):
                object.__setattr__(self, known, value)
            return line if name == "line" else column

    def __str__(self) -> str:
        if not self.line:
            return self.file
        return f"{self.file}:{self.line}:{self.column}"


NOWHERE = Location()
"""The location of what was not read from a file."""


class PyvernoError(Exception):
    """Root of all errors raised on purpose by this package.

    `message` is the text without its location; `location` is where the input is at fault, when known; `path` is
    the field path inside the document (`spec.rules[0].match`), when known.
    """

    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, location: Location | None = None, path: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.location = location
        self.path = path

    def __str__(self) -> str:
        where = str(self.location) if self.location else ""
        parts = [part for part in (where, self.path, self.message) if part]
        return ": ".join(parts)

    def copied(self) -> Self:
        """Return an equal error without traceback and cause, to keep or to raise where this one is kept.

        >>> HostUnavailableError("no registry").copied()
        HostUnavailableError('no registry')
        """
        twin = type(self).__new__(type(self), *self.args)
        twin.args = self.args
        twin.__dict__.update(self.__dict__)
        return twin


class DocumentError(PyvernoError):
    """A YAML or JSON source that cannot be read or that exceeds a limit (depth, size, aliases, duplicate keys)."""

    code = "document"


class PolicyError(PyvernoError):
    """A policy document that is not valid; one instance per problem, see `code`, `location` and `path`.

    `hint` is a line of advice that is no part of the message, for example the name that was probably meant.
    """

    code = "policy"

    def __init__(
        self,
        message: str,
        *,
        location: Location | None = None,
        path: str = "",
        code: str = "policy",
        hint: str = "",
    ) -> None:
        super().__init__(message, location=location, path=path)
        self.code = code  # type: ignore[misc]  # each check has its own stable code
        self.hint = hint


class UsageError(PyvernoError):
    """Flags, paths or input files that do not fit together; the command line exits with 1.

    `file` is the file that the message names, for formats with places.
    """

    code = "usage"

    def __init__(self, message: str, *, location: Location | None = None, path: str = "", file: str = "") -> None:
        super().__init__(message, location=location, path=path)
        self.file = file


class CombinedError(UsageError):
    """Several independent errors of the input; each part has its own place.

    >>> print(CombinedError([UsageError("`a.yaml` does not exist"), UsageError("`b.yaml` does not exist")]))
    `a.yaml` does not exist
    `b.yaml` does not exist
    """

    def __init__(self, parts: Sequence[PyvernoError]) -> None:
        super().__init__("\n".join(map(str, parts)))
        self.parts = tuple(parts)


def raise_all(errors: Sequence[PyvernoError]) -> None:
    """Raise the only error, or several as one; return if there is none."""
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise CombinedError(errors)


class ValueSyntaxError(PyvernoError, ValueError):
    """A quantity, duration, version range, cron line, selector or time text that does not parse."""

    code = "value-syntax"


class PatchError(PyvernoError):
    """A patch that cannot be applied to its document."""

    code = "patch"


class ExpressionError(PyvernoError):
    """An expression inside a policy is at fault.

    `is_missing` means that it only found nothing, for which the `default` of a variable may stand in.
    """

    code = "expression"
    is_missing = False


class ExpressionSyntaxError(ExpressionError):
    """An expression does not parse; `offset` counts code points from 0 in the text of the expression."""

    code = "expression-syntax"

    def __init__(self, message: str, *, offset: int = 0, location: Location | None = None, path: str = "") -> None:
        super().__init__(message, location=location, path=path)
        self.offset = offset


class EvaluationError(ExpressionError):
    """An expression failed at run time (wrong type, wrong number of arguments, a function's own error).

    `message` never holds a value of the expression's data, which may come from a Secret. `detailed` is
    the text with the values, only for the person who supplied them (`pyverno jp`).
    """

    code = "evaluation"

    def __init__(self, message: str, *, location: Location | None = None, path: str = "", detailed: str = "") -> None:
        super().__init__(message, location=location, path=path)
        self.detailed = detailed or message


class UnknownKeyError(EvaluationError):
    """JMESPath: a map has no such key. Text as in Kyverno's fork: ``Unknown key "K" in path``.

    With `is_data` the key came out of a value, and the text does not show it.
    """

    code = "unknown-key"
    is_missing = True

    def __init__(self, key: str, *, is_data: bool = False) -> None:
        text = f'Unknown key "{key}" in path'
        shown = f"Unknown key ({len(key)} characters of a nested variable) in path" if is_data else text
        super().__init__(shown, detailed=text)
        self.key = "" if is_data else key


class NullArgumentError(EvaluationError):
    """JMESPath: a function that takes no null received one, because what its argument reads is missing."""

    code = "null-argument"


class ContextEntryError(ExpressionError):
    """A variable that a rule reads cannot be computed.

    It is no EvaluationError: an expression may absorb some of its own errors, but never this one.
    """

    code = "context"

    def __init__(self, message: str, *, is_missing: bool = False) -> None:
        super().__init__(message)
        self.is_missing = is_missing


class SubstitutionError(ExpressionError):
    """A `{{ variable }}` or `$(reference)` cannot be resolved."""

    code = "substitution"

    def __init__(self, message: str, *, path: str = "", is_missing: bool = False) -> None:
        super().__init__(message, path=path)
        self.is_missing = is_missing


class HostError(PyvernoError):
    """A cluster, an HTTP service or a registry answered with an error."""

    code = "host"


class NotFoundError(HostError):
    """The requested object does not exist; the text is the API server's."""

    code = "not-found"


class HostUnavailableError(HostError):
    """Nothing in this Host answers this kind of question; never replaced by an invented answer."""

    code = "host-unavailable"


class BudgetExceededError(PyvernoError):
    """A review used up one of its limits; `resource` names which: time, steps, bytes, context, calls or elements."""

    code = "budget"

    def __init__(self, message: str, *, resource: str) -> None:
        super().__init__(message)
        self.resource = resource


class VerificationError(PyvernoError):
    """A signature, attestation, certificate or log entry that cannot be read or does not satisfy a constraint."""

    code = "verification"
