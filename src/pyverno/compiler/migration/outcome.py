"""Outcomes of conversions: notes for the reader, refusals with a code, and the error that features raise."""

from __future__ import annotations

from pyverno.errors import PyvernoError
from pyverno.kube.json import JSONObject
from pyverno.value import dataclass

__all__ = ["Converted", "Note", "Refused", "UnconvertibleError", "join_path"]


@dataclass(frozen=True, slots=True)
class Note:
    """Something that a person should know about a conversion: a stable code, the field it concerns, a sentence."""

    code: str
    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The reason why a rule or document is not converted: a stable code, the field, the text, and the next step."""

    code: str
    path: str
    reason: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Converted:
    """Documents that take the place of a rule or document, and notes about them."""

    documents: tuple[JSONObject, ...]
    notes: tuple[Note, ...] = ()


class UnconvertibleError(PyvernoError):
    """A feature has no form in CEL that certainly decides alike.

    >>> UnconvertibleError("roles", "match.roles", "CEL has no list of roles", "match groups").refused
    Refused(code='roles', path='match.roles', reason='CEL has no list of roles', advice='match groups')
    """

    code = "unconvertible"

    def __init__(self, code: str, path: str, reason: str, advice: str = "") -> None:
        """Take the parts of a `Refused`; `path` is relative to the rule, or to the document outside of rules."""
        super().__init__(reason, path=path)
        self.refused = Refused(code, path, reason, advice)

    def below(self, prefix: str) -> UnconvertibleError:
        """Return the same refusal with its path below another one."""
        refused = self.refused
        joined = join_path(prefix, refused.path)
        return UnconvertibleError(refused.code, joined, refused.reason, refused.advice)


def join_path(prefix: str, path: str) -> str:
    """Join two field paths.

    >>> join_path("spec.rules[0]", "[1].match"), join_path("spec", "rules"), join_path("", "a")
    ('spec.rules[0][1].match', 'spec.rules', 'a')
    """
    if not prefix or not path:
        return prefix or path
    return prefix + path if path.startswith("[") else f"{prefix}.{path}"
