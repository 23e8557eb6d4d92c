"""Signature algorithms of Notary: the kind and size of a key fix the algorithm, and nothing else is accepted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from pyverno.errors import VerificationError
from pyverno.images.verification.keys import PublicKeyTypes

__all__ = ["algorithm_of", "check_signature"]

_HASHES: Final[Mapping[str, Callable[[], hashes.HashAlgorithm]]] = {
    "256": hashes.SHA256,
    "384": hashes.SHA384,
    "512": hashes.SHA512,
}
_CURVES: Final = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_RSA: Final = {2048: "PS256", 3072: "PS384", 4096: "PS512"}


def algorithm_of(key: PublicKeyTypes) -> str:
    """Return the one algorithm that a key may sign with; raises VerificationError for other keys."""
    if isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name in _CURVES:
        return _CURVES[key.curve.name]
    if isinstance(key, rsa.RSAPublicKey) and key.key_size in _RSA:
        return _RSA[key.key_size]
    raise VerificationError("the certificate has a key that Notary does not allow")


def check_signature(key: PublicKeyTypes, algorithm: str, signature: bytes, signed: bytes) -> None:
    """Raise VerificationError unless the key made a signature with the algorithm that belongs to it."""
    allowed = algorithm_of(key)
    if algorithm != allowed:
        raise VerificationError(
            f"the signature uses `{algorithm[:32]}`, the key of its certificate demands `{allowed}`"
        )
    digest = _HASHES[allowed[2:]]()
    try:
        if isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(_der(signature, (key.curve.key_size + 7) // 8), signed, ec.ECDSA(digest))
        elif isinstance(key, rsa.RSAPublicKey):
            key.verify(signature, signed, padding.PSS(padding.MGF1(digest), digest.digest_size), digest)
    except (InvalidSignature, ValueError, UnsupportedAlgorithm):
        raise VerificationError("the signature was not made by the key of its certificate") from None


def _der(signature: bytes, size: int) -> bytes:
    """Return an ECDSA signature as DER; envelopes hold two numbers of fixed length."""
    if len(signature) != 2 * size:
        raise VerificationError("the signature has a wrong length")
    return encode_dss_signature(int.from_bytes(signature[:size]), int.from_bytes(signature[size:]))
