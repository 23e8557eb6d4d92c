"""Counting of signers: one signer is one, in all entries of a set and through all levels of nested sets.

A signer is known by the key that made a signature, and by the identity in its certificate, however a policy writes
them. What counts is who signed, not which entry of the policy accepted it: an inner set that is reached only by a
signer that was counted before adds nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from pyverno.errors import VerificationError
from pyverno.images.verification.attestors import Attestor, AttestorSet
from pyverno.images.verification.certificates import Certificate, issuer_of, subjects_of
from pyverno.images.verification.keys import PublicKey
from pyverno.images.verification.ledger import Ledger
from pyverno.images.verification.signature import Signature
from pyverno.value import dataclass, field

__all__ = ["Attempt", "Finding", "SetFinding", "Signers", "count_signers", "signers_of"]

Signers = frozenset[tuple[str, ...]]
"""All by which a signer is known; two signers with one of them in common are the same."""

_AGAIN: Final = "the same signer was counted before"
_NOBODY: Final[Signers] = frozenset()
_MAX_STEPS: Final = 20_000


@dataclass(frozen=True, slots=True)
class Finding:
    """One signature held against one attestor."""

    attestor: Attestor
    signature: Signature
    ledger: Ledger


class Attempt(NamedTuple):
    """One signature held against an attestor: the ledger or the reason, and who made it."""

    problem: str
    signers: Signers = _NOBODY
    ledger: Ledger | None = None
    finding: Finding | None = None

    @property
    def passes(self) -> bool:
        """Whether the signature satisfies the attestor."""
        return self.ledger is not None and self.ledger.passes

    @property
    def met(self) -> int:
        """The number of constraints that are met: the attempt with most of them has the reason to show."""
        return sum(entry.state == "met" for entry in self.ledger.entries) if self.ledger is not None else -1


@dataclass(frozen=True, slots=True)
class SetFinding:
    """The number of entries of a set that have signed, and all attempts.

    `checks` are the ledgers of the attempts, with the paths of their attestors; `signers` are those that count.
    """

    path: str
    verified: int
    required: int
    findings: tuple[Finding, ...] = ()
    problems: tuple[str, ...] = field(default=())
    checks: tuple[tuple[str, Ledger], ...] = ()
    signers: Signers = _NOBODY

    @property
    def passes(self) -> bool:
        """Whether the threshold is reached."""
        return 0 < self.required <= self.verified

    @property
    def repeats(self) -> bool:
        """Whether a signer was left out because it had been counted before."""
        return any(each.endswith(_AGAIN) for each in self.problems)


def signers_of(signer: PublicKey | Certificate) -> Signers:
    """Return by what the holder of a key or certificate is known: the key, and each identity.

    An identity is a name with the service that confirmed it: the issuer of a login, or the authority.
    """
    if isinstance(signer, PublicKey):
        return frozenset({("key", signer.fingerprint)})
    found: set[tuple[str, ...]] = {("certificate", hashlib.sha256(signer.der).hexdigest())}
    with suppress(VerificationError):
        found.add(("key", signer.key.fingerprint))
    names, issuer = subjects_of(signer), ""
    with suppress(VerificationError):
        issuer = issuer_of(signer)
    names = names or (signer.x509.subject.rfc4514_string(),)
    issuer = issuer or signer.x509.issuer.rfc4514_string()
    found.update(("name", issuer, name.lower()) for name in names if name)  # guard: one identity is one signer
    return frozenset(found)


def count_signers(
    attestors: AttestorSet,
    attempts: Callable[[Attestor], Iterable[Attempt]],
    check_deadline: Callable[[], None] = lambda: None,
    *,
    counted: Signers = _NOBODY,
) -> SetFinding:
    """Hold entries against what `attempts` yields for each, in order, until the count of the set is reached.

    `counted` are signers that count elsewhere. Entries are tried in their order first; where that counts a signer again
    and misses the count, all ways to give each entry a signer of its own are tried.
    """
    known = _Attempts(attempts)
    found = _count_in_order(attestors, known, check_deadline, counted)
    if found.passes or not found.repeats:
        return found
    return _Search(known, check_deadline).best(attestors, counted) or found


class _Attempts:
    """The attempts of each entry, made when they are looked at, and once."""

    def __init__(self, make: Callable[[Attestor], Iterable[Attempt]]) -> None:
        self._make = make
        self._made: dict[int, tuple[Iterator[Attempt], list[Attempt]]] = {}

    def of(self, entry: Attestor) -> Iterator[Attempt]:
        if id(entry) not in self._made:
            self._made[id(entry)] = iter(self._make(entry)), []
        rest, made = self._made[id(entry)]
        yield from tuple(made)
        for each in rest:
            made.append(each)
            yield each


def _count_in_order(
    attestors: AttestorSet, known: _Attempts, check_deadline: Callable[[], None], counted: Signers
) -> SetFinding:
    verified, signers = 0, counted
    findings: list[Finding] = []
    problems: list[str] = []
    checks: list[tuple[str, Ledger]] = []
    for entry in attestors.entries:
        check_deadline()
        if isinstance(entry, AttestorSet):
            inner = _count_in_order(entry, known, check_deadline, signers)  # guard: a signer counts once in all levels
            findings.extend(inner.findings)
            checks.extend(inner.checks)
            problems.extend(inner.problems)
            verified += inner.passes
            signers |= inner.signers if inner.passes else _NOBODY
        else:
            tried, problem = _try_entry(entry, known, signers)
            findings.extend(each.finding for each in tried if each.finding is not None)
            checks.extend((entry.path, each.ledger) for each in tried if each.ledger is not None)
            if problem:
                problems.append(f"{entry.path}: {problem}")
            else:
                verified += 1
                signers |= tried[-1].signers
        if verified >= attestors.count:
            break
    found = tuple(findings), tuple(problems), tuple(checks)
    return SetFinding(attestors.path, verified, attestors.count, *found, signers - counted)


def _try_entry(entry: Attestor, known: _Attempts, counted: Signers) -> tuple[Sequence[Attempt], str]:
    """Return the attempt that counts, or all of them and why none of them counts."""
    tried: list[Attempt] = []
    for each in known.of(entry):
        if each.passes and not each.signers & counted:  # guard: one signer counts once
            return (each,), ""
        tried.append(each)
    again = [each for each in tried if each.passes]
    if again:
        return again[:1], _AGAIN
    return tried, max(tried, key=lambda each: each.met).problem if tried else "no signatures found"


class _Search:
    """Looks for a way to reach a count in which no signer is used twice."""

    def __init__(self, known: _Attempts, check_deadline: Callable[[], None]) -> None:
        self._known = known
        self._check_deadline = check_deadline
        self._steps = 0

    def best(self, attestors: AttestorSet, counted: Signers) -> SetFinding | None:
        """Return the first way, None if there is none or too many are possible: what is not found does not count."""
        for signers, used in self._choose(attestors.entries, attestors.count, counted):
            findings = tuple(each.finding for _, each in used if each.finding is not None)
            checks = tuple((path, each.ledger) for path, each in used if each.ledger is not None)
            return SetFinding(attestors.path, attestors.count, attestors.count, findings, (), checks, signers)
        return None

    def _choose(
        self, entries: Sequence[Attestor | AttestorSet], need: int, counted: Signers
    ) -> Iterator[tuple[Signers, tuple[tuple[str, Attempt], ...]]]:
        self._steps += 1
        self._check_deadline()
        if need == 0:
            yield _NOBODY, ()
        if need == 0 or len(entries) < need or self._steps > _MAX_STEPS:
            return
        for signers, used in self._ways(entries[0], counted):
            for more, others in self._choose(entries[1:], need - 1, counted | signers):
                yield signers | more, (*used, *others)
        yield from self._choose(entries[1:], need, counted)

    def _ways(
        self, entry: Attestor | AttestorSet, counted: Signers
    ) -> Iterator[tuple[Signers, tuple[tuple[str, Attempt], ...]]]:
        if isinstance(entry, AttestorSet):
            yield from self._choose(entry.entries, entry.count, counted)
            return
        seen: set[Signers] = set()
        for each in self._known.of(entry):
            if each.passes and each.signers not in seen and not each.signers & counted:
                seen.add(each.signers)
                yield each.signers, ((entry.path, each),)
