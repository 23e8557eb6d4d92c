"""Attestors: the accepted signers, and all requirements that a policy can set for a signature.

Each field that is set becomes a constraint of the ledger (`constraints_of`). A test demands that the table
`_CONSTRAINTS` has a row for every field, so that a new field cannot be forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Final

from pyverno.errors import VerificationError
from pyverno.images.verification.certificates import EXTENSION_NAMES, FULCIO, Certificate
from pyverno.images.verification.keys import PublicKey
from pyverno.images.verification.trust import Authority, TransparencyLog
from pyverno.kube.wildcard import compile_wildcard
from pyverno.lang.pattern.literal import Literal
from pyverno.lang.regex.compiler import compile_re2
from pyverno.value import dataclass, field, fields

__all__ = ["Attestor", "AttestorSet", "Identity", "TextMatch", "constraints_of", "exact", "expression", "wildcard"]


class Rule(StrEnum):
    """The comparison of a text."""

    EXACT = "exact"
    WILDCARD = "wildcard"
    EXPRESSION = "regular expression"


@dataclass(frozen=True, slots=True)
class TextMatch:
    """A required text; made by `exact`, `wildcard` and `expression`."""

    text: str
    rule: Rule
    matches: Callable[[str], bool] = field(compare=False, repr=False)


def exact(text: str) -> TextMatch:
    """Demand a text to the letter."""
    return TextMatch(text, Rule.EXACT, lambda found: found == text)


def wildcard(text: str) -> TextMatch:
    """Require a text that the pattern (`*`, `?`) matches; text of a request is none.

    >>> wildcard("https://*.example.com").matches("https://ci.example.com")
    True
    """
    return exact(text) if isinstance(text, Literal) else TextMatch(text, Rule.WILDCARD, compile_wildcard(text))


def expression(text: str) -> TextMatch:
    """Require a text in which a regular expression (RE2) matches somewhere; raises ExpressionSyntaxError."""
    if isinstance(text, Literal):
        return exact(text)
    compiled = compile_re2(text)
    return TextMatch(text, Rule.EXPRESSION, lambda found: compiled.search(found) is not None)


@dataclass(frozen=True, slots=True)
class Identity:
    """The required identity of a certificate: all of `subjects` and all of `issuers`; at least one of both is set."""

    subjects: tuple[TextMatch, ...] = ()
    issuers: tuple[TextMatch, ...] = ()


@dataclass(frozen=True, slots=True)
class Attestor:
    """One authority and the requirements of its signatures; exactly one of key, certificate and authorities is set.

    `path` is its place in the policy (`.attestors[0].entries[1].keys`). `authorities` issue the signer's certificate:
    trusted ones for keyless signing, or a chain of the policy. `identities` are alternatives. With `log_required` a
    transparency log must have the signature (one of `logs`); with `certificate_log_required` one of `certificate_logs`
    must have the certificate; with `timestamp_required` one of `time_authorities` must have stamped the signature.
    `repository` holds the signatures, "" for that of the image; their tags begin with `tag_prefix`, and `pull_secrets`
    are further Secrets to read them with.
    """

    path: str
    key: PublicKey | None = None
    hash_name: str = "sha256"
    certificate: Certificate | None = None
    authorities: tuple[Authority, ...] = ()
    identities: tuple[Identity, ...] = ()
    extensions: Mapping[str, TextMatch] = field(default_factory=dict)
    annotations: Mapping[str, TextMatch] = field(default_factory=dict)
    log_required: bool = True
    logs: tuple[TransparencyLog, ...] = ()
    certificate_log_required: bool = True
    certificate_logs: tuple[TransparencyLog, ...] = ()
    timestamp_required: bool = False
    time_authorities: tuple[Authority, ...] = ()
    repository: str = ""
    tag_prefix: str = ""
    pull_secrets: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise VerificationError unless exactly one way to identify the signer is given."""
        ways = (self.key is not None, self.certificate is not None, bool(self.authorities))
        if sum(ways[:2]) > 1 or not any(ways) or (self.key is not None and self.authorities):
            raise VerificationError(f"{self.path} must have exactly one of a key, a certificate and authorities")


@dataclass(frozen=True, slots=True)
class AttestorSet:
    """Attestors, or sets of them, of which at least `count` must have signed."""

    path: str
    entries: tuple[Attestor | AttestorSet, ...]
    count: int

    def __post_init__(self) -> None:
        """Raise VerificationError when the count cannot be a threshold of these entries."""
        if not 0 < self.count <= len(self.entries):
            raise VerificationError(f"{self.path} asks for {self.count} of {len(self.entries)} attestors")


def extension_identifier(name: str) -> str:
    """Return the object identifier of a certificate extension; raises VerificationError for an unknown name.

    >>> extension_identifier("githubWorkflowRef")
    '1.3.6.1.4.1.57264.1.6'
    """
    found = EXTENSION_NAMES.get(name, name)
    if not found.startswith(f"{FULCIO}."):
        known = ", ".join(EXTENSION_NAMES)
        raise VerificationError(f"unknown certificate extension `{name[:80]}`: expected {known} or {FULCIO}.N")
    return found


def _always(_attestor: Attestor) -> Iterator[str]:
    yield from ("digest", "type", "signature")


def _signer(attestor: Attestor) -> Iterator[str]:
    if attestor.key is not None:
        yield "key"


def _certificate(attestor: Attestor) -> Iterator[str]:
    if attestor.certificate is not None:
        yield "certificate"


def _chain(attestor: Attestor) -> Iterator[str]:
    if attestor.authorities:
        yield from ("certificate chain", "certificate usage")


def _identity(attestor: Attestor) -> Iterator[str]:
    if attestor.identities:
        yield "identity"


def _log(attestor: Attestor) -> Iterator[str]:
    if attestor.log_required:
        yield "transparency log"


def _certificate_log(attestor: Attestor) -> Iterator[str]:
    if attestor.certificate_log_required and attestor.authorities:
        yield "certificate log"


def _time(attestor: Attestor) -> Iterator[str]:
    if attestor.timestamp_required:
        yield "time stamp"


def _nothing(_attestor: Attestor) -> Iterator[str]:
    """Yield nothing: the field only sets how another constraint is checked."""
    return iter(())


_CONSTRAINTS: Final[Mapping[str, Callable[[Attestor], Iterator[str]]]] = {
    "path": _always,
    "repository": _nothing,
    "tag_prefix": _nothing,
    "pull_secrets": _nothing,
    "key": _signer,
    "hash_name": _nothing,
    "timestamp_required": _time,
    "time_authorities": _nothing,
    "log_required": _log,
    "logs": _nothing,
    "certificate": _certificate,
    "authorities": _chain,
    "certificate_log_required": _certificate_log,
    "certificate_logs": _nothing,
    "identities": _identity,
    "extensions": lambda attestor: (f"extension {name}" for name in attestor.extensions),
    "annotations": lambda attestor: (f"annotation {name}" for name in attestor.annotations),
}
"""The constraints of each field, each after those that it depends on: the first problem is the cause."""


def constraints_of(attestor: Attestor) -> Iterator[str]:
    """Yield the constraints of the fields that are set; raises VerificationError for a field without a row."""
    forgotten = [each.name for each in fields(attestor) if each.name not in _CONSTRAINTS]
    if forgotten:
        raise VerificationError(f"nothing checks the field `{forgotten[0]}` of an attestor")
    for find in _CONSTRAINTS.values():
        yield from find(attestor)
