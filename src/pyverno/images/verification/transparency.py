"""Signed certificate timestamps: proofs that a certificate transparency log accepted a certificate."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.certificate_transparency import LogEntryType, SignedCertificateTimestamp, Version

from pyverno.errors import VerificationError
from pyverno.images.verification.certificates import Certificate
from pyverno.images.verification.trust import TransparencyLog

__all__ = ["check_certificate_logged"]

_MAX_TIMESTAMPS: Final = 16
_PRECERTIFICATE: Final = 1


def check_certificate_logged(leaf: Certificate, issuer: Certificate, logs: Sequence[TransparencyLog]) -> None:
    """Raise VerificationError unless a trusted log signed that it knows the certificate.

    The proof is the one embedded in the certificate; `issuer` is the certificate next in its verified chain.
    """
    problems: list[str] = []
    for timestamp in _embedded(leaf):
        log = next((each for each in logs if each.key.fingerprint == timestamp.log_id.hex()), None)
        if log is None:
            problems.append("the log of the certificate timestamp is not trusted")
            continue
        try:
            _check(timestamp, leaf, issuer, log)
            return
        except VerificationError as error:
            problems.append(error.message)
    raise VerificationError(problems[0] if problems else "the certificate has no certificate timestamp")


def _embedded(leaf: Certificate) -> Sequence[SignedCertificateTimestamp]:
    try:
        extension = leaf.x509.extensions.get_extension_for_class(x509.PrecertificateSignedCertificateTimestamps)
        found = tuple(extension.value)
    except x509.ExtensionNotFound:
        return ()
    except (ValueError, x509.DuplicateExtension, UnsupportedAlgorithm):
        raise VerificationError("the certificate timestamps cannot be read") from None
    if len(found) > _MAX_TIMESTAMPS:
        raise VerificationError(f"the certificate has more than {_MAX_TIMESTAMPS} certificate timestamps")
    return found


def _check(timestamp: SignedCertificateTimestamp, leaf: Certificate, issuer: Certificate, log: TransparencyLog) -> None:
    if timestamp.version is not Version.v1 or timestamp.entry_type is not LogEntryType.PRE_CERTIFICATE:
        raise VerificationError("the certificate timestamp is of an unknown kind")
    made = timestamp.timestamp
    milliseconds = int(made.timestamp()) * 1000 + made.microsecond // 1000
    if not log.is_valid_at(milliseconds // 1000):
        raise VerificationError("the log of the certificate timestamp was not in use then")
    try:
        body = leaf.x509.tbs_precertificate_bytes
    except ValueError:
        raise VerificationError("the certificate timestamps cannot be read") from None
    issuer_key = issuer.x509.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    extensions = timestamp.extension_bytes
    signed = b"".join(
        (
            struct.pack(">BBQH", 0, 0, milliseconds, _PRECERTIFICATE),
            hashlib.sha256(issuer_key).digest(),
            len(body).to_bytes(3),
            body,
            len(extensions).to_bytes(2),
            extensions,
        )
    )
    log.key.check(timestamp.signature, signed, what="the certificate timestamp")
