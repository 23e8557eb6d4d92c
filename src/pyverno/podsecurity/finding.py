"""Findings: violations of a check in a pod, and their texts."""

from __future__ import annotations

from collections.abc import Iterable

from pyverno.kube.json import go_text
from pyverno.lazyregex import regex
from pyverno.value import dataclass

__all__ = ["MAX_LISTED", "FieldError", "Finding", "Violation", "plural", "quoted", "sorted_unique"]

MAX_LISTED = 100
"""Field errors that the message of a rule lists for one check; the others are counted."""

_DIGITS = regex(r"[0-9]+")


@dataclass(frozen=True, slots=True)
class FieldError:
    """One field at fault: its path, the offending value if there is one, and the container it belongs to.

    `value` is a text, a flag, a number or several texts; an empty text means that the check names no value.
    `required` marks a field that is missing and must be set.

    >>> FieldError("spec.hostPID", True).text
    'spec.hostPID is forbidden, forbidden values found: true'
    >>> FieldError("spec.volumes[1].nfs").text
    'spec.volumes[1].nfs: Forbidden'
    """

    field: str
    value: str | bool | int | tuple[str, ...] = ""
    required: bool = False
    container: str | None = None

    @property
    def text(self) -> str:
        """The error as Kyverno prints it inside the message of a rule."""
        if self.required:
            return f"{self.field}: Required value"
        if self.value == "":
            return f"{self.field}: Forbidden"
        value = list(self.value) if isinstance(self.value, tuple) else self.value
        return f"{self.field} is forbidden, forbidden values found: {go_text(value)}"

    @property
    def starred_field(self) -> str:
        """The path with every number replaced by `*`, as `restrictedField` writes it."""
        # COMPAT: digits inside an annotation key become `*` too.
        return _DIGITS.sub("*", self.field)

    @property
    def offending_values(self) -> tuple[str, ...]:
        """The values an exclude must tolerate, as texts; empty when the error names none."""
        match self.value:
            case "":
                return ()
            case bool():
                return ("true" if self.value else "false",)
            case tuple():
                return self.value
            case _:
                return (str(self.value),)


@dataclass(frozen=True, slots=True)
class Finding:
    """The refusal of one check: a short reason, a sentence with names, the fields, the containers named in it.

    `containers` are the names that reports turn into image references.
    """

    reason: str
    detail: str
    errors: tuple[FieldError, ...]
    containers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Violation:
    """A finding together with the check that made it and the control that the check belongs to.

    `control` is empty for the one check that no control name covers.
    """

    check_id: str
    control: str
    reason: str
    detail: str
    errors: tuple[FieldError, ...]
    containers: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The violation as Kyverno prints it inside the message of a rule; a long list of errors is cut."""
        listed = ", ".join(error.text for error in self.errors[:MAX_LISTED])
        if len(self.errors) > MAX_LISTED:
            listed += f", and {len(self.errors) - MAX_LISTED} more"
        return f"(Forbidden reason: {self.reason}, field error list: [{listed}])"

    def with_errors(self, errors: tuple[FieldError, ...]) -> Violation:
        """Return the same violation with another list of field errors."""
        return Violation(self.check_id, self.control, self.reason, self.detail, errors, self.containers)


def quoted(names: Iterable[str]) -> str:
    """Join names as Kubernetes does in its details.

    >>> quoted(["a", "b"])
    '"a", "b"'
    """
    return ", ".join(f'"{name}"' for name in names)


def plural(word: str, count: int) -> str:
    """Return the word, with an `s` unless there is exactly one.

    >>> plural("container", 2)
    'containers'
    """
    return word if count == 1 else word + "s"


def sorted_unique(texts: Iterable[str]) -> tuple[str, ...]:
    """Return texts once each, in order.

    >>> sorted_unique(["b", "a", "b"])
    ('a', 'b')
    """
    return tuple(sorted(set(texts)))
