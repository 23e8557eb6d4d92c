"""ID tokens of OpenID Connect: signature and claims, checked against the keys of the issuer.

RFC 7515, RFC 7519 and OpenID Connect Core 1.0, section 3.1.3.7. An unclear token is refused, and no message holds any
part of a token.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pyverno.errors import DocumentError
from pyverno.kube.json import JSONObject, decode
from pyverno.ui.access.identity import AccessDeniedError

__all__ = ["ALGORITHMS", "check_id_token"]

_MOST_BYTES: Final = 64 * 1024
_SKEW_SECONDS: Final = 60
_SHORTEST_RSA, _LONGEST_RSA, _LONGEST_EXPONENT = 2048, 8192, 64
"""Bits of RSA keys."""
_RSA: Final = {"RS256": "SHA256", "RS384": "SHA384", "RS512": "SHA512", "PS256": "SHA256", "PS384": "SHA384"}
_CURVES: Final = {"ES256": ("P-256", "SHA256", 32), "ES384": ("P-384", "SHA384", 48)}
ALGORITHMS: Final = (*_RSA, *_CURVES)
"""The permitted signature algorithms of a token, all with public keys."""


def check_id_token(
    token: str, keys: Sequence[JSONObject], *, issuer: str, audience: str, nonce: str, now: float
) -> JSONObject:
    """Return the claims of a token that the issuer signed for us; raises AccessDeniedError.

    `keys` is the key set of the issuer (JWKs), `nonce` the value with which the login began, `now` seconds since 1970.
    """
    if len(token) > _MOST_BYTES or token.count(".") != 2:
        raise AccessDeniedError("the issuer sent something that is no signed token")
    head, body, signature = token.split(".")
    header = _json(head)
    algorithm = header.get("alg")
    if algorithm not in ALGORITHMS or "crit" in header:
        raise AccessDeniedError(f"the token is signed in a way that is not accepted: expected {', '.join(ALGORITHMS)}")
    _check_signature(f"{head}.{body}".encode(), _bytes(signature), algorithm, _choose(keys, header))
    claims = _json(body)
    _check_claims(claims, issuer=issuer, audience=audience, nonce=nonce, now=now)
    return claims


def _check_claims(claims: JSONObject, *, issuer: str, audience: str, nonce: str, now: float) -> None:
    if claims.get("iss") != issuer:
        raise AccessDeniedError("the token is from another issuer")
    audiences = claims.get("aud")
    audiences = audiences if isinstance(audiences, list) else [audiences]
    if audience not in audiences:
        raise AccessDeniedError("the token is for another client")
    if (len(audiences) > 1 or "azp" in claims) and claims.get("azp") != audience:
        raise AccessDeniedError("the token was given to another client")
    if not isinstance(claims.get("nonce"), str) or not hmac.compare_digest(claims["nonce"].encode(), nonce.encode()):
        raise AccessDeniedError("the token belongs to another login")
    _check_time("exp", claims.get("exp"), earliest=now - _SKEW_SECONDS)
    _check_time("iat", claims.get("iat"), latest=now + _SKEW_SECONDS)
    _check_time("nbf", claims.get("nbf", 0), latest=now + _SKEW_SECONDS)


def _check_time(name: str, moment: object, *, earliest: float = -math.inf, latest: float = math.inf) -> None:
    is_number = isinstance(moment, int | float) and not isinstance(moment, bool)
    if not is_number or not earliest < float(moment) < latest:  # type: ignore[arg-type]  # a number, as was checked
        raise AccessDeniedError(f"the token is not valid at this time (`{name}`): compare the clocks")


def _choose(keys: Sequence[JSONObject], header: JSONObject) -> list[JSONObject]:
    """Return the keys that the token's header selects."""
    name = header.get("kid")
    return [
        key
        for key in keys
        if (name is None or key.get("kid") == name)
        and key.get("use", "sig") == "sig"
        and key.get("alg", header["alg"]) == header["alg"]
    ]


def _check_signature(signed: bytes, signature: bytes, algorithm: str, keys: Sequence[JSONObject]) -> None:
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

    for key in keys:
        try:
            (_check_rsa if algorithm in _RSA else _check_ecdsa)(signed, signature, algorithm, key)
        except (InvalidSignature, UnsupportedAlgorithm, AccessDeniedError, ValueError, KeyError, TypeError):
            continue
        return
    reason = "the signature of the token does not fit" if keys else "the issuer has no key for the token"
    raise AccessDeniedError(reason)


def _check_rsa(signed: bytes, signature: bytes, algorithm: str, key: JSONObject) -> None:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding, rsa

    if key.get("kty") != "RSA":
        raise ValueError(key)
    exponent, modulus = _number(key["e"]), _number(key["n"])
    if not _SHORTEST_RSA <= modulus.bit_length() <= _LONGEST_RSA or exponent.bit_length() > _LONGEST_EXPONENT:
        raise ValueError("a key that is too short to be safe, or takes too long to check with")
    public = rsa.RSAPublicNumbers(exponent, modulus).public_key()
    digest: Any = getattr(hashes, _RSA[algorithm])()
    pss = padding.PSS(padding.MGF1(digest), digest.digest_size)
    public.verify(signature, signed, pss if algorithm.startswith("PS") else padding.PKCS1v15(), digest)


def _check_ecdsa(signed: bytes, signature: bytes, algorithm: str, key: JSONObject) -> None:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    name, digest, size = _CURVES[algorithm]
    if key.get("kty") != "EC" or key.get("crv") != name or len(signature) != 2 * size:
        raise ValueError(key)
    curve: Mapping[str, ec.EllipticCurve] = {"P-256": ec.SECP256R1(), "P-384": ec.SECP384R1()}
    public = ec.EllipticCurvePublicNumbers(_number(key["x"]), _number(key["y"]), curve[name]).public_key()
    pair = encode_dss_signature(int.from_bytes(signature[:size]), int.from_bytes(signature[size:]))
    public.verify(pair, signed, ec.ECDSA(getattr(hashes, digest)()))


def _number(text: str) -> int:
    return int.from_bytes(_bytes(text))


def _bytes(text: str) -> bytes:
    """Decode unpadded base64url in its canonical form; raises AccessDeniedError."""
    try:
        found = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise AccessDeniedError("the issuer sent something that is no signed token") from error
    return found


def _json(text: str) -> JSONObject:
    try:
        found = decode(_bytes(text))
    except DocumentError as error:
        raise AccessDeniedError("the issuer sent something that is no signed token") from error
    if not isinstance(found, dict):
        raise AccessDeniedError("the issuer sent something that is no signed token")
    return found
