"""Revocation lists and OCSP answers of an issuer of Notary certificates."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import ocsp
from cryptography.x509.oid import AuthorityInformationAccessOID

from tests.authority.certificates import moment
from tests.authority.notary import NotarySigner

__all__ = ["list_at", "ocsp_answer", "responder_at", "revocation_list"]

_DAY = 86_400


def list_at(*urls: str) -> x509.CRLDistributionPoints:
    """Return the extension that names revocation lists."""
    points = [x509.DistributionPoint([x509.UniformResourceIdentifier(url)], None, None, None) for url in urls]
    return x509.CRLDistributionPoints(points)


def responder_at(*urls: str) -> x509.AuthorityInformationAccess:
    """Return the extension that names OCSP responders."""
    places = (x509.UniformResourceIdentifier(url) for url in urls)
    return x509.AuthorityInformationAccess(
        [x509.AccessDescription(AuthorityInformationAccessOID.OCSP, each) for each in places]
    )


def revocation_list(
    issuer: NotarySigner,
    revoked: Sequence[int] = (),
    *,
    made: int | None = None,
    seconds: int = _DAY,
    extensions: Sequence[tuple[x509.ExtensionType, bool]] = (),
    key: Any = None,
) -> bytes:
    """Return a list of serial numbers, signed by the issuer's root or another key."""
    begins = moment(issuer.now - 60 if made is None else made)
    builder = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(issuer.root.subject)
        .last_update(begins)
        .next_update(begins + timedelta(seconds=seconds))
    )
    for serial in revoked:
        entry = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(begins).build()
        builder = builder.add_revoked_certificate(entry)
    for value, is_critical in extensions:
        builder = builder.add_extension(value, critical=is_critical)
    return builder.sign(key or issuer.root_key, hashes.SHA256()).public_bytes(Encoding.DER)


def ocsp_answer(
    issuer: NotarySigner,
    certificate: x509.Certificate,
    status: ocsp.OCSPCertStatus = ocsp.OCSPCertStatus.GOOD,
    *,
    made: int | None = None,
    seconds: int | None = _DAY,
    responder: tuple[x509.Certificate, Any] | None = None,
) -> bytes:
    """Return an answer of the issuer's root, or of a responder with its certificate and key."""
    begins = moment(issuer.now - 60 if made is None else made)
    signer, key = responder or (issuer.root, issuer.root_key)
    is_revoked = status is ocsp.OCSPCertStatus.REVOKED
    builder = (
        ocsp.OCSPResponseBuilder()
        .add_response(
            certificate,
            issuer.root,
            hashes.SHA256(),
            status,
            begins,
            None if seconds is None else begins + timedelta(seconds=seconds),
            begins if is_revoked else None,
            None,
        )
        .responder_id(ocsp.OCSPResponderEncoding.HASH, signer)
    )
    if responder is not None:
        builder = builder.certificates([signer])
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.DER)
