"""A token is believed when every check holds, and refused for each one that does not."""

from __future__ import annotations

from typing import Any

import pytest

from pyverno.ui.access.identity import AccessDeniedError
from pyverno.ui.access.idtokens import check_id_token
from tests.support.issuer import SigningKey, encode

ISSUER, NOW = "https://login.example.org", 1_000_000
GOOD = {"iss": ISSUER, "aud": "me", "nonce": "n", "iat": NOW, "exp": NOW + 300, "sub": "1"}


def check(token: str, keys: list[dict[str, str]]) -> dict[str, Any]:
    """Check a token as the login does."""
    return check_id_token(token, keys, issuer=ISSUER, audience="me", nonce="n", now=NOW)


@pytest.mark.parametrize("algorithm", ["RS256", "PS256", "ES256"])
def test_a_good_token_gives_its_claims(algorithm: str) -> None:
    """Tokens may be signed with every kind of key that issuers use."""
    key = SigningKey(algorithm)
    assert GOOD == check(key.sign(GOOD), [key.jwk()])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"iss": "https://evil.example.org"}, "another issuer"),
        ({"aud": "other"}, "another client"),
        ({"aud": []}, "another client"),
        ({"aud": ["me", "other"]}, "given to another client"),
        ({"aud": ["me", "other"], "azp": "other"}, "given to another client"),
        ({"nonce": "other"}, "another login"),
        ({"nonce": None}, "another login"),
        ({"exp": NOW - 61}, "`exp`"),
        ({"exp": None}, "`exp`"),
        ({"exp": True}, "`exp`"),
        ({"exp": "never"}, "`exp`"),
        ({"iat": NOW + 61}, "`iat`"),
        ({"iat": None}, "`iat`"),
        ({"nbf": NOW + 61}, "`nbf`"),
    ],
)
def test_a_wrong_claim_refuses_the_token(changes: dict[str, Any], reason: str) -> None:
    """The reason names the claim, and no value."""
    key = SigningKey()
    with pytest.raises(AccessDeniedError, match=reason):
        check(key.sign({**GOOD, **changes}), [key.jwk()])


def test_a_signature_must_fit_a_key_of_the_issuer() -> None:
    """A changed body, another key, no key, and the tricks with the header."""
    key, other = SigningKey(), SigningKey("ES256", "two")
    token = key.sign(GOOD)
    head, body, signature = token.split(".")
    changed = f"{head}.{encode({**GOOD, 'sub': 'root'})}.{signature}"
    unsigned = f"{encode({'alg': 'none'})}.{body}."
    public = SigningKey("RS256").jwk()["n"]
    symmetric = f"{encode({'alg': 'HS256', 'kid': 'one'})}.{body}.{encode(public.encode())}"
    confused = {**other.jwk(), "kid": "one"}
    cases = [
        (changed, [key.jwk()], "does not fit"),
        (token, [{**key.jwk(), "kid": "another"}], "no key"),
        (token, [], "no key"),
        (token, [confused], "does not fit"),
        (token, [{**key.jwk(), "use": "enc"}], "no key"),
        (unsigned, [key.jwk()], "not accepted"),
        (symmetric, [key.jwk()], "not accepted"),
        (key.sign(GOOD, crit=["x"]), [key.jwk()], "not accepted"),
        (key.sign(GOOD, alg="ES256"), [key.jwk()], "does not fit"),
        ("a.b", [key.jwk()], "no signed token"),
        ("a.b.c.d", [key.jwk()], "no signed token"),
        ("§.b.c", [key.jwk()], "no signed token"),
        (f"{encode(b'[]')}.{body}.{signature}", [key.jwk()], "no signed token"),
        ("a" * 70_000 + "..", [key.jwk()], "no signed token"),
    ]
    for given, keys, reason in cases:
        with pytest.raises(AccessDeniedError, match=reason) as caught:
            check(given, keys)
        assert not any(part in str(caught.value) for part in given.split(".") if len(part) > 8)


def test_any_byte_that_is_changed_refuses_the_token() -> None:
    """The test changes each character in turn."""
    key = SigningKey("ES256")
    token = key.sign(GOOD)
    believed = []
    for position in range(0, len(token) - 1, 7):
        changed = token[:position] + ("A" if token[position] != "A" else "B") + token[position + 1 :]
        try:
            check(changed, [key.jwk()])
        except AccessDeniedError:
            continue
        believed.append(position)
    assert [] == believed
