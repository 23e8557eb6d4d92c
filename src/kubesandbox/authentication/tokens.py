"""Tokens of service accounts: JSON web tokens, signed RS256 as Kubernetes signs them, and the claims inside.

This module checks only the signature and the times; `authentication` checks that the account still exists.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

import orjson

from pyverno.errors import PyvernoError
from pyverno.kube.json import JSONObject

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

__all__ = ["ISSUER", "LEGACY_ISSUER", "TokenError", "TokenSigner", "account_claims", "check_times", "legacy_claims"]

ISSUER = "https://kubernetes.default.svc.cluster.local"
LEGACY_ISSUER = "kubernetes/serviceaccount"
_LEEWAY = 60


class TokenError(PyvernoError):
    """A token that is not accepted; the text is that of the API server."""

    code = "token"


class TokenSigner:
    """Signs claims and reads signed ones back.

    >>> signer = TokenSigner.make()
    >>> signer.read(signer.sign({"sub": "system:serviceaccount:a:b"}))["sub"]
    'system:serviceaccount:a:b'
    """

    def __init__(self, key: bytes, *, issuer: str = ISSUER) -> None:
        """Take the private key as PEM; raises TokenError when it is not an RSA key."""
        self.pem = key
        self.issuer = issuer
        self._key = _rsa_key(key)

    @classmethod
    def make(cls, *, issuer: str = ISSUER) -> TokenSigner:
        """Make a signer with a new key of 2048 bits."""
        from cryptography.hazmat.primitives.asymmetric import rsa
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        return cls(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), issuer=issuer)

    @cached_property
    def key_id(self) -> str:
        """The name of the key in the header of tokens: the hash of the public key."""
        from hashlib import sha256

        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        public = self._key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return _encode(sha256(public).digest())

    def sign(self, claims: JSONObject) -> str:
        """Return a signed token with these claims."""
        from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
        from cryptography.hazmat.primitives.hashes import SHA256

        header = orjson.dumps({"alg": "RS256", "kid": self.key_id})
        said = f"{_encode(header)}.{_encode(orjson.dumps(claims))}"
        return f"{said}.{_encode(self._key.sign(said.encode(), PKCS1v15(), SHA256()))}"

    def read(self, token: str) -> JSONObject:
        """Return the claims of a token that this signer has signed; raises TokenError for any other text."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
        from cryptography.hazmat.primitives.hashes import SHA256

        said, _, signature = token.rpartition(".")
        header, _, body = said.partition(".")
        try:
            algorithm = _object(header).get("alg")
            claims = _object(body)
            raw = _decode(signature)
        except (ValueError, binascii.Error):
            raise TokenError("invalid bearer token") from None
        if algorithm != "RS256":
            # the key is for one algorithm; a token may not choose a weaker one
            raise TokenError("invalid bearer token")
        try:
            self._key.public_key().verify(raw, said.encode(), PKCS1v15(), SHA256())
        except InvalidSignature:
            raise TokenError("invalid bearer token") from None
        return claims

    def key_set(self) -> JSONObject:
        """Return the public key as a JSON web key set, as `/openid/v1/jwks` serves it."""
        numbers = self._key.public_key().public_numbers()
        key = {"use": "sig", "kty": "RSA", "kid": self.key_id, "alg": "RS256"}
        return {"keys": [{**key, "n": _encode(_bytes(numbers.n)), "e": _encode(_bytes(numbers.e))}]}

    def discovery(self, jwks_uri: str) -> JSONObject:
        """Return the document of `/.well-known/openid-configuration`."""
        return {
            "issuer": self.issuer,
            "jwks_uri": jwks_uri,
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
        }


def account_claims(
    account: JSONObject,
    *,
    now: datetime,
    seconds: int,
    audiences: Sequence[str],
    token_id: str,
    issuer: str = ISSUER,
    pod: JSONObject | None = None,
    secret: JSONObject | None = None,
    node: JSONObject | None = None,
    warn_after: int = 0,
) -> JSONObject:
    """Return the claims of a token for a service account, bound to a pod (on its node), a secret or a node.

    `seconds` is its validity, `warn_after` the age from which its use causes a warning.
    """
    metadata = account["metadata"]
    namespace, name = metadata["namespace"], metadata["name"]
    bound: JSONObject = {"namespace": namespace}
    for key, item in (("node", node), ("pod", pod), ("secret", secret)):
        if item is not None:
            bound[key] = _reference(item)
    bound["serviceaccount"] = _reference(account)
    at = int(now.timestamp())
    if warn_after:
        bound["warnafter"] = at + warn_after
    return {
        "aud": list(audiences),
        "exp": at + seconds,
        "iat": at,
        "iss": issuer,
        "jti": token_id,
        "kubernetes.io": bound,
        "nbf": at,
        "sub": f"system:serviceaccount:{namespace}:{name}",
    }


def legacy_claims(account: JSONObject, secret_name: str) -> JSONObject:
    """Return the claims of the token that a Secret of type `kubernetes.io/service-account-token` holds."""
    metadata = account["metadata"]
    namespace, name = metadata["namespace"], metadata["name"]
    prefix = "kubernetes.io/serviceaccount"
    return {
        "iss": LEGACY_ISSUER,
        f"{prefix}/namespace": namespace,
        f"{prefix}/secret.name": secret_name,
        f"{prefix}/service-account.name": name,
        f"{prefix}/service-account.uid": metadata.get("uid", ""),
        "sub": f"system:serviceaccount:{namespace}:{name}",
    }


def check_times(claims: JSONObject, now: datetime) -> None:
    """Raise TokenError when a token has expired or is not valid yet."""
    at = now.timestamp()
    expires, starts, issued = (claims.get(key) for key in ("exp", "nbf", "iat"))
    if isinstance(starts, int | float) and at + _LEEWAY < starts:
        raise TokenError("service account token is not valid yet")
    if isinstance(expires, int | float) and at - _LEEWAY > expires:
        raise TokenError("service account token has expired")
    if isinstance(issued, int | float) and at + _LEEWAY < issued:
        raise TokenError("service account token is issued in the future")


def _reference(item: JSONObject) -> JSONObject:
    metadata = item["metadata"]
    return {key: metadata[key] for key in ("name", "uid") if metadata.get(key)}


def _rsa_key(pem: bytes) -> RSAPrivateKey:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError) as error:
        raise TokenError(f"the signing key cannot be read: {error}") from None
    if not isinstance(key, RSAPrivateKey):
        raise TokenError("the signing key is not an RSA key")
    return key


def _object(text: str) -> JSONObject:
    found = orjson.loads(_decode(text))
    if not isinstance(found, dict):
        raise ValueError("not an object")  # noqa: TRY004  # the caller turns every ValueError into one answer
    return found


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


def _bytes(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8)
