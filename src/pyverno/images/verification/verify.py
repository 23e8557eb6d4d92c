"""Verification of one signature against one attestor, and of many against a set of attestors.

`verify` settles the ledger of an attestor; checks are independent of each other, so that the ledger shows every
problem. Only a check that succeeded meets its constraint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final, TypeVar

from pyverno.errors import VerificationError
from pyverno.images.verification.attestors import Attestor, AttestorSet, Identity, constraints_of, extension_identifier
from pyverno.images.verification.certificates import (
    Certificate,
    check_code_signing,
    extensions_of,
    issuer_of,
    subjects_of,
)
from pyverno.images.verification.chain import check_chain
from pyverno.images.verification.counting import Attempt, Finding, SetFinding, Signers, count_signers, signers_of
from pyverno.images.verification.keys import PublicKey
from pyverno.images.verification.ledger import Ledger
from pyverno.images.verification.logentry import Logged, check_entry
from pyverno.images.verification.signature import Signature
from pyverno.images.verification.timestamps import check_timestamp
from pyverno.images.verification.transparency import check_certificate_logged
from pyverno.value import dataclass

__all__ = ["Expected", "Finding", "SetFinding", "verify", "verify_set"]

_MAX_SHOWN: Final = 120
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Expected:
    """The content that must be signed: the digest of the image (`sha256:…`), and the type of the predicate."""

    digest: str
    predicate_type: str
    now: int
    """The present time in seconds since 1970, for keys and certificates without a trusted time."""


def verify_set(
    attestors: AttestorSet,
    signatures: Sequence[Signature] | Callable[[Attestor], Sequence[Signature]],
    expected: Expected,
    check_deadline: Callable[[], None] = lambda: None,
    *,
    counted: Signers = frozenset(),
) -> SetFinding:
    """Verify signatures by the entries of a set, in order, until its count is reached.

    One entry counts once, however many signatures it made; the same signer in two entries counts once as well, and not
    at all if it is one of `counted`. `signatures` may also be a function that returns those of an entry, which may have
    its own repository. `check_deadline` is called before every signature, and may raise.
    """

    def attempts(entry: Attestor) -> Iterator[Attempt]:
        for each in signatures(entry) if callable(signatures) else signatures:
            check_deadline()
            found = verify(entry, each, expected)
            if not found.ledger.passes:
                yield Attempt(found.ledger.problem, ledger=found.ledger, finding=found)
                continue
            signer = entry.key or entry.certificate or each.certificate
            who = signers_of(signer) if signer is not None else frozenset()
            yield Attempt("", who, found.ledger, found)

    return count_signers(attestors, attempts, check_deadline, counted=counted)


def verify(attestor: Attestor, signature: Signature, expected: Expected) -> Finding:
    """Settle every constraint of an attestor over one signature; a faulty signature never raises."""
    ledger = Ledger(constraints_of(attestor))
    check = _Checks(attestor, signature, expected, ledger)
    check.run()
    return Finding(attestor, signature, ledger)


class _Checks:
    """The checks of one verification, in the order in which they depend on each other."""

    def __init__(self, attestor: Attestor, signature: Signature, expected: Expected, ledger: Ledger) -> None:
        self.attestor = attestor
        self.signature = signature
        self.expected = expected
        self.ledger = ledger
        self.signer: PublicKey | Certificate | None = attestor.key or attestor.certificate or signature.certificate
        self.times: list[int] = []
        self.chain: tuple[Certificate, ...] = ()

    def run(self) -> None:
        """Run all checks; a failed check stops only those that depend on it."""
        self._settle("digest", self._digest)
        self._settle("type", self._type)
        self._settle("key", self._key)
        self._settle("signature", self._signed)
        self._settle("time stamp", self._stamped)
        if not self.attestor.timestamp_required:
            self._use_timestamps()
        self._settle("transparency log", self._logged)
        self._settle("certificate", self._certificate)
        self._settle("certificate chain", self._chain)
        self._settle("certificate usage", self._usage)
        self._settle("certificate log", self._certificate_logged)
        self._settle("identity", self._identity)
        for name in self.attestor.extensions:
            self._settle(f"extension {name}", lambda name=name: self._extension(name))  # type: ignore[misc]
        for name in self.attestor.annotations:
            self._settle(f"annotation {name}", lambda name=name: self._annotation(name))  # type: ignore[misc]

    def _settle(self, constraint: str, check: Callable[[], str]) -> None:
        if not self.ledger.has(constraint):
            return
        try:
            self.ledger.meet(constraint, check())
        except VerificationError as error:
            self.ledger.fail(constraint, error.message)

    # ---------------------------------------------------------------------------------------------- what is signed

    def _digest(self) -> str:
        if self.expected.digest not in self.signature.payload.digests:
            raise VerificationError("the signature is for another image")
        return self.expected.digest

    def _type(self) -> str:
        found = self.signature.payload.predicate_type
        if found != self.expected.predicate_type:
            raise VerificationError(f"the signature is for `{found[:_MAX_SHOWN]}`")
        return found

    def _annotation(self, name: str) -> str:
        demanded = self.attestor.annotations[name]
        found = self.signature.annotations.get(name)
        if not isinstance(found, str):
            raise VerificationError("the signature has no such annotation")
        if not demanded.matches(found):
            raise VerificationError(f"the signature says `{found[:_MAX_SHOWN]}` where `{demanded.text}` is demanded")
        return found

    # ------------------------------------------------------------------------------------------------ the signer

    def _key(self) -> str:
        if self.attestor.key is None or self.signer is not self.attestor.key:
            raise VerificationError("the signature is not checked with the key")
        return self.attestor.key.fingerprint

    def _certificate(self) -> str:
        demanded = self._leaf()
        if self.signature.certificate is not None and self.signature.certificate != demanded:
            raise VerificationError("the signature was made with another certificate")
        if not all(demanded.begins <= time <= demanded.ends for time in self._trusted_times()):
            raise VerificationError("the certificate was not valid when the signature was made")
        return str(demanded.x509.serial_number)

    def _signed(self) -> str:
        if self.signer is None:
            raise VerificationError("the signature has no certificate")
        is_key = isinstance(self.signer, PublicKey)
        key = self.signer if isinstance(self.signer, PublicKey) else self.signer.key
        key.check(
            self.signature.signature,
            self.signature.signed,
            hash_name=self.attestor.hash_name if is_key else "sha256",
        )
        return key.fingerprint

    # ----------------------------------------------------------------------------------------- when it was signed

    def _stamped(self) -> str:
        times = self._each(
            self.signature.timestamps,
            lambda token: check_timestamp(token, self.signature.signature, self.attestor.time_authorities),
            "the signature has no time stamp",
        )
        self.times.extend(times)
        return str(times[0])

    def _use_timestamps(self) -> None:
        """Use valid time stamps although the policy requires none."""
        for token in self.signature.timestamps if self.attestor.time_authorities else ():
            with suppress(VerificationError):
                self.times.append(check_timestamp(token, self.signature.signature, self.attestor.time_authorities))

    def _logged(self) -> str:
        if self.signer is None:
            raise VerificationError("the signature has no certificate")
        payload = self.signature.dsse.payload if self.signature.dsse is not None else None
        about = Logged(self.signature.signed, self.signature.signature, self.signer, payload, self.signature.envelope)
        stamped = self._trusted_times()
        times = self._each(
            self.signature.log_entries,
            lambda entry: check_entry(entry, self.attestor.logs, about, stamped),
            "the signature has no log entry",
        )
        self.times.extend(time for time in times if time)
        return str(times[0]) if times[0] else "without a time"

    @staticmethod
    def _each(candidates: Iterable[_T], check: Callable[[_T], int], missing: str) -> list[int]:
        found: list[int] = []
        problem = ""
        for each in candidates:
            try:
                found.append(check(each))
            except VerificationError as error:
                problem = problem or error.message
        if not found:
            raise VerificationError(problem or missing)
        return found

    # ---------------------------------------------------------------------------------------------- the certificate

    def _leaf(self) -> Certificate:
        if not isinstance(self.signer, Certificate):
            raise VerificationError("the signature has no certificate")
        return self.signer

    def _trusted_times(self) -> Sequence[int]:
        """Return the proven time of the signature; the present time without a proof."""
        return self.times or (self.expected.now,)

    def _chain(self) -> str:
        self.chain = self._verified_chain()
        self.signer = self.chain[0]  # the same certificate, of which more may have been parsed before
        return " < ".join(each.x509.subject.rfc4514_string() or "-" for each in self.chain)[:_MAX_SHOWN]

    def _verified_chain(self) -> tuple[Certificate, ...]:
        leaf = self._leaf()
        times = self._trusted_times()
        problem = "there is no trusted authority"
        for authority in self.attestor.authorities:
            if not all(authority.is_valid_at(time) for time in times):
                problem = "the authority was not in use when the signature was made"
                continue
            roots = [each for each in authority.chain if each.is_self_issued] or [authority.chain[-1]]
            between = [*(each for each in authority.chain if each not in roots), *self.signature.chain]
            try:
                chains = [check_chain(leaf, between, roots, time, known=authority.known) for time in times]
            except VerificationError as error:
                problem = error.message
                continue
            return chains[0]
        raise VerificationError(problem)

    def _usage(self) -> str:
        check_code_signing(self._leaf())
        return "code signing"

    def _certificate_logged(self) -> str:
        if not self.chain:
            raise VerificationError("the certificate does not lead to a trusted authority")
        issuer = self.chain[1] if len(self.chain) > 1 else self.chain[0]
        check_certificate_logged(self.chain[0], issuer, self.attestor.certificate_logs)
        return "certificate timestamp"

    def _identity(self) -> str:
        leaf = self._leaf()
        issuer, subjects = issuer_of(leaf), subjects_of(leaf)
        if not any(_is(each, issuer, subjects) for each in self.attestor.identities):
            shown = ", ".join(subjects)[:_MAX_SHOWN] or "no subject"
            raise VerificationError(f"signed by `{shown}` of `{issuer[:_MAX_SHOWN]}`")
        return f"{', '.join(subjects)} of {issuer}"[:_MAX_SHOWN]

    def _extension(self, name: str) -> str:
        demanded = self.attestor.extensions[name]
        found = extensions_of(self._leaf()).get(extension_identifier(name))
        if found is None:
            raise VerificationError("the certificate has no such extension")
        if not demanded.matches(found):
            raise VerificationError(f"the certificate says `{found[:_MAX_SHOWN]}` where `{demanded.text}` is demanded")
        return found


def _is(identity: Identity, issuer: str, subjects: Sequence[str]) -> bool:
    if not identity.subjects and not identity.issuers:
        return False
    if identity.issuers and not (issuer and all(each.matches(issuer) for each in identity.issuers)):
        return False
    return all(any(map(each.matches, subjects)) for each in identity.subjects)
