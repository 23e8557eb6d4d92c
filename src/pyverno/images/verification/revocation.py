"""Revocation of certificates, checked by OCSP responses and revocation lists.

Each certificate of a chain is checked with its responders, and with its lists where no responder decides. A certificate
that names neither cannot be revoked. An answer counts only when the issuer signed it, or a responder that the issuer
authorized, and while it is current; a source that cannot be read leaves the certificate undecided, which never counts
as a pass. This module must never open a connection: the caller passes the function that reads each source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import ocsp
from cryptography.x509.oid import AuthorityInformationAccessOID, ExtendedKeyUsageOID

from pyverno.errors import HostError, VerificationError
from pyverno.images.verification.certificates import Certificate, extension_value
from pyverno.value import dataclass

__all__ = ["MAX_ANSWER", "ReadRevocation", "check_revocation", "current_until", "no_revocations"]

ReadRevocation = Callable[[str, bytes], bytes]
"""Returns the response to an OCSP request, or the revocation list for an empty request; raises HostError."""

MAX_ANSWER: Final = 4 * 1024 * 1024
"""The longest answer, in bytes; lists of large authorities have some megabytes."""

_MAX_PLACES: Final = 10
_MAX_CERTIFICATES: Final = 10
_MAX_SHOWN: Final = 200
_SKEW: Final = 300
_HASHES: Final = frozenset({"sha256", "sha384", "sha512"})


class _RevokedError(VerificationError):
    """A certificate is revoked; no other source can change that."""


@dataclass(frozen=True, slots=True)
class _Places:
    """Addresses of a certificate's responders and lists."""

    responders: tuple[str, ...]
    lists: tuple[str, ...]


def no_revocations(_url: str, _request: bytes) -> bytes:
    """Raise HostError: without a reader, a certificate that names a revocation source stays undecided."""
    raise HostError("nothing here reads revocations")


def check_revocation(chain: Sequence[Certificate], read: ReadRevocation, now: int) -> str:
    """Return the evidence that no certificate of a chain is revoked; raises VerificationError otherwise.

    Each certificate of the chain is issued by the next one, and the last one is trusted.
    """
    consulted: list[str] = []
    for position, each in enumerate(chain[:-1]):
        places = _places(each)
        if places.responders or places.lists:
            try:
                consulted.append(_check(each, chain[position + 1], places, read, now))
            except _RevokedError as error:
                raise VerificationError(f"certificate {position + 1} is revoked: {error.message}") from None
            except VerificationError as error:
                raise VerificationError(f"certificate {position + 1} may be revoked: {error.message}") from None
    return ", ".join(dict.fromkeys(consulted)) or "the certificates name no place where it could be read"


def _check(certificate: Certificate, issuer: Certificate, places: _Places, read: ReadRevocation, now: int) -> str:
    """Return the source that shows that a certificate is not revoked."""
    problem: VerificationError | None = None
    for url in places.responders:
        try:
            _check_responder(certificate, issuer, url, read, now)
            return url
        except _RevokedError:
            raise
        except VerificationError as error:
            problem = problem or error
    if problem is not None and not places.lists:
        raise problem
    for url in places.lists:
        _check_list(certificate, issuer, url, read, now)
    return places.lists[0]


def _read(read: ReadRevocation, url: str, request: bytes) -> bytes:
    shown = url[:_MAX_SHOWN]
    if not url.startswith(("http://", "https://")):
        raise VerificationError(f"{shown}: only HTTP can be read")
    try:
        return read(url, request)
    except HostError as error:
        raise VerificationError(f"{shown}: {error.message}") from None


# ---------------------------------------------------------------------------------------------------------- responders


def _check_responder(certificate: Certificate, issuer: Certificate, url: str, read: ReadRevocation, now: int) -> None:
    answer = _read(read, url, _request(certificate, issuer, hashes.SHA256()).public_bytes(Encoding.DER))
    shown = url[:_MAX_SHOWN]
    try:
        response = ocsp.load_der_ocsp_response(answer)
        if response.response_status is not ocsp.OCSPResponseStatus.SUCCESSFUL:
            raise VerificationError(f"{shown}: the responder answers {response.response_status.name.lower()}")
        wanted = _request(certificate, issuer, response.hash_algorithm)
        is_same = (
            response.serial_number == wanted.serial_number
            and response.issuer_key_hash == wanted.issuer_key_hash
            and response.issuer_name_hash == wanted.issuer_name_hash
        )
        status, period = response.certificate_status, (response.this_update_utc, response.next_update_utc)
        is_signed = _is_signed(response, issuer, now)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise VerificationError(f"{shown}: the answer cannot be read") from None
    if not is_same:
        raise VerificationError(f"{shown}: the answer is for another certificate")
    if not is_signed:
        raise VerificationError(f"{shown}: the answer is not signed by the issuer or for it")
    _check_current(period, now, shown)
    if status is ocsp.OCSPCertStatus.REVOKED:
        raise _RevokedError(shown)
    if status is not ocsp.OCSPCertStatus.GOOD:
        raise VerificationError(f"{shown}: the responder does not know the certificate")


