"""Authentication: the user of a request."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta

import pytest
from multidict import CIMultiDict

from kubesandbox.authentication.authenticator import (
    ANONYMOUS,
    Authenticator,
    StaticToken,
    authenticated,
    impersonated,
)
from kubesandbox.authentication.tokens import ISSUER, TokenError, TokenSigner, account_claims, legacy_claims
from kubesandbox.authorization.access import EverythingAllowed
from kubesandbox.authorization.rbac import RbacAuthorizer
from kubesandbox.storage.store import Key, Store
from pyverno.engine.request import User
from pyverno.kube.status import StatusError

NOW = datetime(2025, 6, 1, 12, tzinfo=UTC)
SIGNER = TokenSigner.make()
ACCOUNT = {
    "apiVersion": "v1",
    "kind": "ServiceAccount",
    "metadata": {"name": "builder", "namespace": "ci", "uid": "u-1"},
}


def store_with(*bodies) -> Store:
    store = Store()
    for resource, body in bodies:
        metadata = body["metadata"]
        store.put(Key(resource, metadata.get("namespace", ""), metadata["name"]), body)
    return store


def authenticator(store: Store, **options) -> Authenticator:
    return Authenticator(store, SIGNER, clock=lambda: NOW, **options)


def token(**options) -> str:
    claims = account_claims(
        ACCOUNT, **{"now": NOW, "seconds": 3600, "audiences": [ISSUER], "token_id": "j-1"} | options
    )
    return SIGNER.sign(claims)


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


def test_a_client_certificate_is_a_user_with_groups():
    """Common name and organisations become name and groups, and the groups of all users are added."""
    certificate = {"subject": ((("organizationName", "dev"),), (("commonName", "jane"),)), "sha256": "ab"}
    user = authenticator(Store()).authenticate({}, certificate)
    extra = {"authentication.kubernetes.io/credential-id": ("X509SHA256=ab",)}
    assert User("jane", ("dev", "system:authenticated"), extra=extra) == user


def test_static_tokens_name_users():
    """A static token is its user, with the groups of every user."""
    tokens = (StaticToken("t0", User("jane", ("dev", "ops"), uid="7")), StaticToken("t1", User("joe", uid="8")))
    found = authenticator(Store(), static_tokens=tokens)
    assert User("jane", ("dev", "ops", "system:authenticated"), uid="7") == found.authenticate(bearer("t0"), None)
    assert User("joe", ("system:authenticated",), uid="8") == found.authenticate(bearer("t1"), None)


def test_service_account_tokens_are_their_account():
    """Name, uid, groups and the token's id are those that Kubernetes gives."""
    user = authenticator(store_with(("serviceaccounts", ACCOUNT))).authenticate(bearer(token()), None)
    assert "system:serviceaccount:ci:builder" == user.username
    assert "u-1" == user.uid
    assert ("system:serviceaccounts", "system:serviceaccounts:ci", "system:authenticated") == user.groups
    assert {"authentication.kubernetes.io/credential-id": ("JTI=j-1",)} == user.extra


def test_tokens_bound_to_a_pod_name_it():
    """The pod and its node are in the extra fields of the user."""
    pod = {"metadata": {"name": "p", "namespace": "ci", "uid": "u-2"}}
    node = {"metadata": {"name": "n", "uid": "u-3"}}
    found = authenticator(store_with(("serviceaccounts", ACCOUNT), ("pods", pod)))
    extra = found.authenticate(bearer(token(pod=pod, node=node)), None).extra
    prefix = "authentication.kubernetes.io"
    assert {
        f"{prefix}/credential-id": ("JTI=j-1",),
        f"{prefix}/node-name": ("n",),
        f"{prefix}/node-uid": ("u-3",),
        f"{prefix}/pod-name": ("p",),
        f"{prefix}/pod-uid": ("u-2",),
    } == extra


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (token(now=NOW - timedelta(hours=3)), "service account token has expired"),
        (token(now=NOW + timedelta(hours=3)), "service account token is not valid yet"),
        (token(pod={"metadata": {"name": "gone", "uid": "x"}}), "service account token has been invalidated"),
        (token(audiences=["vault"]), 'token audiences ["vault"] is invalid for the target audiences'),
    ],
)
def test_tokens_that_no_longer_hold_are_refused(text, why):
    """An expired token, one from the future, one of a deleted pod and one for another audience give 401."""
    found = authenticator(store_with(("serviceaccounts", ACCOUNT)))
    with pytest.raises(TokenError) as refused:
        found.token_user(text)
    assert why in str(refused.value)
    with pytest.raises(StatusError) as answer:
        found.authenticate(bearer(text), None)
    assert (401, "Unauthorized") == (answer.value.status, answer.value.message)


