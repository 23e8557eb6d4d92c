"""Notary signatures of an image held against the attestors of a rule, each of which is a trust store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pyverno.errors import VerificationError
from pyverno.images.verification.attestors import Attestor, AttestorSet
from pyverno.images.verification.ledger import Ledger
from pyverno.images.verification.notary.envelope import read_notary
from pyverno.images.verification.notary.verify import NotaryAttestor, NotaryTarget, verify_notary
from pyverno.images.verification.revocation import ReadRevocation, no_revocations
from pyverno.images.verification.stored import StoredSignature
from pyverno.images.verification.verify import SetFinding

__all__ = ["NotaryTries", "check_notary", "try_notary"]


class NotaryTries(NamedTuple):
    """The ledger of the signature that counts and no problems; or the ledgers of all, and why none of them counts."""

    ledgers: tuple[Ledger, ...]
    problems: tuple[str, ...]


def check_notary(
    attestors: AttestorSet,
    stored: Callable[[Attestor], Sequence[StoredSignature]],
    target: NotaryTarget,
    check_deadline: Callable[[], None],
    read_revocation: ReadRevocation = no_revocations,
) -> SetFinding:
    """Hold what is stored for each entry against its certificates, in order, until the count of the set is reached.

    The same certificates in two entries count once. Raises VerificationError for an entry that Notary cannot fulfil.
    """
    verified = 0
    problems: list[str] = []
    checks: list[tuple[str, Ledger]] = []
    counted: set[frozenset[bytes]] = set()
    for entry in attestors.entries:
        check_deadline()
        if isinstance(entry, AttestorSet):
            inner = check_notary(entry, stored, target, check_deadline, read_revocation)
            problems.extend(inner.problems)
            checks.extend(inner.checks)
            verified += inner.passes
        else:
            wanted = _notary_attestor(entry)
            store = frozenset(each.der for each in wanted.store)
            tries = try_notary(wanted, stored(entry), target, read_revocation, check_deadline)
            checks.extend((entry.path, ledger) for ledger in tries.ledgers)
            if tries.problems:
                problems.append(f"{entry.path}: {tries.problems[-1]}")
            elif store in counted:
                problems.append(f"{entry.path}: the same signer was counted before")
            else:
                counted.add(store)
                verified += 1
        if verified >= attestors.count:
            break
    return SetFinding(attestors.path, verified, attestors.count, (), tuple(problems), tuple(checks))


def _notary_attestor(entry: Attestor) -> NotaryAttestor:
    """Return the trust store of an entry; raises VerificationError for what Notary has no notion of."""
    certificates = [each for authority in entry.authorities for each in authority.chain]
    if entry.certificate is not None:
        certificates.append(entry.certificate)
    if entry.key is not None or entry.identities or entry.extensions or not certificates:
        raise VerificationError(f"{entry.path}: Notary signatures are verified with certificates only")
    if entry.log_required or (entry.authorities and entry.certificate_log_required):
        raise VerificationError(f"{entry.path}: Notary signatures are in no transparency log")
    return NotaryAttestor(entry.path, tuple(certificates), entry.time_authorities, entry.annotations)


def try_notary(
    wanted: NotaryAttestor,
    stored: Sequence[StoredSignature],
    target: NotaryTarget,
    read: ReadRevocation,
    check_deadline: Callable[[], None] = lambda: None,
) -> NotaryTries:
    """Verify signatures by a trust store until one of them counts; `check_deadline` is called before each."""
    ledgers, problems = [], []
    for each in stored:
        check_deadline()
        try:
            ledger = verify_notary(wanted, read_notary(each.blob, each.media_type), target, read)
        except VerificationError as error:
            problems.append(error.message)
            continue
        if ledger.passes:
            return NotaryTries((ledger,), ())
        ledgers.append(ledger)
        problems.append(ledger.problem)
    return NotaryTries(tuple(ledgers), tuple(problems or ("no signatures found",)))
