"""Kyverno's jwt library: signed tokens, checked with a secret, a public key in PEM, or a key set.

A bad signature or an algorithm that does not fit the key is an error; times only decide `Valid`. Unsigned tokens are
never accepted. This module must never fetch keys by itself.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from pyverno.errors import DocumentError, EvaluationError, HostError
from pyverno.kube.json import JSON, JSONObject, decode
from pyverno.lang.cel.checking.structs import DeclaredTypes
from pyverno.lang.cel.declarations import Library, function
from pyverno.lang.cel.faults import OperandError
from pyverno.lang.cel.json_values import with_doubles
from pyverno.lang.cel.runtime.evaluation import Evaluation
from pyverno.lang.cel.types import BOOL, DYN, STRING, map_of, opaque
from pyverno.lang.cel.values import StructValue, Value
from pyverno.lang.cel.work import instant, nodes, together, walking
from pyverno.value import dataclass

__all__ = ["JWT", "JWT_TYPES", "KeySet"]

_DECODED: Final = "jwt.Token"
_HASHES: Final[Mapping[str, Any]] = {"256": hashes.SHA256, "384": hashes.SHA384, "512": hashes.SHA512}
_DIGESTS: Final = {"256": hashlib.sha256, "384": hashlib.sha384, "512": hashlib.sha512}
_CURVES: Final[Mapping[str, Any]] = {"P-256": ec.SECP256R1, "P-384": ec.SECP384R1, "P-521": ec.SECP521R1}
_CURVE_OF: Final = {"256": "secp256r1", "384": "secp384r1", "512": "secp521r1"}


@dataclass(frozen=True, slots=True)
class KeySet:
    """Public keys as a JWKS document."""

    cel_type: ClassVar[str] = "jwks.Set"
    document: JSONObject


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise EvaluationError("token is malformed") from None


def _object(text: str) -> JSONObject:
    try:
        value = decode(_bytes(text))
    except DocumentError:
        raise EvaluationError("token is malformed") from None
    if not isinstance(value, dict):
        raise EvaluationError("token is malformed")
    return value


def _verified(signed: bytes, signature: bytes, algorithm: str, key: Any) -> bool:
    """Return whether a signature fits; the key's kind decides which algorithms may be meant."""
    family, size = algorithm[:2], algorithm[2:]
    try:
        if isinstance(key, bytes):
            return family == "HS" and size in _DIGESTS and hmac.compare_digest(
                hmac.new(key, signed, _DIGESTS[size]).digest(), signature
            )  # fmt: skip
        if isinstance(key, rsa.RSAPublicKey) and family in ("RS", "PS") and size in _HASHES:
            digest = _HASHES[size]()
            scheme = padding.PKCS1v15() if family == "RS" else padding.PSS(padding.MGF1(digest), digest.digest_size)
            key.verify(signature, signed, scheme, digest)
            return True
        if isinstance(key, ec.EllipticCurvePublicKey) and family == "ES" and key.curve.name == _CURVE_OF.get(size):
            half = len(signature) // 2
            pair = (int.from_bytes(signature[:half], "big"), int.from_bytes(signature[half:], "big"))
            key.verify(encode_dss_signature(*pair), signed, ec.ECDSA(_HASHES[size]()))
            return True
        if isinstance(key, ed25519.Ed25519PublicKey) and algorithm == "EdDSA":
            key.verify(signature, signed)
            return True
    except InvalidSignature:
        return False
    return False


def _key_of_text(text: str) -> Any:
    """Return a public key in PEM, or the text as secret."""
    if "-----BEGIN " not in text:
        return text.encode("utf-8", "surrogatepass")
    try:
        return load_pem_public_key(text.encode("utf-8", "surrogatepass"))
    except (ValueError, UnsupportedAlgorithm):
        raise EvaluationError("key is not a public key in PEM") from None