def test_a_token_of_an_account_that_was_made_anew_is_refused():
    """The uid of the account counts, not its name."""
    other = {**ACCOUNT, "metadata": {**ACCOUNT["metadata"], "uid": "u-9"}}
    with pytest.raises(TokenError, match=r"service account UID \(u-9\) does not match claim \(u-1\)"):
        authenticator(store_with(("serviceaccounts", other))).token_user(token())


def test_tokens_of_other_keys_are_refused():
    """A token with a foreign signature, or without one, gives 401."""
    found = authenticator(store_with(("serviceaccounts", ACCOUNT)))
    said, _, _ = token().rpartition(".")
    unsigned = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=") + "." + said.partition(".")[2] + "."
    for text in (said + ".AAAA", unsigned, "abc", "a.b.c", TokenSigner.make().sign({"iss": ISSUER})):
        with pytest.raises(TokenError, match="invalid bearer token"):
            found.token_user(text)


def test_secrets_hold_tokens_that_live_as_long_as_they_do():
    """The token of a Secret counts while the Secret holds it."""
    text = SIGNER.sign(legacy_claims(ACCOUNT, "old"))
    secret = {
        "metadata": {"name": "old", "namespace": "ci"},
        "data": {"token": base64.b64encode(text.encode()).decode()},
    }
    found = authenticator(store_with(("serviceaccounts", ACCOUNT), ("secrets", secret)))
    assert "system:serviceaccount:ci:builder" == found.authenticate(bearer(text), None).username
    without = authenticator(store_with(("serviceaccounts", ACCOUNT)))
    with pytest.raises(TokenError, match="Token has been invalidated"):
        without.token_user(text)


def test_users_are_anonymous_unless_that_is_forbidden():
    """Without credentials a request is anonymous, or 401."""
    assert ANONYMOUS == authenticator(Store()).authenticate({}, None)
    with pytest.raises(StatusError) as refused:
        authenticator(Store(), allows_anonymous=False).authenticate({}, None)
    assert 401 == refused.value.status


def test_impersonation_replaces_the_user():
    """User, groups, uid and extra fields are taken over; the group of authenticated users is added."""
    headers = CIMultiDict(
        [
            ("Impersonate-User", "joe"),
            ("Impersonate-Group", "dev"),
            ("Impersonate-Group", "ops"),
            ("Impersonate-Uid", "7"),
            ("Impersonate-Extra-Scopes%2fx", "a"),
            ("Impersonate-Extra-Scopes%2fx", "b"),
        ]
    )
    expected = User("joe", ("dev", "ops", "system:authenticated"), uid="7", extra={"scopes/x": ("a", "b")})
    assert expected == impersonated(User("admin"), headers, EverythingAllowed())


def test_impersonated_service_accounts_get_their_groups():
    """Without groups of its own a service account has those of all service accounts."""
    user = impersonated(User("admin"), {"Impersonate-User": "system:serviceaccount:ci:builder"}, EverythingAllowed())
    assert ("system:serviceaccounts", "system:serviceaccounts:ci", "system:authenticated") == user.groups


def test_impersonated_anonymous_stays_unknown():
    """The anonymous user stays unauthenticated under impersonation."""
    user = impersonated(User("admin"), {"Impersonate-User": "system:anonymous"}, EverythingAllowed())
    assert ANONYMOUS == user


def test_impersonation_needs_permission():
    """Impersonation without permission is refused in the words of the API server."""
    with pytest.raises(StatusError) as refused:
        impersonated(authenticated(User("jim")), {"Impersonate-User": "joe"}, RbacAuthorizer(Store()))
    assert 403 == refused.value.status
    expected = (
        'users "joe" is forbidden: User "jim" cannot impersonate resource "users" in API group "" at the cluster scope'
    )
    assert expected == refused.value.message


def test_groups_without_a_user_are_a_bad_request():
    """Groups cannot be impersonated alone."""
    with pytest.raises(StatusError) as refused:
        impersonated(User("jim"), {"Impersonate-Group": "dev"}, EverythingAllowed())
    assert 400 == refused.value.status
    assert "requested [{Group  dev    }] without impersonating a user" == refused.value.message
