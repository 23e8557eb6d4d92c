"""Verification of one Notary signature against a trust store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Final

from pyverno.errors import VerificationError
from pyverno.images.verification.attestors import TextMatch
from pyverno.images.verification.certificates import Certificate
from pyverno.images.verification.ledger import Ledger
from pyverno.images.verification.notary.algorithms import check_signature
from pyverno.images.verification.notary.chain import check_issued, check_leaf, check_valid
from pyverno.images.verification.notary.envelope import (
    AUTHENTIC_TIME,
    EXPIRY,
    SCHEME,
    SIGNING_TIME,
    NotarySignature,
    target_of,
)
from pyverno.images.verification.revocation import ReadRevocation, check_revocation, no_revocations
from pyverno.images.verification.timestamps import verify_timestamp
from pyverno.images.verification.trust import Authority
from pyverno.value import dataclass, field

__all__ = ["Level", "NotaryAttestor", "NotaryTarget", "verify_notary"]

_PAYLOAD: Final = "application/vnd.cncf.notary.payload.v1+json"
_X509: Final = "notary.x509"
_GRANTED: Final = b"\x30\x03\x02\x01\x00"
_MAX_SHOWN: Final = 120


class Level(StrEnum):
    """The strictness of a verification; Kyverno always demands `STRICT`."""

    STRICT = "strict"
    PERMISSIVE = "permissive"
    AUDIT = "audit"


@dataclass(frozen=True, slots=True)
class NotaryAttestor:
    """A trust store: certificates of which one must be in the chain of the signature.

    With `time_authorities` a time stamp of one of them is demanded. `metadata` are annotations that the signed
    descriptor must have. `path` is its place in the policy.
    """

    path: str
    store: tuple[Certificate, ...]
    time_authorities: tuple[Authority, ...] = ()
    metadata: Mapping[str, TextMatch] = field(default_factory=dict)
    level: Level = Level.STRICT

    def constraints(self) -> Iterator[str]:
        """Yield what must hold at this level."""
        yield from ("type", "critical headers", "digest", "certificate chain", "certificate usage", "signature")
        if self.level is not Level.AUDIT:
            yield "trust store"
        if self.level is Level.STRICT:
            if self.time_authorities:
                yield "time stamp"
            yield from ("certificate", "expiry", "revocation")
        yield from (f"annotation {name}" for name in self.metadata)


@dataclass(frozen=True, slots=True)
class NotaryTarget:
    """The target of a signature: the descriptor of the image, as the registry resolved it, and the present time."""

    digest: str
    size: int
    now: int
    media_type: str = ""


def verify_notary(
    attestor: NotaryAttestor,
    signature: NotarySignature,
    target: NotaryTarget,
    read_revocation: ReadRevocation = no_revocations,
) -> Ledger:
    """Settle every constraint of an attestor over one signature; a faulty signature never raises.

    `read_revocation` reads the revocation addresses of certificates, after their chain is trusted.
    """
    ledger = Ledger(attestor.constraints())
    checks = _Checks(attestor, signature, target, read_revocation)
    for constraint, check in checks.all():
        if not ledger.has(constraint):
            continue
        try:
            ledger.meet(constraint, check())
        except VerificationError as error:
            ledger.fail(constraint, error.message)
    return ledger


class _Checks:
    def __init__(
        self, attestor: NotaryAttestor, signature: NotarySignature, target: NotaryTarget, read: ReadRevocation
    ) -> None:
        self.attestor = attestor
        self.signature = signature
        self.target = target
        self.read = read
        self.is_signed = self.is_trusted = False
        self.stamped: int | None = None
        self.stamping: tuple[Certificate, ...] = ()

    def all(self) -> Iterator[tuple[str, Callable[[], str]]]:
        """Yield the checks; the time stamp comes before the validity that it proves."""
        yield from (
            ("type", self._type),
            ("critical headers", self._critical),
            ("digest", self._digest),
            ("certificate chain", self._issued),
            ("certificate usage", self._usage),
            ("signature", self._signed),
            ("trust store", self._trusted),
            ("time stamp", self._stamp),
            ("certificate", self._valid),
            ("expiry", self._expiry),
            ("revocation", self._revocation),
        )
        for name in self.attestor.metadata:
            yield f"annotation {name}", lambda name=name: self._annotation(name)  # type: ignore[misc]

    def _type(self) -> str:
        if self.signature.content_type != _PAYLOAD:
            raise VerificationError(f"the payload is of type `{self.signature.content_type[:_MAX_SHOWN]}`")
        if self.signature.scheme != _X509:
            raise VerificationError(f"the signing scheme `{self.signature.scheme[:_MAX_SHOWN]}` is not trusted")
        return self.signature.scheme

    def _critical(self) -> str:
        demanded = {SCHEME} | ({EXPIRY} if self.signature.expiry is not None else set())
        listed = set(self.signature.critical)
        if listed - demanded:
            raise VerificationError(f"`{min(listed - demanded)[:_MAX_SHOWN]}` is critical and unknown")
        if demanded - listed:
            raise VerificationError(f"`{min(demanded - listed)}` is not marked as critical")
        if AUTHENTIC_TIME in self.signature.headers or SIGNING_TIME not in self.signature.headers:
            raise VerificationError("the header does not hold exactly the signing time of its scheme")
        return ", ".join(sorted(listed))

    def _digest(self) -> str:
        found = target_of(self.signature)
        if found.get("digest") != self.target.digest:
            raise VerificationError("the signature is for another image")
        size = found.get("size")
        if isinstance(size, bool) or size != self.target.size:
            raise VerificationError("the signature is for an image of another size")
        if self.target.media_type and found.get("mediaType") != self.target.media_type:
            raise VerificationError("the signature is for an image of another media type")
        return self.target.digest

    def _issued(self) -> str:
        check_issued(self.signature.chain)
        names = (each.x509.subject.rfc4514_string() or "-" for each in self.signature.chain)
        return " < ".join(names)[:_MAX_SHOWN]

    def _usage(self) -> str:
        check_leaf(self.signature.chain[0])
        return "code signing"

    def _signed(self) -> str:
        key = self.signature.chain[0].key
        check_signature(key.key, self.signature.algorithm, self.signature.signature, self.signature.signed)
        self.is_signed = True
        return key.fingerprint

    def _trusted(self) -> str:
        check_issued(self.signature.chain)
        for each in self.signature.chain:
            if each in self.attestor.store:
                self.is_trusted = True
                return (each.x509.subject.rfc4514_string() or "-")[:_MAX_SHOWN]
        raise VerificationError("no certificate of the chain is in the trust store")

    def _stamp(self) -> str:
        token = self.signature.timestamp
        if token is None:
            raise VerificationError("the signature has no time stamp")
        # the header holds the bare token, but the parser of time stamps expects a whole response
        response = _sequence(_GRANTED + token)
        self.stamped, self.stamping = verify_timestamp(
            response, self.signature.signature, self.attestor.time_authorities
        )
        return str(self.stamped)

    def _valid(self) -> str:
        if self.attestor.time_authorities and self.stamped is None:
            raise VerificationError("no time stamp proves when the signature was made")
        time = self.target.now if self.stamped is None else self.stamped
        check_valid(self.signature.chain, (time,))
        return str(self.signature.chain[0].x509.serial_number)

    def _expiry(self) -> str:
        expiry = self.signature.expiry
        if expiry is None:
            return "never"
        if self.target.now > expiry:
            raise VerificationError("the signature has expired")
        return str(expiry)

    def _revocation(self) -> str:
        # addresses in certificates are read only if a trusted party signed the certificates
        if not (self.is_signed and self.is_trusted):
            raise VerificationError("was not read, because the signer is not trusted")
        if self.stamping:
            check_revocation(self.stamping, self.read, self.target.now)
        return check_revocation(self.signature.chain, self.read, self.target.now)[:_MAX_SHOWN]

    def _annotation(self, name: str) -> str:
        annotations = target_of(self.signature).get("annotations")
        found = annotations.get(name) if isinstance(annotations, dict) else None
        if not isinstance(found, str):
            raise VerificationError("the signature has no such annotation")
        if not self.attestor.metadata[name].matches(found):
            text = self.attestor.metadata[name].text
            raise VerificationError(f"the signature says `{found[:_MAX_SHOWN]}` where `{text}` is demanded")
        return found


def _sequence(content: bytes) -> bytes:
    """Return the DER of a SEQUENCE."""
    size = len(content)
    if size < 0x80:
        return bytes((0x30, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8)
    return bytes((0x30, 0x80 | len(length))) + length + content