def _key_of_jwk(jwk: JSONObject) -> Any:
    def number(name: str) -> int:
        return int.from_bytes(_bytes(str(jwk.get(name, ""))), "big")

    try:
        if jwk.get("kty") == "RSA":
            return rsa.RSAPublicNumbers(number("e"), number("n")).public_key()
        if jwk.get("kty") == "EC" and jwk.get("crv") in _CURVES:
            return ec.EllipticCurvePublicNumbers(number("x"), number("y"), _CURVES[jwk["crv"]]()).public_key()
        if jwk.get("kty") == "OKP" and jwk.get("crv") == "Ed25519":
            return ed25519.Ed25519PublicKey.from_public_bytes(_bytes(str(jwk.get("x", ""))))
    except (ValueError, UnsupportedAlgorithm):
        return None
    return _bytes(str(jwk.get("k", ""))) if jwk.get("kty") == "oct" else None


def _keys(key: Value, header: JSONObject) -> list[Any]:
    if isinstance(key, str):
        return [_key_of_text(key)]
    entries = [entry for entry in key.document.get("keys") or () if isinstance(entry, dict)]
    wanted = header.get("kid")
    if wanted is not None:
        entries = [entry for entry in entries if entry.get("kid") == wanted]
    return [found for entry in entries if (found := _key_of_jwk(entry)) is not None]


def _is_valid(claims: JSONObject, now: float) -> bool:
    """Return whether a token's times hold: exp in the future, nbf and iat not."""
    times: dict[str, JSON] = {name: claims.get(name) for name in ("exp", "nbf", "iat")}
    if any(isinstance(value, bool) or not isinstance(value, (int, float, type(None))) for value in times.values()):
        return False
    expiry, start, issued = times["exp"], times["nbf"], times["iat"]
    return (expiry is None or now < expiry) and all(moment is None or moment <= now for moment in (start, issued))


@function(
    "jwt.Decode",
    f"(string, string) -> object({_DECODED})",
    f"(string, {KeySet.cel_type}) -> object({_DECODED})",
    in_context=True,
    work=together(walking(per=8), nodes(1)),
)
def decode_token(evaluation: Evaluation, token: str, key: Value) -> StructValue:
    """The claims of a signed token and whether its times are valid; a bad signature is an error.

    `Claims` is a map (times as seconds in doubles), `Valid` a bool.
    """
    parts = token.split(".")
    if len(parts) != 3:
        raise EvaluationError("token is malformed")
    header, claims = _object(parts[0]), _object(parts[1])
    signed, signature = f"{parts[0]}.{parts[1]}".encode(), _bytes(parts[2])
    algorithm = str(header.get("alg", ""))
    if not any(_verified(signed, signature, algorithm, candidate) for candidate in _keys(key, header)):
        raise EvaluationError("could not verify the token's signature")
    try:
        now = evaluation.runtime.host.now() / 10**9
    except HostError as error:
        raise EvaluationError(error.message) from None
    return StructValue(_DECODED, {"Claims": with_doubles(claims), "Valid": _is_valid(claims, now)})


@function("jwks.Fetch", f"(string) -> {KeySet.cel_type}", in_context=True, work=instant)
def fetch(evaluation: Evaluation, url: str) -> KeySet:
    """The key set at a URL."""
    try:
        status, body = evaluation.host.http("GET", url, None, {}, "")
        document = decode(body) if status == 200 else None
    except HostError as error:
        raise OperandError("request failed", f"request failed: {error.message}") from None
    except DocumentError:
        document = None
    if not isinstance(document, dict):
        raise EvaluationError("request failed: the answer is no key set")
    return KeySet(document)


JWT_TYPES: Final = DeclaredTypes({_DECODED: {"Claims": map_of(STRING, DYN), "Valid": BOOL}})
"""The struct type of decoded tokens."""

JWT: Final = Library(
    "kyverno.jwt",
    (decode_token, fetch),
    types=(opaque(KeySet.cel_type),),
    introduced="1.16",
    doc="Signed tokens (Envoy and HTTP modes only).",
)
