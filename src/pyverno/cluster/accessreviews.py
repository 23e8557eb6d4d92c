"""Authorization checks as SubjectAccessReviews: writing one, and reading the API server's decision.

A check concerns the user of a request, with groups, uid and extra, or a service account.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING

from pyverno.engine.request import User
from pyverno.kube.json import JSONObject

if TYPE_CHECKING:
    # CEL is imported only where a policy needs it
    from pyverno.lang.cel.host import AuthorizationCheck, Decision

__all__ = ["access_review", "decision_of", "question_key", "resource_review"]

_NAMES = ("group", "resource", "subresource", "namespace", "name")
_SELECTORS = ("fieldSelector", "labelSelector")


def access_review(check: AuthorizationCheck, user: User) -> JSONObject:
    """Return the SubjectAccessReview of a check.

    >>> from pyverno.lang.cel.host import AuthorizationCheck
    >>> check = AuthorizationCheck({"resource": "pods", "namespace": "shop"}, "get", ("shop", "web"))
    >>> spec = access_review(check, User("alice"))["spec"]
    >>> spec["user"], spec["resourceAttributes"]["resource"]
    ('system:serviceaccount:shop:web', 'pods')
    """
    attributes = check.attributes
    spec = _subject_spec(check.service_account, user)
    if "path" in attributes:
        spec["nonResourceAttributes"] = {"path": attributes["path"], "verb": check.verb}
    else:
        spec["resourceAttributes"] = {
            "verb": check.verb,
            "version": "*",
            **{name: attributes[name] for name in _NAMES if attributes.get(name)},
            **{name: {"rawSelector": attributes[name]} for name in _SELECTORS if attributes.get(name)},
        }
    return {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}


def resource_review(user: User, verb: str, attributes: Mapping[str, str]) -> JSONObject:
    """Return the SubjectAccessReview of whether a user may do something with a resource.

    >>> found = resource_review(User("alice"), "create", {"resource": "secrets", "namespace": "shop"})
    >>> found["spec"]["user"], found["spec"]["resourceAttributes"]["verb"]
    ('alice', 'create')
    """
    named = {name: attributes[name] for name in _NAMES if attributes.get(name)}
    spec = {**_subject_spec(None, user), "resourceAttributes": {"verb": verb, "version": "*", **named}}
    return {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}


def question_key(user: User, *parts: str) -> bytes:
    """Return a short key of a question, to remember its answer: anybody may send reviews of users with long texts.

    >>> len(question_key(User("a" * 1_000_000), "create", "pods"))
    32
    """
    text = repr([user.to_json(), *parts])
    return sha256(text.encode("utf-8", "surrogatepass")).digest()  # guard: no text of a request is remembered


def _subject_spec(service_account: tuple[str, str] | None, user: User) -> JSONObject:
    if service_account is not None:
        namespace, name = service_account
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
        return {"user": f"system:serviceaccount:{namespace}:{name}", "groups": groups}
    spec: JSONObject = {"user": user.username, "groups": list(user.groups)}
    if user.uid:
        spec["uid"] = user.uid
    if user.extra:
        spec["extra"] = {key: list(values) for key, values in user.extra.items()}
    return spec


def decision_of(review: JSONObject) -> Decision:
    """Read the answer; an error of the authorizer counts only if no rule has allowed the access.

    >>> decision_of({"status": {"allowed": True, "reason": "RBAC"}}).allowed
    True
    """
    from pyverno.lang.cel.host import Decision

    status = review.get("status") or {}
    allowed = status.get("allowed") is True and status.get("denied") is not True
    error = "" if allowed else str(status.get("evaluationError") or "")
    return Decision(allowed=allowed, reason=str(status.get("reason") or ""), error=error)
