"""Signing certificates: reading them, and the identity of the signer.

Identities are those of Fulcio's certificates: the subject alternative names, and the extensions below the object
identifier 1.3.6.1.4.1.57264.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID

from pyverno.errors import VerificationError
from pyverno.images.verification.keys import MAX_PEM, PublicKey, pem_blocks, public_key
from pyverno.lang.x509.der import elements
from pyverno.value import dataclass, field

__all__ = [
    "EXTENSION_NAMES",
    "MAX_CHAIN",
    "Certificate",
    "check_code_signing",
    "extension_value",
    "extensions_of",
    "issuer_of",
    "read_certificate",
    "read_certificates",
    "subjects_of",
]

FULCIO: Final = "1.3.6.1.4.1.57264.1"
_RAW: Final = range(1, 7)
_ISSUER: Final = f"{FULCIO}.1"
_ISSUER_V2: Final = f"{FULCIO}.8"
_OTHER_NAME: Final = f"{FULCIO}.7"
MAX_CHAIN: Final = 10
"""The most certificates between a signer and a root."""

_UTF8: Final = 0x0C

EXTENSION_NAMES: Final[Mapping[str, str]] = {
    "oidcIssuer": f"{FULCIO}.1",
    "githubWorkflowTrigger": f"{FULCIO}.2",
    "githubWorkflowSha": f"{FULCIO}.3",
    "githubWorkflowName": f"{FULCIO}.4",
    "githubWorkflowRepository": f"{FULCIO}.5",
    "githubWorkflowRef": f"{FULCIO}.6",
}
"""Names of extensions that policies may use instead of object identifiers."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate, compared by its DER."""

    der: bytes
    x509: x509.Certificate = field(compare=False, repr=False)

    @property
    def key(self) -> PublicKey:
        """The key that the certificate is for; raises VerificationError for an unsupported one."""
        try:
            return public_key(self.x509.public_key(), "the key of the certificate")
        except (ValueError, UnsupportedAlgorithm):
            raise VerificationError("the key of the certificate cannot be read") from None

    @property
    def is_self_issued(self) -> bool:
        """Whether subject and issuer are the same, as in a root."""
        return self.x509.subject == self.x509.issuer

    @property
    def begins(self) -> int:
        """When the certificate becomes valid, in seconds since 1970."""
        return int(self.x509.not_valid_before_utc.timestamp())

    @property
    def ends(self) -> int:
        """Until when the certificate is valid, in seconds since 1970."""
        return int(self.x509.not_valid_after_utc.timestamp())


def read_certificate(data: bytes, what: str = "the certificate") -> Certificate:
    """Read one certificate, as PEM or DER; raises VerificationError."""
    if len(data) > MAX_PEM:
        raise VerificationError(f"{what} is longer than {MAX_PEM} bytes")
    try:
        is_pem = data.lstrip().startswith(b"-----BEGIN")
        found = x509.load_pem_x509_certificate(data) if is_pem else x509.load_der_x509_certificate(data)
        # cryptography parses these fields on first access; later accesses must not fail
        _ = found.subject, found.issuer, found.not_valid_before_utc, found.not_valid_after_utc
        return Certificate(found.public_bytes(Encoding.DER), found)
    except (TypeError, ValueError, UnsupportedAlgorithm, x509.InvalidVersion):  # TypeError: a name of another kind
        raise VerificationError(f"{what} cannot be read") from None


def read_certificates(text: str, what: str = "the certificates") -> tuple[Certificate, ...]:
    """Read the PEM blocks of a text, at most ten certificates; raises VerificationError."""
    blocks = pem_blocks(text, what)
    if not 0 < len(blocks) <= MAX_CHAIN:
        raise VerificationError(f"{what} must have 1 to {MAX_CHAIN} certificates")
    if any(label != "CERTIFICATE" for label, _ in blocks):
        raise VerificationError(f"{what} holds a PEM block that is no certificate")
    return tuple(read_certificate(block.encode(), what) for _, block in blocks)


def check_code_signing(leaf: Certificate) -> None:
    """Raise VerificationError unless a certificate is for signing code and is no authority."""
    constraints = extension_value(leaf, x509.BasicConstraints)
    if constraints is not None and constraints.ca:
        raise VerificationError("the certificate is one of an authority")
    usage = extension_value(leaf, x509.KeyUsage)
    if usage is not None and not usage.digital_signature:
        raise VerificationError("the certificate is not for digital signatures")
    extended = extension_value(leaf, x509.ExtendedKeyUsage)
    if extended is None or ExtendedKeyUsageOID.CODE_SIGNING not in extended:
        raise VerificationError("the certificate is not for signing code")


# ---------------------------------------------------------------------------------------------------------- identity


def subjects_of(leaf: Certificate) -> tuple[str, ...]:
    """Return the subject alternative names that can be an identity: emails, URIs, Fulcio's other names, DNS names."""
    names = extension_value(leaf, x509.SubjectAlternativeName)
    if names is None:
        return ()
    found: list[str] = []
    for name in names:
        match name:
            case x509.RFC822Name() | x509.UniformResourceIdentifier() | x509.DNSName():
                found.append(name.value)
            case x509.IPAddress():
                found.append(str(name.value))
            case x509.OtherName() if name.type_id.dotted_string == _OTHER_NAME:
                found.append(_utf8(name.value, "the subject of the certificate"))
            case _:
                pass
    return tuple(found)


def issuer_of(leaf: Certificate) -> str:
    """Return the issuer that authenticated the signer, "" if the certificate has none.

    Raises VerificationError when the two extensions that hold it differ.
    """
    found = extensions_of(leaf)
    first, second = found.get(_ISSUER), found.get(_ISSUER_V2)
    if first is not None and second is not None and first != second:
        raise VerificationError("the certificate names two issuers")
    return second or first or ""


def extensions_of(leaf: Certificate) -> Mapping[str, str]:
    """Return Fulcio's extensions by object identifier; raises VerificationError for one that cannot be read."""
    found: dict[str, str] = {}
    for extension in _extensions(leaf):
        identifier = extension.oid.dotted_string
        prefix, _, number = identifier.rpartition(".")
        if prefix != FULCIO or not isinstance(extension.value, x509.UnrecognizedExtension):
            continue
        raw = extension.value.value
        try:
            found[identifier] = raw.decode() if int(number) in _RAW else _utf8(raw, f"the extension {identifier}")
        except UnicodeDecodeError:
            raise VerificationError(f"the extension {identifier} is no text") from None
    return found


def _extensions(certificate: Certificate) -> x509.Extensions:
    try:
        return certificate.x509.extensions
    except (TypeError, ValueError, x509.DuplicateExtension, UnsupportedAlgorithm):
        raise VerificationError("the extensions of the certificate cannot be read") from None


def extension_value(certificate: Certificate, kind: type[x509.ExtensionType]) -> Any:
    """Return the value of an extension, None for a missing one; raises VerificationError for one that is unreadable."""
    try:
        return _extensions(certificate).get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None


def _utf8(der: bytes, what: str) -> str:
    """Read the DER of one UTF8String."""
    try:
        found = tuple(elements(der))
        if len(found) == 1 and found[0].tag == _UTF8:
            return found[0].content.decode()
    except ValueError:
        pass
    raise VerificationError(f"{what} is no text")