def _request(certificate: Certificate, issuer: Certificate, algorithm: hashes.HashAlgorithm) -> ocsp.OCSPRequest:
    return ocsp.OCSPRequestBuilder().add_certificate(certificate.x509, issuer.x509, algorithm).build()


def _is_signed(response: ocsp.OCSPResponse, issuer: Certificate, now: int) -> bool:
    digest = response.signature_hash_algorithm
    if digest is None or digest.name not in _HASHES:
        return False
    embedded = response.certificates[:_MAX_CERTIFICATES]
    delegates = (Certificate(each.public_bytes(Encoding.DER), each) for each in embedded)
    for each in (issuer, *(one for one in delegates if _may_respond(one, issuer, now))):
        try:
            each.key.check(response.signature, response.tbs_response_bytes, hash_name=digest.name)
            return True
        except VerificationError:
            continue
    return False


def _may_respond(delegate: Certificate, issuer: Certificate, now: int) -> bool:
    """Return whether the issuer authorized a certificate to answer in its place."""
    try:
        delegate.x509.verify_directly_issued_by(issuer.x509)
        usage = extension_value(delegate, x509.ExtendedKeyUsage)
    except (InvalidSignature, ValueError, TypeError, UnsupportedAlgorithm, VerificationError):
        return False
    is_valid = delegate.begins <= now <= delegate.ends
    return is_valid and usage is not None and ExtendedKeyUsageOID.OCSP_SIGNING in usage


# --------------------------------------------------------------------------------------------------------------- lists


def _check_list(certificate: Certificate, issuer: Certificate, url: str, read: ReadRevocation, now: int) -> None:
    answer, shown = _read(read, url, b""), url[:_MAX_SHOWN]
    try:
        found = x509.load_der_x509_crl(answer)
        digest = found.signature_hash_algorithm
        is_signed = (
            found.issuer == issuer.x509.subject
            and digest is not None
            and digest.name in _HASHES
            and found.is_signature_valid(issuer.x509.public_key())  # type: ignore[arg-type]
            and _may_sign_lists(issuer)
        )
        period = (found.last_update_utc, found.next_update_utc)
        is_whole = all(_covers(each, certificate) for each in found.extensions)
        entry = found.get_revoked_certificate_by_serial_number(certificate.x509.serial_number)
    except (ValueError, TypeError, UnsupportedAlgorithm, x509.DuplicateExtension):
        raise VerificationError(f"{shown}: the list cannot be read") from None
    if not is_signed:
        raise VerificationError(f"{shown}: the list is not signed by the issuer")
    _check_current(period, now, shown)
    if not is_whole:
        raise VerificationError(f"{shown}: the list is only a part, or for other certificates")
    if entry is not None:
        raise _RevokedError(shown)


def _may_sign_lists(issuer: Certificate) -> bool:
    usage = extension_value(issuer, x509.KeyUsage)
    return usage is None or bool(usage.crl_sign)


def _covers(extension: x509.Extension[x509.ExtensionType], certificate: Certificate) -> bool:
    """Return whether a list with an extension still holds every revocation of a certificate."""
    found = extension.value
    if isinstance(found, x509.FreshestCRL | x509.DeltaCRLIndicator):
        return False
    if not isinstance(found, x509.IssuingDistributionPoint):
        return not extension.critical
    constraints = extension_value(certificate, x509.BasicConstraints)
    is_authority = constraints is not None and bool(constraints.ca)
    is_other = found.only_contains_user_certs if is_authority else found.only_contains_ca_certs
    return not (is_other or found.indirect_crl or found.only_contains_attribute_certs or found.only_some_reasons)


# -------------------------------------------------------------------------------------------------------------- common


def _places(certificate: Certificate) -> _Places:
    responders: list[str] = []
    lists: list[str] = []
    for access in extension_value(certificate, x509.AuthorityInformationAccess) or ():
        if access.access_method == AuthorityInformationAccessOID.OCSP:
            responders.append(str(access.access_location.value))
    for point in extension_value(certificate, x509.CRLDistributionPoints) or ():
        lists.extend(_names(point.full_name))
    if len(responders) + len(lists) > _MAX_PLACES:
        raise VerificationError(f"a certificate names more than {_MAX_PLACES} places for its revocation")
    return _Places(tuple(responders), tuple(lists))


def _names(names: Iterable[x509.GeneralName] | None) -> list[str]:
    # a point without an address is kept: its list cannot be read, which must not look like no list
    return [str(each.value) for each in names] if names else ["a place without an address"]


def _check_current(period: tuple[datetime, datetime | None], now: int, shown: str) -> None:
    begins, ends = period
    if begins.timestamp() > now + _SKEW or ends is None or ends.timestamp() < now:
        raise VerificationError(f"{shown}: the answer is not current")


def current_until(answer: bytes, request: bytes) -> int:
    """Return until when an answer may be kept, in seconds since 1970; 0 for one that cannot be read."""
    try:
        if request:
            ends = ocsp.load_der_ocsp_response(answer).next_update_utc
        else:
            ends = x509.load_der_x509_crl(answer).next_update_utc
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return 0
    return int(ends.timestamp()) if ends is not None else 0
