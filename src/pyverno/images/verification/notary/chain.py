"""The certificate chain of a Notary signature: complete to its root, each issued by the next, for signing code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.x509.oid import ExtendedKeyUsageOID

from pyverno.errors import VerificationError
from pyverno.images.verification.certificates import Certificate
from pyverno.images.verification.notary.algorithms import algorithm_of

__all__ = ["check_issued", "check_leaf", "check_valid"]

_HASHES: Final = frozenset({"sha256", "sha384", "sha512"})
_FOREIGN: Final = (
    ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE,
    ExtendedKeyUsageOID.SERVER_AUTH,
    ExtendedKeyUsageOID.EMAIL_PROTECTION,
    ExtendedKeyUsageOID.TIME_STAMPING,
    ExtendedKeyUsageOID.OCSP_SIGNING,
)


def check_issued(chain: Sequence[Certificate]) -> None:
    """Raise VerificationError unless each certificate is issued by the next one and the last one by itself.

    Issuers must be authorities that may sign certificates, for at least as long a chain as is below them.
    """
    for position, each in enumerate(chain):
        issuer = chain[min(position + 1, len(chain) - 1)]
        try:
            digest = each.x509.signature_hash_algorithm
        except UnsupportedAlgorithm:
            digest = None
        if digest is None or digest.name not in _HASHES:
            raise VerificationError("a certificate of the chain is signed with an algorithm that is not allowed")
        try:
            each.x509.verify_directly_issued_by(issuer.x509)
        except (InvalidSignature, ValueError, TypeError, UnsupportedAlgorithm):
            text = "the root" if issuer is each else "the next certificate"
            raise VerificationError(f"certificate {position + 1} of the chain is not issued by {text}") from None
        if position:
            _check_authority(each, position)


def _check_authority(certificate: Certificate, position: int) -> None:
    extensions = _extensions(certificate)
    constraints, usage = _find(extensions, x509.BasicConstraints), _find(extensions, x509.KeyUsage)
    if constraints is None or not constraints.ca:
        raise VerificationError(f"certificate {position + 1} of the chain is no authority")
    if constraints.path_length is not None and constraints.path_length < position - 1:
        raise VerificationError(f"certificate {position + 1} of the chain allows only a shorter chain")
    if usage is not None and not usage.key_cert_sign:
        raise VerificationError(f"certificate {position + 1} of the chain may not sign certificates")


def check_leaf(leaf: Certificate) -> None:
    """Raise VerificationError unless a certificate is for signing code, with a key that Notary allows."""
    extensions = _extensions(leaf)
    constraints = _find(extensions, x509.BasicConstraints)
    if constraints is not None and constraints.ca:
        raise VerificationError("the certificate is one of an authority")
    try:
        usage = extensions.get_extension_for_class(x509.KeyUsage)
    except x509.ExtensionNotFound:
        raise VerificationError("the certificate has no key usage") from None
    if not usage.critical or not usage.value.digital_signature:
        raise VerificationError("the key usage of the certificate is not critical, or not for digital signatures")
    extended = _find(extensions, x509.ExtendedKeyUsage)
    if extended is not None:
        if ExtendedKeyUsageOID.CODE_SIGNING not in extended:
            raise VerificationError("the certificate is not for signing code")
        if any(each in extended for each in _FOREIGN):
            raise VerificationError("the certificate is for other uses than signing code")
    algorithm_of(leaf.key.key)


def check_valid(chain: Iterable[Certificate], times: Sequence[int]) -> None:
    """Raise VerificationError unless all certificates are valid at all times."""
    for position, each in enumerate(chain):
        if not all(each.begins <= time <= each.ends for time in times):
            raise VerificationError(
                f"certificate {position + 1} of the chain was not valid when the signature was made"
            )


def _extensions(certificate: Certificate) -> x509.Extensions:
    try:
        return certificate.x509.extensions
    except (ValueError, x509.DuplicateExtension, UnsupportedAlgorithm):
        raise VerificationError("the extensions of a certificate cannot be read") from None


def _find(extensions: x509.Extensions, kind: type[x509.ExtensionType]) -> Any:
    try:
        return extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None
