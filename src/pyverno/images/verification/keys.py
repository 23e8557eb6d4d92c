"""Public keys: read from PEM, and the check of a signature.

Keys are ECDSA on a NIST curve, RSA with PKCS #1 v1.5, or Ed25519, as cosign uses them.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa

from pyverno.errors import VerificationError
from pyverno.lazyregex import regex
from pyverno.value import dataclass, field

__all__ = [
    "HASHES",
    "KMS_SCHEMES",
    "MAX_PEM",
    "PublicKey",
    "PublicKeyTypes",
    "format_pem",
    "pem_blocks",
    "read_key",
    "read_keys",
]

MAX_PEM: Final = 262_144
"""The longest PEM text, in bytes."""

HASHES: Final[Mapping[str, Callable[[], hashes.HashAlgorithm]]] = {
    "sha224": hashes.SHA224,
    "sha256": hashes.SHA256,
    "sha384": hashes.SHA384,
    "sha512": hashes.SHA512,
}
"""Digest algorithms that a policy may name for ECDSA and RSA keys."""

KMS_SCHEMES: Final = ("awskms://", "azurekms://", "gcpkms://", "hashivault://")
"""Key management systems whose public keys can be fetched."""

_MIN_RSA_BITS: Final = 2048
_PEM_LINE: Final = 64
_BLOCK: Final = regex(r"-----BEGIN ([A-Z0-9 ]+)-----\s[A-Za-z0-9+/=\s]+?-----END \1-----")

PublicKeyTypes = ec.EllipticCurvePublicKey | rsa.RSAPublicKey | ed25519.Ed25519PublicKey


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A key that checks signatures; `der` is its SubjectPublicKeyInfo, by which keys are compared."""

    der: bytes
    key: PublicKeyTypes = field(compare=False, repr=False)

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the key in hex, which is also the id of a transparency log."""
        return hashlib.sha256(self.der).hexdigest()

    def check(self, signature: bytes, signed: bytes, *, hash_name: str = "sha256", what: str = "the signature") -> None:
        """Raise VerificationError unless the key made the signature; Ed25519 ignores `hash_name`."""
        algorithm = HASHES.get(hash_name)
        if algorithm is None:
            raise VerificationError(f"unknown digest algorithm `{hash_name}`, must be {', '.join(HASHES)}")
        try:
            match self.key:
                case ec.EllipticCurvePublicKey():
                    self.key.verify(signature, signed, ec.ECDSA(algorithm()))
                case ed25519.Ed25519PublicKey():
                    self.key.verify(signature, signed)
                case rsa.RSAPublicKey():
                    self.key.verify(signature, signed, padding.PKCS1v15(), algorithm())
        except (InvalidSignature, ValueError):
            raise VerificationError(f"{what} was not made by this key") from None
        except UnsupportedAlgorithm:
            raise VerificationError(f"{what} uses an algorithm that is not supported") from None


def public_key(key: object, what: str) -> PublicKey:
    """Return a key of `cryptography` as ours; raises VerificationError for an unsupported or weak one."""
    if isinstance(key, rsa.RSAPublicKey) and key.key_size < _MIN_RSA_BITS:
        raise VerificationError(f"{what} has {key.key_size} bits, must have at least {_MIN_RSA_BITS}")
    if not isinstance(key, ec.EllipticCurvePublicKey | rsa.RSAPublicKey | ed25519.Ed25519PublicKey):
        raise VerificationError(f"{what} is no ECDSA, RSA or Ed25519 key")
    der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return PublicKey(der, key)


def read_key(data: bytes, what: str = "the public key") -> PublicKey:
    """Read one key, as PEM or as the DER of a SubjectPublicKeyInfo; raises VerificationError."""
    if len(data) > MAX_PEM:
        raise VerificationError(f"{what} is longer than {MAX_PEM} bytes")
    try:
        if data.lstrip().startswith(b"-----BEGIN"):
            return public_key(serialization.load_pem_public_key(data), what)
        return public_key(serialization.load_der_public_key(data), what)
    except (ValueError, UnsupportedAlgorithm):
        raise VerificationError(f"{what} cannot be read") from None


def read_keys(text: str, what: str = "the public key") -> Sequence[PublicKey]:
    """Read all PEM blocks of a text as keys; raises VerificationError without a block, or for one that is not a key."""
    found = tuple(read_key(block.encode(), what) for label, block in pem_blocks(text, what))
    if not found:
        raise VerificationError(f"{what} holds no PEM block")
    return found


def format_pem(label: str, der: bytes) -> bytes:
    """Return a PEM block as signers write it: lines of 64 characters, and a line feed at the end."""
    text = base64.b64encode(der)
    lines = b"\n".join(text[start : start + _PEM_LINE] for start in range(0, len(text), _PEM_LINE))
    return b"-----BEGIN %b-----\n%b\n-----END %b-----\n" % (label.encode(), lines, label.encode())


def pem_blocks(text: str, what: str) -> Sequence[tuple[str, str]]:
    """Return label and text of each PEM block; raises VerificationError for an excessive size or a broken block."""
    if len(text) > MAX_PEM:
        raise VerificationError(f"{what} is longer than {MAX_PEM} characters")
    found = tuple((match[1], match[0]) for match in _BLOCK.finditer(text))
    if len(found) != text.count("-----BEGIN "):
        raise VerificationError(f"{what} holds a broken PEM block")
    return found
