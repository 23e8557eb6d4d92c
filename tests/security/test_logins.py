"""What a token says about its user: each attribute wrong by itself is a refusal, and one claim names the user."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from pyverno.cli.ui.access import LoginOptions
from pyverno.cli.ui.run import UiOptions, run_ui
from pyverno.errors import PyvernoError, UsageError
from pyverno.kube.json import JSONObject
from pyverno.ui.access.identity import AccessDeniedError
from pyverno.ui.access.idtokens import check_id_token
from pyverno.ui.access.userclaims import UserClaims
from tests.support.issuer import SigningKey, encode

ISSUER: Final = "https://login.example.org"
NOW: Final = 1_000_000
KEY: Final = SigningKey()
OTHER: Final = SigningKey("ES256", "two")
CLAIMS: Final[JSONObject] = {
    "iss": ISSUER,
    "aud": "pyverno",
    "sub": "1",
    "nonce": "n",
    "iat": NOW,
    "nbf": NOW,
    "exp": NOW + 300,
}


def login(token: str, keys: list[Any] | None = None) -> JSONObject:
    """Return the claims of a token, as a login checks it."""
    listed = [KEY.jwk(), OTHER.jwk()] if keys is None else keys
    return check_id_token(token, listed, issuer=ISSUER, audience="pyverno", nonce="n", now=NOW)


CLAIMED: Final = (
    ("iss", ("https://login.example.org/", "https://LOGIN.example.org", "", None, [ISSUER], 5, {}), (ISSUER,)),
    (
        "aud",
        ("other", "Pyverno", "pyverno ", "", None, [], ["other"], [["pyverno"]], ["pyverno", 5], {"pyverno": 1}, True),
        ("pyverno", ["pyverno"]),
    ),
    ("nonce", ("m", "N", "", None, ["n"], 5, "n\ud800"), ("n",)),
    (
        "exp",
        (NOW - 60, NOW - 61, 0, -1, None, True, "never", str(NOW + 300), [NOW + 300]),
        (NOW - 59, NOW + 1.5, 2**62),
    ),
    ("iat", (NOW + 61, 2**62, None, True, "now", [NOW]), (NOW + 60, NOW - 1000, NOW - 0.5)),
    ("nbf", (NOW + 61, "now", True, [NOW], None), (NOW + 60, 0)),
    ("azp", ("other", "", None, ["pyverno"], True), ("pyverno",)),
    ("sub", (1, ["1"], {"a": "b"}), ("2",)),
)
"""A claim, its wrong values, and those that are right."""


@pytest.mark.parametrize(("claim", "wrong", "right"), CLAIMED, ids=[claim for claim, _, _ in CLAIMED])
def test_a_claim_that_is_wrong_by_itself_refuses_the_login(
    claim: str, wrong: tuple[Any, ...], right: tuple[Any, ...]
) -> None:
    """Of another value or type; the same token with a right value is accepted."""
    accepted = []
    for value in wrong:
        try:
            login(KEY.sign({**CLAIMS, claim: value}))
        except AccessDeniedError:
            continue
        accepted.append(value)
    assert [] == accepted
    for value in right:
        assert value == login(KEY.sign({**CLAIMS, claim: value}))[claim]


@pytest.mark.parametrize("claim", ["iss", "aud", "nonce", "iat", "exp"])
def test_a_claim_that_is_missing_refuses_the_login(claim: str) -> None:
    """`nbf`, `azp` and all others may be absent."""
    with pytest.raises(AccessDeniedError, match=r"the token|compare the clocks"):
        login(KEY.sign({name: value for name, value in CLAIMS.items() if name != claim}))
    assert login(KEY.sign({name: value for name, value in CLAIMS.items() if name != "nbf"}))


@pytest.mark.parametrize("audiences", [["pyverno", "other"], ["other", "pyverno"]])
def test_a_token_of_several_clients_was_given_to_this_one(audiences: list[str]) -> None:
    """Another client could otherwise log its users in here."""
    with pytest.raises(AccessDeniedError, match="given to another client"):
        login(KEY.sign({**CLAIMS, "aud": audiences}))
    assert login(KEY.sign({**CLAIMS, "aud": audiences, "azp": "pyverno"}))


HEADERS: Final[tuple[tuple[dict[str, Any], str], ...]] = (
    *(({"alg": name}, "not accepted") for name in ("none", "None", "nOnE", "HS256", "HS512", "ES512", "EdDSA", "RS1")),
    *(({"alg": name}, "not accepted") for name in ("", None, ["RS256"], "rs256", "RS256 ", "dir", "RSA-OAEP")),
    *(({"alg": name}, "does not fit") for name in ("ES256", "PS256", "RS512")),
    *(({"crit": names}, "not accepted") for names in (["exp"], ["b64"], [], "x", None)),
    *(({name: value}, "not accepted") for name, value in (("b64", True), ("zip", "DEF"))),
    ({"b64": False}, "no signed token"),
    *(({name: value}, "not accepted") for name, value in (("enc", "A128GCM"), ("cty", "JWT"), ("cty", "jwt"))),
    *(({"typ": kind}, "another type") for kind in ("at+jwt", "logout+jwt", "secevent+jwt", "dpop+jwt", "JWE", "", 5)),
    *(({"kid": name}, "no key") for name in ("two ", "three", "", "../one", "One")),
    *(({"kid": name}, "no text") for name in (None, 1, ["one"], {})),
    ({"kid": "two"}, "does not fit"),
)


@pytest.mark.parametrize(("header", "reason"), HEADERS, ids=[json.dumps(header) for header, _ in HEADERS])
def test_a_header_that_is_wrong_by_itself_refuses_the_login(header: dict[str, Any], reason: str) -> None:
    """The signature is that of the issuer, over this header."""
    token = KEY.sign(CLAIMS, **header)
    with pytest.raises(AccessDeniedError, match=reason) as caught:
        login(token)
    assert not any(part in str(caught.value) for part in token.split("."))


@pytest.mark.parametrize(
    "header", [{}, {"typ": "JWT"}, {"typ": "jwt"}, {"typ": "application/jwt"}, {"x5t": "a"}, {"vendor": {"a": [1]}}]
)
def test_a_usual_header_is_accepted(header: dict[str, Any]) -> None:
    """Issuers add names of their own, which change nothing."""
    assert CLAIMS == login(KEY.sign(CLAIMS, **header))
    assert CLAIMS == login(OTHER.sign(CLAIMS, **header))


def test_a_key_of_the_token_is_no_key_of_the_issuer() -> None:
    """Whoever writes the header also chooses its `jwk`, `jku`, `x5u` and `x5c`."""
    theirs = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = theirs.public_key().public_numbers()
    jwk = {"kty": "RSA", "kid": "one", "n": encode(public.n.to_bytes(256)), "e": "AQAB"}
    signed = KEY.sign(CLAIMS, jwk=jwk, jku="https://evil.example.org/keys", x5u="https://evil.example.org")
    head, body, _ = signed.split(".")
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding

    forged = theirs.sign(f"{head}.{body}".encode(), padding.PKCS1v15(), hashes.SHA256())
    with pytest.raises(AccessDeniedError, match="does not fit"):
        login(f"{head}.{body}.{encode(forged)}")
    assert CLAIMS == login(signed)
    assert CLAIMS == login(f"{head}.{body}.{encode(forged)}", [jwk])


def test_no_shared_secret_signs_a_login() -> None:
    """The public key of the issuer is known to all; so is a symmetric key that it publishes."""
    numbers = KEY.jwk()
    pem = rsa.RSAPublicNumbers(65537, int.from_bytes(_decoded(numbers["n"]))).public_key()
    secrets = [pem.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), numbers["n"].encode(), b""]
    for secret in secrets:
        for claimed in ("HS256", "RS256"):
            signed = f"{encode({'alg': claimed, 'kid': 'one'})}.{encode(CLAIMS)}"
            signature = encode(hmac.digest(secret, signed.encode(), hashlib.sha256))
            for keys in ([numbers], [{"kty": "oct", "kid": "one", "k": encode(secret)}], [{**numbers, "kty": "oct"}]):
                with pytest.raises(AccessDeniedError):
                    login(f"{signed}.{signature}", keys)
    assert CLAIMS == login(KEY.sign(CLAIMS), [numbers])


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def test_another_form_of_a_token_is_no_token() -> None:
    """Encrypted, nested, detached, unsigned, padded, with other characters, or too long."""
    token = KEY.sign(CLAIMS)
    head, body, signature = token.split(".")
    forms = [
        *("", "a", "..", "...", "a.b.c", f"{head}.{body}", f"{token}.x.y", f"{head}..{signature}", f"{head}.{body}."),
        *(
            f"{token}=",
            f" {token}",
            f"{token}\n",
            f"{token}\u0661",
            token.replace(".", "..", 1),
            json.dumps({"a": token}),
        ),
        *(f"{encode(json.dumps(CLAIMS).encode())}.{body}.{signature}", f"{head}.{encode(b'[]')}.{signature}"),
        *(f"{encode(b'[' * 3000)}.{body}.{signature}", f"{head}.{'A' * 70_000}.{signature}"),
        KEY.sign({"token": token}, cty="JWT"),
        f"{head}.{body}.{signature[:-1]}{chr(ord(signature[-1]) ^ 1)}",
    ]
    for form in forms:
        with pytest.raises(AccessDeniedError):
            login(form)
    assert CLAIMS == login(token)


NAMES: Final = ("sub", "email", "preferred_username", "upn", "name", "nickname", "unique_name", "oid")
TOKEN: Final[JSONObject] = {**{name: f"{name}-of-ann" for name in NAMES}, "email_verified": True}


@pytest.mark.parametrize("claim", NAMES)
def test_one_claim_names_the_user(claim: str) -> None:
    """Every other claim has a text, and none stands in for the one that is missing, empty or no text."""
    chosen = UserClaims(claim, "-")
    assert f"{claim}-of-ann" == chosen.identity(TOKEN, ISSUER).user
    for value in ("", None, 5, True, [f"{claim}-of-ann"], {"a": "b"}):
        with pytest.raises(AccessDeniedError, match=f"no claim `{claim}`") as caught:
            chosen.identity({**TOKEN, claim: value}, ISSUER)
        assert "of-ann" not in str(caught.value)
    with pytest.raises(AccessDeniedError, match=f"no claim `{claim}`"):
        chosen.identity({name: text for name, text in TOKEN.items() if name != claim}, ISSUER)


@pytest.mark.parametrize("verified", [False, None, "true", "True", 1, [True], {}, "missing"])
def test_an_address_that_the_issuer_has_not_verified_names_no_user(verified: Any) -> None:
    """Issuers let users choose their addresses; only the boolean true is a verified one."""
    claims = {name: value for name, value in TOKEN.items() if name != "email_verified"}
    given = claims if verified == "missing" else {**claims, "email_verified": verified}
    with pytest.raises(AccessDeniedError, match="not verified"):
        UserClaims("email").identity(given, ISSUER)
    assert "email-of-ann" == UserClaims("email").identity(TOKEN, ISSUER).user
    assert f"{ISSUER}#sub-of-ann" == UserClaims("sub").identity(given, ISSUER).user


@pytest.mark.parametrize(
    ("claim", "prefix", "user"),
    [
        ("sub", "", f"{ISSUER}#sub-of-ann"),
        ("upn", "", f"{ISSUER}#upn-of-ann"),
        ("email", "", "email-of-ann"),
        ("sub", "-", "sub-of-ann"),
        ("email", "-", "email-of-ann"),
        ("sub", "oidc:", "oidc:sub-of-ann"),
        ("email", "oidc:", "oidc:email-of-ann"),
        ("sub", "--", "--sub-of-ann"),
    ],
)
def test_names_have_the_prefix_that_the_api_server_gives_them(claim: str, prefix: str, user: str) -> None:
    """The same text of two issuers is two users."""
    assert user == UserClaims(claim, prefix).identity(TOKEN, ISSUER).user


@pytest.mark.parametrize("found", [["a", 5], [None], {"a": "b"}, 5, True, [["a"]], ["a"] * 1001])
def test_groups_that_are_no_texts_refuse_the_login(found: Any) -> None:
    """A login without some of its groups could be admitted, or refused, by mistake."""
    chosen = UserClaims("email", "", "groups", "oidc:")
    with pytest.raises(AccessDeniedError, match="claim `groups`"):
        chosen.identity({**TOKEN, "groups": found}, ISSUER)
    for good, groups in ((["a", "b"], ("oidc:a", "oidc:b")), ("a", ("oidc:a",)), ([], ()), (None, ())):
        assert groups == chosen.identity({**TOKEN, "groups": good}, ISSUER).groups
    assert () == UserClaims("email").identity({**TOKEN, "groups": found}, ISSUER).groups


def test_metrics_beside_a_login_need_an_address_of_their_own() -> None:
    """They name namespaces and policies, and Prometheus has no login."""
    proxy = LoginOptions(proxy_user_header="X-User", proxy_peers=("127.0.0.1",))
    with pytest.raises(UsageError, match="give --metrics-address"):
        run_ui(UiOptions(files=("nothing",), login=proxy, shows_metrics=True))
    with pytest.raises(UsageError, match="expected ADDRESS:PORT"):
        run_ui(UiOptions(files=("nothing",), login=proxy, metrics_address="9090"))
    for options in (
        UiOptions(files=("nothing",), login=proxy, shows_metrics=True, metrics_address="127.0.0.1:0"),
        UiOptions(files=("nothing",), shows_metrics=True),
    ):
        with pytest.raises(PyvernoError, match="nothing"):
            run_ui(options)
