"""Reviews: questions in the form of objects that are never stored (who am I, may I, whose token is this).

Also tokens that service accounts are given. This module must never decide by itself: it calls the authenticator and the
authorizer and writes down their answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from kubesandbox.authentication.authenticator import Authenticator
from kubesandbox.authentication.tokens import TokenError, TokenSigner, account_claims
from kubesandbox.authorization.access import AccessAttributes, Authorizer, PolicyRule
from kubesandbox.parsing.requests import go_quote
from kubesandbox.storage.store import Key
from kubesandbox.types.resources import ResourceType
from kubesandbox.view import ObjectReader
from pyverno.engine.request import User
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.status import FieldError, bad_request, conflict, invalid, not_found

__all__ = ["Reviews"]

_AUTHORIZATION = "authorization.k8s.io"
_EXACTLY_ONE = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
_HOUR, _LEAST, _MOST = 3600, 600, 2**32
_PROJECTED, _EXTENDED = 3607, 365 * 24 * 3600
"""How long pods ask their tokens to hold, and how long those really do, for clients that never read them again."""

_BOUND = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


class Reviews:
    """Answers the review APIs and gives tokens to service accounts."""

    def __init__(
        self,
        *,
        objects: ObjectReader,
        authenticator: Authenticator,
        authorizer: Authorizer,
        signer: TokenSigner,
        clock: Callable[[], datetime],
        make_id: Callable[[], str],
    ) -> None:
        """Take the authenticator, the authorizer, the signer of tokens, and the store of accounts."""
        self._objects = objects
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._signer = signer
        self._clock = clock
        self._make_id = make_id
        self._answers: Mapping[str, Callable[[JSONObject, User, str], JSONObject]] = {
            "subjectaccessreviews": self._subject_access,
            "localsubjectaccessreviews": self._local_subject_access,
            "selfsubjectaccessreviews": self._self_access,
            "selfsubjectrulesreviews": self._self_rules,
            "tokenreviews": self._token,
            "selfsubjectreviews": self._self_subject,
        }

    def answers(self, type: ResourceType) -> bool:
        """Return whether a type is a question."""
        return type.plural in self._answers and type.group in (_AUTHORIZATION, "authentication.k8s.io")

    def review(self, type: ResourceType, body: JSONObject, user: User, *, namespace: str = "") -> JSONObject:
        """Return the object with its answer in `status`; `namespace` is that of the path; raises StatusError."""
        answer = self._answers[type.plural](body, user, namespace)
        head: JSONObject = {"kind": type.kind, "apiVersion": type.api_version, "metadata": body.get("metadata") or {}}
        return {**head, **answer}

    def token(self, namespace: str, name: str, body: JSONObject) -> JSONObject:
        """Return a TokenRequest with a token of a service account; raises StatusError."""
        account = self._find_object("serviceaccounts", namespace, name)
        metadata, spec = body.get("metadata") or {}, dict(body.get("spec") or {})
        _check_token_metadata(metadata, account, name, namespace)
        seconds = spec.get("expirationSeconds")
        seconds = _HOUR if seconds is None else int(seconds)
        _check_duration(seconds)
        audiences = spec.get("audiences") or list(self._authenticator.audiences)
        bound = self._read_bound_objects(spec.get("boundObjectRef"), namespace, name)
        now = self._clock()
        is_ours = set(audiences) <= set(self._authenticator.audiences)
        is_extended = "pod" in bound and seconds == _PROJECTED and is_ours
        claims = account_claims(
            account,
            now=now,
            seconds=_EXTENDED if is_extended else seconds,
            audiences=audiences,
            token_id=self._make_id(),
            issuer=self._signer.issuer,
            warn_after=seconds if is_extended else 0,
            **bound,
        )
        described = {key: account["metadata"].get(key) for key in ("name", "namespace", "uid")}
        reference = spec.get("boundObjectRef")
        spec = {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": reference}
        return {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {**described, "creationTimestamp": _time(now)},
            "spec": spec,
            "status": {
                "token": self._signer.sign(claims),
                "expirationTimestamp": _time(now + timedelta(seconds=seconds)),
            },
        }

    def token_request(self, namespace: str, name: str, body: JSONObject) -> JSONObject:
        """Return a TokenRequest with what the server fills in before it is judged; raises StatusError."""
        account = self._find_object("serviceaccounts", namespace, name)
        metadata, spec = body.get("metadata") or {}, body.get("spec") or {}
        _check_token_metadata(metadata, account, name, namespace)
        seconds = spec.get("expirationSeconds")
        _check_duration(_HOUR if seconds is None else int(seconds))
        described = {key: account["metadata"].get(key) for key in ("name", "namespace", "uid")}
        metadata = {**metadata, **described, "creationTimestamp": _time(self._clock())}
        audiences = spec.get("audiences") or list(self._authenticator.audiences)
        return {**body, "metadata": metadata, "spec": {**spec, "audiences": audiences}}

    def _read_bound_objects(self, reference: JSON, namespace: str, account: str) -> dict[str, JSONObject]:
        """Return what a token is bound to, as arguments of `account_claims`; raises StatusError."""
        if not isinstance(reference, dict):
            return {}
        kind, name = str(reference.get("kind") or ""), str(reference.get("name") or "")
        version = str(reference.get("apiVersion") or "")
        if kind not in _BOUND or version != "v1":
            group, _, short = version.rpartition("/")
            described = f"{group}/{short}, Kind={kind}"
            raise bad_request(f"cannot bind token to object of type {described}")
        body = self._find_object(_BOUND[kind], "" if kind == "Node" else namespace, name)
        if kind == "Pod" and (body.get("spec") or {}).get("serviceAccountName") != account:
            text = f"cannot bind token for serviceaccount {go_quote(account)}"
            raise bad_request(f"{text} to pod running with different serviceaccount name.")
        uid = body["metadata"].get("uid", "")
        if reference.get("uid") and reference["uid"] != uid:
            why = f"the UID in the bound object reference ({reference['uid']}) does not match the UID in record."
            raise conflict("", kind, name, f"{why} The object might have been deleted and then recreated")
        bound = {kind.lower(): body}
        node_name = (body.get("spec") or {}).get("nodeName") if kind == "Pod" else None
        if node_name:
            node = self._objects.get(Key("nodes", "", node_name))
            bound["node"] = {"metadata": {"name": node_name}} if node is None else node.body
        return bound

    def _find_object(self, resource: str, namespace: str, name: str) -> JSONObject:
        found = self._objects.get(Key(resource, namespace, name))
        if found is None:
            raise not_found("", resource, name)
        return found.body

    # ── who ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _self_subject(self, body: JSONObject, user: User, namespace: str) -> JSONObject:
        metadata = {**(body.get("metadata") or {}), "creationTimestamp": _time(self._clock())}
        return {"metadata": metadata, "status": {"userInfo": user.to_json()}}

    def _token(self, body: JSONObject, user: User, namespace: str) -> JSONObject:
        spec = body.get("spec") or {}
        token = spec.get("token")
        if not token:
            raise bad_request("token is required for TokenReview in authentication")
        try:
            found, audiences = self._authenticator.token_user(str(token), spec.get("audiences") or ())
        except TokenError as error:
            return {"spec": spec, "status": {"user": {}, "error": error.message}}
        status = {"authenticated": True, "user": found.to_json(), "audiences": list(audiences)}
        return {"spec": spec, "status": status}

    # ── may ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _self_access(self, body: JSONObject, user: User, namespace: str) -> JSONObject:
        spec = body.get("spec") or {}
        _check_review(spec, body, needs_user=False)
        return {"spec": spec, "status": self._access(_attributes(spec, user))}

    def _subject_access(self, body: JSONObject, user: User, namespace: str) -> JSONObject:
        spec = body.get("spec") or {}
        _check_review(spec, body, needs_user=True)
        return {"spec": spec, "status": self._access(_attributes(spec, _subject(spec)))}

    def _local_subject_access(self, body: JSONObject, user: User, namespace: str) -> JSONObject:
        spec = body.get("spec") or {}
        _check_review(spec, body, needs_user=True, is_local=True)
        if namespace != ((body.get("metadata") or {}).get("namespace") or namespace):
            raise bad_request(f"spec.resourceAttributes.namespace must match namespace: {namespace}")
        return {"spec": spec, "status": self._access(_attributes(spec, _subject(spec)))}

    def _access(self, attributes: AccessAttributes) -> JSONObject:
        access = self._authorizer.authorize(attributes)
        status: JSONObject = {"allowed": access.allowed}
        return {**status, "reason": access.reason} if access.reason else status

    def _self_rules(self, body: JSONObject, user: User, namespace: str) -> JSONObject:
        wanted = (body.get("spec") or {}).get("namespace")
        if not wanted:
            raise bad_request("no namespace on request")
        rules, problem = self._authorizer.rules_for(user, str(wanted))
        status: JSONObject = {
            "resourceRules": [_resource_rule(rule) for rule in rules if rule.resources],
            "nonResourceRules": [
                {"verbs": list(rule.verbs), "nonResourceURLs": list(rule.urls)} for rule in rules if rule.urls
            ],
            "incomplete": False,
        }
        if problem:
            status["evaluationError"] = problem
        return {"spec": {}, "status": status}


def _resource_rule(rule: PolicyRule) -> JSONObject:
    body: JSONObject = {
        "verbs": list(rule.verbs),
        "apiGroups": list(rule.groups),
        "resources": list(rule.resources),
    }
    return {**body, "resourceNames": list(rule.names)} if rule.names else body


def _subject(spec: JSONObject) -> User:
    extra: dict[str, tuple[str, ...]] = {key: tuple(values) for key, values in (spec.get("extra") or {}).items()}
    return User(
        str(spec.get("user") or ""), tuple(spec.get("groups") or ()), uid=str(spec.get("uid") or ""), extra=extra
    )


def _attributes(spec: JSONObject, user: User) -> AccessAttributes:
    resource = spec.get("resourceAttributes")
    if not isinstance(resource, dict):
        path = spec.get("nonResourceAttributes") or {}
        return AccessAttributes(user, str(path.get("verb") or ""), path=str(path.get("path") or "/"))
    fields = ("group", "version", "resource", "subresource", "namespace", "name")
    named = {field: str(resource.get(field) or "") for field in fields}
    return AccessAttributes(user, str(resource.get("verb") or ""), **named)


def _check_review(spec: JSONObject, body: JSONObject, *, needs_user: bool, is_local: bool = False) -> None:
    """Raise 422 with everything that is wrong with a question."""
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    errors: list[FieldError] = []
    if resource is not None and path is not None:
        why = "cannot be specified in combination with resourceAttributes"
        errors.append(FieldError("spec.nonResourceAttributes", "Invalid value", why, "{}"))
    if resource is None and path is None:
        errors.append(FieldError("spec.resourceAttributes", "Invalid value", _EXACTLY_ONE, "null"))
    if needs_user and not spec.get("user") and not spec.get("groups"):
        why = "at least one of user or group must be specified"
        errors.append(FieldError("spec.user", "Invalid value", why, '""'))
    metadata = body.get("metadata") or {}
    if is_local and isinstance(resource, dict):
        namespace = str(resource.get("namespace") or "")
        if namespace != (metadata.get("namespace") or ""):
            why = "must match metadata.namespace"
            errors.append(FieldError("spec.resourceAttributes.namespace", "Invalid value", why, go_quote(namespace)))
    if is_local and path is not None:
        why = "disallowed on this kind of request"
        errors.append(FieldError("spec.nonResourceAttributes", "Invalid value", why, "{}"))
    if errors:
        raise invalid(_AUTHORIZATION, "", "", errors)


def _check_token_metadata(metadata: JSONObject, account: JSONObject, name: str, namespace: str) -> None:
    for field, wanted in (("name", name), ("namespace", namespace)):
        given = metadata.get(field)
        if given and given != wanted:
            why = f"must match the service account {field} if specified"
            error = FieldError(f"metadata.{field}", "Invalid value", why, go_quote(str(given)))
            raise invalid("authentication.k8s.io", "TokenRequest", name, [error])
    uid, known = metadata.get("uid"), account["metadata"].get("uid", "")
    if uid and uid != known:
        why = f"the UID in the token request ({uid}) does not match the UID of the service account ({known})"
        raise conflict("authentication.k8s.io", "TokenRequest", name, why)


def _check_duration(seconds: int) -> None:
    why = ""
    if seconds < _LEAST:
        why = "may not specify a duration less than 10 minutes"
    elif seconds > _MOST:
        why = "may not specify a duration larger than 2^32 seconds"
    if why:
        error = FieldError("spec.expirationSeconds", "Invalid value", why, str(seconds))
        raise invalid("authentication.k8s.io", "TokenRequest", "", [error])


def _time(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
