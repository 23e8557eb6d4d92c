"""The chain from a signing certificate to a trusted authority.

The signature of each certificate, its validity and its permitted usages are checked. Issuers that led to a root are
cached, so that a later check verifies only the signature of the signer's certificate. A few whole chains are cached for
signatures that are verified again and again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.verification import Criticality, ExtensionPolicy, PolicyBuilder, Store
from cryptography.x509.verification import VerificationError as ChainError

from pyverno.errors import VerificationError
from pyverno.images.verification.certificates import MAX_CHAIN, Certificate, extension_value
from pyverno.value import dataclass

__all__ = ["VerifiedIssuers", "check_chain"]

_MAX_REMEMBERED: Final = 32
_MAX_CHAINS: Final = 64
_MAX_BYTES: Final = 16_384

_Key = tuple[tuple[Certificate, ...], tuple[Certificate, ...]]


@dataclass(frozen=True, slots=True)
class _Issuers:
    """The issuers of a verified chain, the nearest first, and when those above it are valid."""

    chain: tuple[Certificate, ...]
    verifier: PolicyBuilder
    begins: int
    ends: int


@dataclass(frozen=True, slots=True)
class _Chain:
    """A verified chain, and when all of its certificates are valid."""

    certificates: tuple[Certificate, ...]
    begins: int
    ends: int


class VerifiedIssuers:
    """A few issuers that led to roots, by these roots and the certificates that were offered.

    The cache holds facts that every signer shares: the signatures between the issuers, their order and their usage.
    Times, and all facts of the signer, are checked each time.
    """

    __slots__ = ("_chains", "_found")

    def __init__(self) -> None:
        """Begin with nothing."""
        self._found: dict[_Key, _Issuers] = {}
        self._chains: dict[tuple[_Key, Certificate], _Chain] = {}

    def chain_of(self, leaf: Certificate, key: _Key, time: int) -> tuple[Certificate, ...]:
        """Return the cached chain of a signer if all of it is valid at a time; else nothing."""
        found = self._chains.get((key, leaf))
        return found.certificates if found is not None and found.begins <= time <= found.ends else ()

    def find(self, key: _Key, time: int) -> _Issuers | None:
        """Return the issuers, if all of them above the first are valid at a time."""
        found = self._found.get(key)
        return found if found is not None and found.begins <= time <= found.ends else None

    def remember(self, key: _Key, chain: tuple[Certificate, ...]) -> None:
        """Cache a verified chain unless it is large, and its issuers unless they restrict the names of signers."""
        issuers = chain[1:]
        if sum(len(each.der) for part in (*key, chain) for each in part) <= _MAX_BYTES:
            if len(self._chains) >= _MAX_CHAINS:
                self._chains.clear()
            begins, ends = max(each.begins for each in chain), min(each.ends for each in chain)
            self._chains[key, chain[0]] = _Chain(chain, begins, ends)
        if key not in self._found:
            self._remember_issuers(key, issuers)

    def _remember_issuers(self, key: _Key, issuers: tuple[Certificate, ...]) -> None:
        above = issuers[1:]
        if not above or sum(len(each.der) for part in (*key, issuers) for each in part) > _MAX_BYTES:
            return
        if any(extension_value(each, x509.NameConstraints) is not None for each in issuers):
            return
        if len(self._found) >= _MAX_REMEMBERED:
            self._found.clear()
        begins, ends = max(each.begins for each in above), min(each.ends for each in above)
        self._found[key] = _Issuers(issuers, _verifier(Store([issuers[0].x509])), begins, ends)


def check_chain(
    leaf: Certificate,
    intermediates: Iterable[Certificate],
    roots: Sequence[Certificate],
    time: int,
    usage: x509.ObjectIdentifier = ExtendedKeyUsageOID.CODE_SIGNING,
    *,
    known: VerifiedIssuers | None = None,
) -> tuple[Certificate, ...]:
    """Return the chain from the leaf to a root, all valid at a time (seconds since 1970).

    Authorities that are restricted to some usages must be allowed `usage`. Signers choose the intermediates, and the
    search tries every issuer of every certificate; their number is limited, and no two have the same subject and key.
    Raises VerificationError.
    """
    offered = tuple(dict.fromkeys(intermediates))
    if len(offered) > MAX_CHAIN:
        raise VerificationError(f"there are more than {MAX_CHAIN} intermediate certificates")
    if len(offered) > 1 and len({(each.x509.subject, _key_bytes(each)) for each in offered}) < len(offered):
        raise VerificationError("two intermediate certificates have the same subject and key")
    if not roots:
        raise VerificationError("there is no trusted authority")
    if not leaf.begins <= time <= leaf.ends:
        raise VerificationError(f"the certificate was not valid at {_date(time)}")
    key = (tuple(roots), offered)
    chain = known.chain_of(leaf, key, time) if known is not None else ()
    if not chain:
        remembered = known.find(key, time) if known is not None else None
        chain = _issued_by(leaf, remembered, time) if remembered is not None else ()
        chain = chain or _search(leaf, offered, roots, time)
        if known is not None:
            known.remember(key, chain)
    for each in chain[1:]:
        allowed = extension_value(each, x509.ExtendedKeyUsage)
        if allowed is not None and usage not in allowed and ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE not in allowed:
            raise VerificationError("an authority of the chain is not for certificates of this usage")
    return chain


def _issued_by(leaf: Certificate, issuers: _Issuers, time: int) -> tuple[Certificate, ...]:
    """Return the chain if the first of the issuers issued the leaf, nothing if it did not."""
    try:
        found = _verified(leaf, issuers.verifier, (), time)
    except (ChainError, ValueError, UnsupportedAlgorithm):
        return ()
    return (leaf, *issuers.chain) if len(found) == 2 else ()


def _search(
    leaf: Certificate, offered: Sequence[Certificate], roots: Sequence[Certificate], time: int
) -> tuple[Certificate, ...]:
    try:
        found = _verified(leaf, _verifier(Store([each.x509 for each in roots])), offered, time)
    except (ChainError, ValueError, UnsupportedAlgorithm):
        raise VerificationError(f"the certificate does not lead to a trusted authority at {_date(time)}") from None
    return (leaf, *(Certificate(each.public_bytes(Encoding.DER), each) for each in found[1:]))


def _verifier(store: Store) -> PolicyBuilder:
    """Return what verifies chains to the roots of a store, once the time is set."""
    authority = (
        ExtensionPolicy.permit_all()
        .require_present(x509.BasicConstraints, Criticality.AGNOSTIC, None)
        .may_be_present(x509.KeyUsage, Criticality.AGNOSTIC, _may_sign_certificates)
    )
    return (
        PolicyBuilder()
        .store(store)
        .max_chain_depth(MAX_CHAIN)
        .extension_policies(ca_policy=authority, ee_policy=ExtensionPolicy.permit_all())
    )


def _verified(
    leaf: Certificate, builder: PolicyBuilder, offered: Sequence[Certificate], time: int
) -> Sequence[x509.Certificate]:
    verifier = builder.time(datetime.fromtimestamp(time, UTC)).build_client_verifier()
    return verifier.verify(leaf.x509, [each.x509 for each in offered]).chain


def _key_bytes(certificate: Certificate) -> bytes:
    try:
        return certificate.x509.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    except (ValueError, UnsupportedAlgorithm):
        return b""  # a key that cannot be read signs nothing


def _may_sign_certificates(_policy: object, _certificate: x509.Certificate, usage: x509.KeyUsage | None) -> None:
    if usage is not None and not usage.key_cert_sign:
        raise ValueError("the key may not sign certificates")


def _date(time: int) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
