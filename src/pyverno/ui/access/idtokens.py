"""ID tokens of OpenID Connect: signature and claims, checked by joserfc against the keys of the issuer.

RFC 7515, RFC 7519 and OpenID Connect Core 1.0, section 3.1.3.7. An unclear token is refused, and no message holds any
part of a token. The library is imported at the first token: no other command loads it.
"""

from __future__ import annotations

import hmac
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from pyverno.errors import DocumentError
from pyverno.kube.json import JSONObject, decode
from pyverno.ui.access.identity import AccessDeniedError

if TYPE_CHECKING:
    from joserfc.jwk import Key
    from joserfc.jws import CompactSignature, JWSRegistry

# trust rows: token-claim

__all__ = ["ALGORITHMS", "check_id_token"]

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "ES256", "ES384")
"""The permitted signature algorithms of a token, all with public keys."""

_MOST_BYTES: Final = 64 * 1024
_MOST_HEADER, _MOST_SIGNATURE = 8 * 1024, 2 * 1024
_SKEW_SECONDS: Final = 60
_TYPES: Final = frozenset({"jwt", "application/jwt"})
_REFUSED: Final = ("crit", "b64", "enc", "zip", "cty")
"""Header parameters that change what the token means, or say that it holds another token."""
_SHORTEST_RSA, _LONGEST_RSA = 2048, 8192
_LONGEST: Final = {"n": 1400, "e": 11}
"""Characters of the numbers of RSA keys: longer ones take too long to check with."""
_TIMES: Final = frozenset({"exp", "iat", "nbf"})
_REASONS: Final[Mapping[str, str]] = {
    "iss": "the token is from another issuer",
    "aud": "the token is for another client",
    "nonce": "the token belongs to another login",
}


def check_id_token(
    token: str, keys: Sequence[JSONObject], *, issuer: str, audience: str, nonce: str | None, now: float
) -> JSONObject:
    """Return the claims of a token that the issuer signed for us; raises AccessDeniedError.

    `keys` is the key set of the issuer (JWKs), `nonce` the value with which the login began, and `now` seconds since
    1970. None as `nonce` is for a token that no login of this server requested, which opens nothing.
    """
    registry = _registry()
    read = _read(token, registry)
    _check_header(read.protected)
    _check_signature(read, keys, registry)
    try:
        claims = decode(read.payload)
    except DocumentError as error:
        raise _unreadable() from error
    if not isinstance(claims, dict):
        raise _unreadable()
    _check_claims(claims, issuer=issuer, audience=audience, nonce=nonce, now=int(now))
    return claims


def _registry() -> JWSRegistry:
    from joserfc.jws import JWSRegistry

    # headers have names of vendors, which change nothing
    registry = JWSRegistry(algorithms=ALGORITHMS, strict_check_header=False)
    registry.max_header_length, registry.max_signature_length = _MOST_HEADER, _MOST_SIGNATURE
    registry.max_payload_length = _MOST_BYTES
    return registry


def _read(token: str, registry: JWSRegistry) -> CompactSignature:
    from joserfc.errors import JoseError
    from joserfc.jws import extract_compact

    if len(token) > _MOST_BYTES or not token.isascii() or token.count(".") != 2:
        raise _unreadable()
    try:
        read = extract_compact(token.encode(), None, registry)
    except (JoseError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise _unreadable() from error
    if not isinstance(read.protected, dict):
        raise _unreadable()
    return read


def _check_header(header: Mapping[str, object]) -> None:
    if header.get("alg") not in ALGORITHMS:  # guard: only listed algorithms sign a login
        raise AccessDeniedError(f"the token is signed in a way that is not accepted: expected {', '.join(ALGORITHMS)}")
    if any(name in header for name in _REFUSED):  # guard: a header that changes the meaning refuses the login
        raise AccessDeniedError("the token is signed in a way that is not accepted: its header has a critical part")
    kind = header.get("typ", "JWT")
    if not isinstance(kind, str) or kind.lower() not in _TYPES:  # guard: a token of another type is no login
        raise AccessDeniedError("the token is of another type (`typ`): expected JWT")
    if not isinstance(header.get("kid", ""), str):
        raise AccessDeniedError("the token names its key (`kid`) by something that is no text")


def _check_signature(read: CompactSignature, keys: Sequence[JSONObject], registry: JWSRegistry) -> None:
    from joserfc.errors import JoseError
    from joserfc.jws import validate_compact

    chosen = _choose(keys, read.protected)
    for key in _usable(chosen):
        try:
            if validate_compact(read, key, registry=registry):
                return
        except (JoseError, ValueError, TypeError):
            continue
    reason = "the signature of the token does not fit" if chosen else "the issuer has no key for the token"
    raise AccessDeniedError(reason)  # guard: a login needs the signature of its issuer


def _choose(keys: Sequence[JSONObject], header: Mapping[str, object]) -> list[JSONObject]:
    """Return the keys that the token's header selects."""
    name = header.get("kid")
    return [
        key
        for key in keys
        if (name is None or key.get("kid") == name)
        and key.get("use", "sig") == "sig"
        and key.get("alg", header["alg"]) == header["alg"]
    ]


def _usable(keys: Sequence[JSONObject]) -> Iterator[Key]:
    """Yield public keys; a symmetric, short or unreadable one, or one that is slow to use, is left out."""
    from joserfc.errors import JoseError

    for key in keys:
        public = {name: text for name, text in key.items() if name in ("kty", "n", "e", "crv", "x", "y")}
        try:
            found = _import(public)
        except (JoseError, ValueError, TypeError, KeyError):
            continue
        if found is not None:
            yield found


def _import(public: JSONObject) -> Key | None:
    from joserfc.jwk import ECKey, RSAKey

    if public["kty"] == "EC":
        return ECKey.import_key(public)
    if public["kty"] != "RSA" or any(len(public[name]) > most for name, most in _LONGEST.items()):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of short keys, which are left out
        found = RSAKey.import_key(public)
    is_safe = _SHORTEST_RSA <= found.raw_value.key_size <= _LONGEST_RSA
    return found if is_safe else None


def _check_claims(claims: JSONObject, *, issuer: str, audience: str, nonce: str | None, now: int) -> None:
    from joserfc.errors import ClaimError
    from joserfc.jwt import JWTClaimsRegistry

    registry = JWTClaimsRegistry(
        now=now,
        leeway=_SKEW_SECONDS,
        iss={"essential": True, "value": issuer},
        aud={"essential": True, "value": audience},
        exp={"essential": True},
        iat={"essential": True},
    )
    try:
        registry.validate(claims)  # guard: the claims of a login are checked
    except ClaimError as error:
        name = error.claim.partition(",")[0]
        timing = f"the token is not valid at this time (`{name}`): compare the clocks"
        reason = timing if name in _TIMES else _REASONS.get(name, f"the claim `{name}` of the token is not valid")
        raise AccessDeniedError(reason) from error
    audiences = claims["aud"]
    is_shared = isinstance(audiences, list) and len(audiences) > 1
    if (is_shared or "azp" in claims) and claims.get("azp") != audience:  # guard: a login was given to this client
        raise AccessDeniedError("the token was given to another client")
    if nonce is not None and not _is_same(claims.get("nonce"), nonce):  # guard: a token belongs to one login
        raise AccessDeniedError(_REASONS["nonce"])


def _is_same(found: object, nonce: str) -> bool:
    return isinstance(found, str) and hmac.compare_digest(found.encode("utf-8", "replace"), nonce.encode())


def _unreadable() -> AccessDeniedError:
    return AccessDeniedError("the issuer sent something that is no signed token")
