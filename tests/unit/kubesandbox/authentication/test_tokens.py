"""Tokens of service accounts."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

from kubesandbox.authentication.tokens import (
    ISSUER,
    TokenError,
    TokenSigner,
    account_claims,
    check_times,
    legacy_claims,
)

NOW = datetime(2025, 6, 1, 12, tzinfo=UTC)
SIGNER = TokenSigner.make()
ACCOUNT = {"metadata": {"name": "builder", "namespace": "ci", "uid": "u-1"}}


def decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def claims(**options):
    return account_claims(ACCOUNT, **{"now": NOW, "seconds": 3600, "audiences": [ISSUER], "token_id": "j"} | options)


def test_claims_are_those_of_kubernetes():
    """Audience, times, issuer, id, subject, and the account and object that the token is bound to."""
    pod = {"metadata": {"name": "p", "uid": "u-2"}}
    at = int(NOW.timestamp())
    assert {
        "aud": [ISSUER],
        "exp": at + 3600,
        "iat": at,
        "iss": ISSUER,
        "jti": "j",
        "kubernetes.io": {
            "namespace": "ci",
            "pod": {"name": "p", "uid": "u-2"},
            "serviceaccount": {"name": "builder", "uid": "u-1"},
            "warnafter": at + 3607,
        },
        "nbf": at,
        "sub": "system:serviceaccount:ci:builder",
    } == claims(pod=pod, warn_after=3607)


def test_others_can_verify_with_the_key_set():
    """The published key verifies the signature, and the header names it."""
    header, body, signature = SIGNER.sign(claims()).split(".")
    (key,) = SIGNER.key_set()["keys"]
    assert {"alg": "RS256", "kid": key["kid"]} == json.loads(decoded(header))
    numbers = rsa.RSAPublicNumbers(*(int.from_bytes(decoded(key[part])) for part in ("e", "n")))
    numbers.public_key().verify(decoded(signature), f"{header}.{body}".encode(), padding.PKCS1v15(), SHA256())
    assert ISSUER == SIGNER.discovery("https://x/openid/v1/jwks")["issuer"]


def test_a_signer_is_the_same_after_reading_it_back():
    """The key in PEM is the whole state of a signer."""
    assert claims() == TokenSigner(SIGNER.pem).read(SIGNER.sign(claims()))


def test_no_token_chooses_its_own_algorithm():
    """A token without a signature, or with one made from the public key, is refused."""
    body = base64.urlsafe_b64encode(json.dumps(claims()).encode()).decode().rstrip("=")
    for algorithm in ("none", "HS256", "RS512", None):
        header = base64.urlsafe_b64encode(json.dumps({"alg": algorithm}).encode()).decode().rstrip("=")
        for signature in ("", "AAAA"):
            with pytest.raises(TokenError, match="invalid bearer token"):
                SIGNER.read(f"{header}.{body}.{signature}")


@pytest.mark.parametrize("text", ["", ".", "..", "a.b.c", "e30.e30.e30", "e30.W10.AA", "\u00e4.b.c"])
def test_texts_that_are_no_tokens_are_refused(text):
    """Any other text is an invalid bearer token."""
    with pytest.raises(TokenError, match="invalid bearer token"):
        SIGNER.read(text)


@pytest.mark.parametrize(
    ("minutes", "why"),
    [(-62, "not valid yet"), (-0.5, None), (30, None), (60.5, None), (62, "has expired")],
)
def test_times_are_judged_with_a_minute_of_patience(minutes, why):
    """Clocks may differ a little."""
    at = NOW + timedelta(minutes=minutes)
    if why is None:
        check_times(claims(), at)
    else:
        with pytest.raises(TokenError, match=why):
            check_times(claims(), at)


def test_tokens_of_secrets_do_not_end():
    """They name the secret and the account."""
    found = legacy_claims(ACCOUNT, "old")
    assert "exp" not in found
    assert ("old", "builder", "u-1") == tuple(
        found[f"kubernetes.io/serviceaccount/{key}"]
        for key in ("secret.name", "service-account.name", "service-account.uid")
    )


def test_other_keys_are_refused():
    """The key must be RSA, and must be a key."""
    with pytest.raises(TokenError, match="cannot be read"):
        TokenSigner(b"nothing")
