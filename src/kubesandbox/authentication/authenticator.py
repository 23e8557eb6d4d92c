"""The user of a request: client certificates, bearer tokens of files and service accounts, anonymous, impersonation.

A wrong credential is 401, never another user.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from hmac import compare_digest
from urllib.parse import unquote

from kubesandbox.authentication.tokens import ISSUER, LEGACY_ISSUER, TokenError, TokenSigner, check_times
from kubesandbox.authorization.access import AccessAttributes, Authorizer, forbidden_access
from kubesandbox.storage.store import Key
from kubesandbox.view import ObjectReader
from pyverno.engine.request import User
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.status import bad_request, unauthorized
from pyverno.value import dataclass, replace

__all__ = [
    "ANONYMOUS",
    "Authenticator",
    "StaticToken",
    "authenticated",
    "impersonated",
    "service_account_user",
]

_AUTHENTICATED, _UNAUTHENTICATED = "system:authenticated", "system:unauthenticated"
ANONYMOUS = User("system:anonymous", (_UNAUTHENTICATED,))
_EXTRA = "authentication.kubernetes.io"
_CREDENTIAL = f"{_EXTRA}/credential-id"
_PREFIX = "system:serviceaccount:"
_USER, _GROUP, _UID, _EXTRA_HEADER = (
    "impersonate-user",
    "impersonate-group",
    "impersonate-uid",
    "impersonate-extra-",
)


@dataclass(frozen=True, slots=True)
class StaticToken:
    """One line of a token file."""

    token: str
    user: User


class Authenticator:
    """Determines the user of a request."""

    def __init__(
        self,
        objects: ObjectReader,
        signer: TokenSigner,
        *,
        clock: Callable[[], datetime],
        static_tokens: Iterable[StaticToken] = (),
        allows_anonymous: bool = True,
        audiences: Sequence[str] = (ISSUER,),
    ) -> None:
        """Take the store of service accounts, the key that signed their tokens, and the tokens of a file."""
        self.audiences = tuple(audiences)
        self._objects = objects
        self._signer = signer
        self._clock = clock
        self._static = tuple(static_tokens)
        self._allows_anonymous = allows_anonymous

    def authenticate(self, headers: Mapping[str, str], certificate: Mapping[str, JSON] | None) -> User:
        """Return the user of a request; raises StatusError 401.

        `certificate` is the client certificate whose chain `ssl` has verified, as `getpeercert()` returns it;
        `sha256`, the hash of its bytes in hexadecimal, may be in it and is then the credential's id.
        """
        if certificate:
            user = _certificate_user(certificate)
            if user is not None:
                return authenticated(user)
        token = _bearer_token(headers)
        if token:
            try:
                return self.token_user(token)[0]
            except TokenError:
                raise unauthorized() from None
        if self._allows_anonymous:
            return ANONYMOUS
        raise unauthorized()

    def token_user(self, token: str, audiences: Sequence[str] = ()) -> tuple[User, tuple[str, ...]]:
        """Return the user of a bearer token, and the requested audiences for which it is valid; raises TokenError."""
        wanted = tuple(audiences) or self.audiences
        for known in self._static:
            if compare_digest(known.token.encode(), token.encode()):
                return authenticated(known.user), tuple(each for each in wanted if each in self.audiences)
        claims = self._claims(token)
        try:
            if claims.get("iss") == LEGACY_ISSUER:
                user, meant = self._legacy_user(claims, token), self.audiences
            else:
                check_times(claims, self._clock())
                meant = _audiences(claims.get("aud"))
                user = self._account_user(claims)
            common = tuple(each for each in meant if each in wanted)
            if not common:
                said = f"{_quote(meant)} is invalid for the target audiences {_quote(wanted)}"
                raise TokenError(f"token audiences {said}")
        except TokenError as error:
            raise TokenError(f"[invalid bearer token, {error.message}]") from None
        return authenticated(user), common

    def _claims(self, token: str) -> JSONObject:
        claims = self._signer.read(token)
        if claims.get("iss") not in (self._signer.issuer, LEGACY_ISSUER):
            raise TokenError("invalid bearer token")
        return claims

    def _account_user(self, claims: JSONObject) -> User:
        bound = _object(claims.get("kubernetes.io"))
        namespace = _read_text(bound.get("namespace"))
        account = _object(bound.get("serviceaccount"))
        name, uid = _read_text(account.get("name")), _read_text(account.get("uid"))
        self._check_account(namespace, name, uid)
        extra: dict[str, tuple[str, ...]] = {}
        if claims.get("jti"):
            extra[_CREDENTIAL] = (f"JTI={claims['jti']}",)
        for kind, resource in (("node", "nodes"), ("pod", "pods"), ("secret", "secrets")):
            reference = _object(bound.get(kind))
            if not reference:
                continue
            item, item_uid = _read_text(reference.get("name")), _read_text(reference.get("uid"))
            # Kubernetes: the node of a token that is bound to a pod is reported, not checked
            if kind != "node" or "pod" not in bound:
                self._check_bound(kind, Key(resource, "" if kind == "node" else namespace, item), item_uid)
            if kind != "secret":
                extra[f"{_EXTRA}/{kind}-name"] = (item,)
                if item_uid:
                    extra[f"{_EXTRA}/{kind}-uid"] = (item_uid,)
        return replace(service_account_user(namespace, name, uid), extra=extra)

    def _check_account(self, namespace: str, name: str, uid: str) -> None:
        found = self._objects.get(Key("serviceaccounts", namespace, name))
        if found is None:
            raise TokenError(f'serviceaccounts "{name}" not found')
        metadata = found.body["metadata"]
        if metadata.get("uid", "") != uid:
            raise TokenError(f"service account UID ({metadata.get('uid', '')}) does not match claim ({uid})")
        if metadata.get("deletionTimestamp"):
            raise TokenError(f"service account {namespace}/{name} has been deleted")

    def _check_bound(self, kind: str, key: Key, uid: str) -> None:
        found = self._objects.get(key)
        metadata = found.body["metadata"] if found is not None else {"deletionTimestamp": "gone"}
        if found is not None and metadata.get("uid", "") != uid:
            said = f"{kind} UID ({metadata.get('uid', '')}) does not match service account {kind} ref claim ({uid})"
            raise TokenError(said)
        if metadata.get("deletionTimestamp"):
            raise TokenError("service account token has been invalidated")

    def _legacy_user(self, claims: JSONObject, token: str) -> User:
        prefix = "kubernetes.io/serviceaccount/"
        said = {key: _read_text(claims.get(prefix + key)) for key in ("namespace", "secret.name")}
        name, uid = (_read_text(claims.get(f"{prefix}service-account.{key}")) for key in ("name", "uid"))
        namespace = said["namespace"]
        if claims.get("sub") != f"{_PREFIX}{namespace}:{name}" or not uid:
            raise TokenError("sub claim is invalid")
        secret = self._objects.get(Key("secrets", namespace, said["secret.name"]))
        if secret is None or secret.body["metadata"].get("deletionTimestamp"):
            raise TokenError("Token has been invalidated")
        try:
            kept = base64.b64decode(_read_text(_object(secret.body.get("data")).get("token")))
        except binascii.Error:
            kept = b""
        if not compare_digest(kept, token.encode()):
            raise TokenError("Token does not match server's copy")
        self._check_account(namespace, name, uid)
        return service_account_user(namespace, name, uid)


def service_account_user(namespace: str, name: str, uid: str = "") -> User:
    """Return the user of a service account, without the group of all authenticated users.

    >>> service_account_user("ci", "builder").groups
    ('system:serviceaccounts', 'system:serviceaccounts:ci')
    """
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    return User(f"{_PREFIX}{namespace}:{name}", groups, uid=uid)


def authenticated(user: User) -> User:
    """Return the user with the group of all authenticated users."""
    if _AUTHENTICATED in user.groups or _UNAUTHENTICATED in user.groups:
        return user
    return replace(user, groups=(*user.groups, _AUTHENTICATED))


def impersonated(user: User, headers: Mapping[str, str], authorizer: Authorizer) -> User:
    """Return the impersonated user, or the user; raises StatusError 400 and 403.

    A multi-valued mapping of headers gives all values in `items()`, as aiohttp's does.
    """
    wanted = [(key.lower(), value) for key, value in headers.items() if key.lower().startswith("impersonate-")]
    if not wanted:
        return user
    name = next((value for key, value in wanted if key == _USER), "")
    groups = [value for key, value in wanted if key == _GROUP]
    uid = next((value for key, value in wanted if key == _UID), "")
    extra: dict[str, tuple[str, ...]] = {}
    for key, value in wanted:
        if key.startswith(_EXTRA_HEADER):
            field = unquote(key.removeprefix(_EXTRA_HEADER))
            extra[field] = (*extra.get(field, ()), value)
    if not name:
        if not (groups or uid or extra):
            return user
        raise bad_request(f"requested {_references(groups, uid, extra)} without impersonating a user")
    namespace, account = User(name).service_account
    is_account = bool(namespace and account)
    _check(user, authorizer, "serviceaccounts" if is_account else "users", account if is_account else name, namespace)
    for group in groups:
        _check(user, authorizer, "groups", group)
    for field, values in extra.items():
        for value in values:
            _check(user, authorizer, "userextras", value, group="authentication.k8s.io", subresource=field)
    if uid:
        _check(user, authorizer, "uids", uid, group="authentication.k8s.io")
    if is_account and not groups:
        groups = list(service_account_user(namespace, account).groups)
    if name == ANONYMOUS.username:
        groups = groups if _UNAUTHENTICATED in groups else [*groups, _UNAUTHENTICATED]
        return User(name, tuple(groups), uid=uid, extra=extra)
    return authenticated(User(name, tuple(groups), uid=uid, extra=extra))


def _check(
    user: User,
    authorizer: Authorizer,
    resource: str,
    name: str,
    namespace: str = "",
    *,
    group: str = "",
    subresource: str = "",
) -> None:
    attributes = AccessAttributes(
        user,
        "impersonate",
        group=group,
        version="v1" if group else "",
        resource=resource,
        subresource=subresource,
        namespace=namespace,
        name=name,
    )
    access = authorizer.authorize(attributes)
    if not access.allowed:
        raise forbidden_access(attributes, access.reason)


def _references(groups: Sequence[str], uid: str, extra: Mapping[str, Sequence[str]]) -> str:
    """Format the request as Go prints a list of ObjectReferences."""
    rows = [("Group", "", group, "", "", "", "") for group in groups]
    version = "authentication.k8s.io/v1"
    rows.extend(("UserExtra", "", value, "", version, "", key) for key, values in extra.items() for value in values)
    if uid:
        rows.append(("UID", "", uid, "", version, "", ""))
    return "[" + " ".join("{" + " ".join(row) + "}" for row in rows) + "]"


def _certificate_user(certificate: Mapping[str, JSON]) -> User | None:
    """Return the user in the subject of a certificate: common name and organisations."""
    pairs = [tuple(pair) for relative in certificate.get("subject") or () for pair in relative]
    name = next((value for key, value in pairs if key == "commonName"), "")
    if not name:
        return None
    groups = tuple(value for key, value in pairs if key == "organizationName")
    digest = certificate.get("sha256")
    extra = {_CREDENTIAL: (f"X509SHA256={digest}",)} if digest else {}
    return User(name, groups, extra=extra)


def _bearer_token(headers: Mapping[str, str]) -> str:
    value = next((value for key, value in headers.items() if key.lower() == "authorization"), "")
    parts = value.strip().split(" ", 2)
    return parts[1] if len(parts) > 1 and parts[0].lower() == "bearer" else ""


def _audiences(value: JSON) -> tuple[str, ...]:
    listed = value if isinstance(value, list) else [value]
    return tuple(each for each in listed if isinstance(each, str))


def _quote(texts: Sequence[str]) -> str:
    return "[" + " ".join(f'"{each}"' for each in texts) + "]"


def _object(value: JSON) -> JSONObject:
    return value if isinstance(value, dict) else {}


def _read_text(value: JSON) -> str:
    return value if isinstance(value, str) else ""
