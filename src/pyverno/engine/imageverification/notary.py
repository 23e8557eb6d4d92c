"""Notary signatures of an image held against the attestors of a rule, each of which is a trust store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from pyverno.errors import VerificationError
from pyverno.images.verification.attestors import Attestor, AttestorSet
from pyverno.images.verification.counting import Attempt, SetFinding, Signers, count_signers, signers_of
from pyverno.images.verification.ledger import Ledger
from pyverno.images.verification.notary.envelope import read_notary
from pyverno.images.verification.notary.verify import NotaryAttestor, NotaryTarget, verify_notary
from pyverno.images.verification.revocation import ReadRevocation, no_revocations
from pyverno.images.verification.stored import StoredSignature

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
    *,
    counted: Signers = frozenset(),
) -> SetFinding:
    """Hold what is stored for each entry against its certificates, in order, until the count of the set is reached.

    One signer counts once. Raises VerificationError for an entry that Notary cannot fulfil.
    """

    def attempts(entry: Attestor) -> Iterator[Attempt]:
        wanted = _notary_attestor(entry)
        yield from _attempts(wanted, stored(entry), target, read_revocation, check_deadline)

    return count_signers(attestors, attempts, check_deadline, counted=counted)


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
    for each in _attempts(wanted, stored, target, read, check_deadline):
        if each.passes and each.ledger is not None:
            return NotaryTries((each.ledger,), ())
        problems.append(each.problem)
        if each.ledger is not None:
            ledgers.append(each.ledger)
    return NotaryTries(tuple(ledgers), tuple(problems or ("no signatures found",)))


def _attempts(
    wanted: NotaryAttestor,
    stored: Sequence[StoredSignature],
    target: NotaryTarget,
    read: ReadRevocation,
    check_deadline: Callable[[], None],
) -> Iterator[Attempt]:
    for each in stored:
        check_deadline()
        try:
            signature = read_notary(each.blob, each.media_type)
            ledger = verify_notary(wanted, signature, target, read)
        except VerificationError as error:
            yield Attempt(error.message)
            continue
        yield Attempt(ledger.problem, signers_of(signature.chain[0]) if ledger.passes else frozenset(), ledger)
