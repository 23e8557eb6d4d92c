"""The review APIs, and requested tokens."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import count

import pytest

from kubesandbox.authentication.authenticator import Authenticator
from kubesandbox.authentication.tokens import ISSUER, TokenSigner
from kubesandbox.authorization.bootstrap import bootstrap_objects
from kubesandbox.authorization.rbac import RbacAuthorizer
from kubesandbox.reviews import Reviews
from kubesandbox.storage.store import Store
from pyverno.engine.request import User
from pyverno.kube.gvk import GVK
from pyverno.kube.status import StatusError
from tests.support.admissionstage import TABLE, in_store

NOW = datetime(2025, 6, 1, 12, tzinfo=UTC)
SIGNER = TokenSigner.make()
JANE = User("jane", ("dev", "system:authenticated"))
ACCOUNT = {
    "apiVersion": "v1",
    "kind": "ServiceAccount",
    "metadata": {"name": "builder", "namespace": "ci", "uid": "u-1"},
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "ci", "uid": "u-2"},
    "spec": {"serviceAccountName": "builder", "nodeName": "n"},
}


def reviews(*bodies) -> Reviews:
    store = in_store(Store(), *bootstrap_objects(), ACCOUNT, POD, *bodies)
    authenticator = Authenticator(store, SIGNER, clock=lambda: NOW)
    numbers = count(1)
    return Reviews(
        objects=store,
        authenticator=authenticator,
        authorizer=RbacAuthorizer(store),
        signer=SIGNER,
        clock=lambda: NOW,
        make_id=lambda: f"j-{next(numbers)}",
    )


def asked(kind, spec, *, group="authorization.k8s.io", user=JANE, namespace="", metadata=None, on=None):
    type = TABLE.by_kind(GVK(group, "v1", kind))
    assert type is not None
    found = on or reviews()
    assert found.answers(type)
    return found.review(type, {"metadata": metadata or {}, "spec": spec}, user, namespace=namespace)


def refusal(make) -> StatusError:
    with pytest.raises(StatusError) as refused:
        make()
    return refused.value


def test_people_learn_what_they_may():
    """The answer is in the status, beside the question in the spec."""
    spec = {"resourceAttributes": {"verb": "list", "resource": "pods"}}
    assert {
        "kind": "SelfSubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {},
        "spec": spec,
        "status": {"allowed": False},
    } == asked("SelfSubjectAccessReview", spec)
    path = {"nonResourceAttributes": {"verb": "get", "path": "/apis"}}
    reason = (
        'RBAC: allowed by ClusterRoleBinding "system:discovery" of ClusterRole "system:discovery" to Group '
        '"system:authenticated"'
    )
    assert {"allowed": True, "reason": reason} == asked("SelfSubjectAccessReview", path)["status"]


def test_access_of_others_can_be_reviewed():
    """The user and groups of the spec count, not those of the client."""
    spec = {"user": "x", "groups": ["kubeadm:cluster-admins"], "resourceAttributes": {"verb": "*", "resource": "nodes"}}
    assert asked("SubjectAccessReview", spec)["status"]["allowed"]
    assert not asked("SubjectAccessReview", {**spec, "groups": []})["status"]["allowed"]


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({}, "spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or"),
        ({"resourceAttributes": {}, "nonResourceAttributes": {}}, "cannot be specified in combination with"),
    ],
)
def test_questions_must_ask_one_thing(spec, why):
    """A spec with none or with both kinds of attributes is refused."""
    error = refusal(lambda: asked("SelfSubjectAccessReview", spec))
    assert 422 == error.status
    assert why in error.message


def test_an_access_review_names_a_user():
    """A spec without user and groups is refused."""
    error = refusal(lambda: asked("SubjectAccessReview", {"resourceAttributes": {"verb": "get"}}))
    assert 'spec.user: Invalid value: "": at least one of user or group must be specified' in error.message


def test_local_questions_stay_in_their_namespace():
    """The review must name the namespace of its path, and cannot check non-resource paths."""
    spec = {"user": "x", "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "other"}}
    ask = lambda spec: asked("LocalSubjectAccessReview", spec, namespace="ci", metadata={"namespace": "ci"})  # noqa: E731
    assert "must match metadata.namespace" in refusal(lambda: ask(spec)).message
    spec["resourceAttributes"]["namespace"] = "ci"
    assert {"allowed": False} == ask(spec)["status"]
    path = {"user": "x", "nonResourceAttributes": {"verb": "get", "path": "/"}}
    assert "disallowed on this kind of request" in refusal(lambda: ask(path)).message


def test_people_can_list_their_rights():
    """Rules about resources and about paths are listed apart."""
    status = asked("SelfSubjectRulesReview", {"namespace": "ci"})["status"]
    assert status["incomplete"] is False
    assert {
        "verbs": ["create"],
        "apiGroups": ["authentication.k8s.io"],
        "resources": ["selfsubjectreviews"],
    } in status["resourceRules"]
    assert any("/apis/*" in rule["nonResourceURLs"] for rule in status["nonResourceRules"])
    error = refusal(lambda: asked("SelfSubjectRulesReview", {}))
    assert (400, "no namespace on request") == (error.status, error.message)


def test_people_learn_who_they_are():
    """`kubectl auth whoami` prints the user of the request."""
    found = asked("SelfSubjectReview", {}, group="authentication.k8s.io")
    assert {"username": "jane", "groups": ["dev", "system:authenticated"]} == found["status"]["userInfo"]


def test_tokens_are_made_and_recognised():
    """A requested token belongs to the account, with the requested audience and lifetime."""
    found = reviews()
    made = found.token("ci", "builder", {"spec": {"expirationSeconds": 7200}})
    assert {"name": "builder", "namespace": "ci", "uid": "u-1", "creationTimestamp": "2025-06-01T12:00:00Z"} == (
        made["metadata"]
    )
    assert {"audiences": [ISSUER], "expirationSeconds": 7200, "boundObjectRef": None} == made["spec"]
    assert "2025-06-01T14:00:00Z" == made["status"]["expirationTimestamp"]
    token = made["status"]["token"]
    status = asked("TokenReview", {"token": token}, group="authentication.k8s.io", on=found)["status"]
    assert (True, [ISSUER]) == (status["authenticated"], status["audiences"])
    assert {
        "username": "system:serviceaccount:ci:builder",
        "uid": "u-1",
        "groups": ["system:serviceaccounts", "system:serviceaccounts:ci", "system:authenticated"],
        "extra": {"authentication.kubernetes.io/credential-id": ["JTI=j-1"]},
    } == status["user"]


def test_bad_tokens_are_refused_with_the_reason():
    """The status holds the error of a token that is not accepted."""
    found = asked("TokenReview", {"token": "abc"}, group="authentication.k8s.io")
    assert {"user": {}, "error": "invalid bearer token"} == found["status"]
    error = refusal(lambda: asked("TokenReview", {}, group="authentication.k8s.io"))
    assert (400, "token is required for TokenReview in authentication") == (error.status, error.message)


def test_tokens_of_pods_hold_longer_than_requested():
    """Kubernetes gives clients that never read their token again a year."""
    bound = {"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": "u-2"}
    made = reviews().token("ci", "builder", {"spec": {"expirationSeconds": 3607, "boundObjectRef": bound}})
    claims = SIGNER.read(made["status"]["token"])
    assert 365 * 24 * 3600 == claims["exp"] - claims["iat"]
    assert ({"name": "p", "uid": "u-2"}, {"name": "n"}) == (
        claims["kubernetes.io"]["pod"],
        claims["kubernetes.io"]["node"],
    )
    assert "2025-06-01T13:00:07Z" == made["status"]["expirationTimestamp"]


@pytest.mark.parametrize(
    ("name", "body", "code", "why"),
    [
        ("nope", {}, 404, 'serviceaccounts "nope" not found'),
        (
            "builder",
            {"spec": {"expirationSeconds": 60}},
            422,
            "spec.expirationSeconds: Invalid value: 60: may not specify a duration less than 10 minutes",
        ),
        ("builder", {"metadata": {"name": "x"}}, 422, "must match the service account name if specified"),
        ("builder", {"metadata": {"uid": "u-9"}}, 409, "the UID in the token request (u-9) does not match the UID of"),
        (
            "builder",
            {"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "q"}}},
            404,
            'pods "q" not found',
        ),
        (
            "builder",
            {"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": "u-9"}}},
            409,
            "the UID in the bound object reference (u-9) does not match the UID in record",
        ),
        (
            "builder",
            {"spec": {"boundObjectRef": {"kind": "Deployment", "apiVersion": "apps/v1", "name": "d"}}},
            400,
            "cannot bind token to object of type apps/v1, Kind=Deployment",
        ),
    ],
)
def test_requests_for_tokens_that_can_not_be_given(name, body, code, why):
    """Each has the code and words of the API server."""
    error = refusal(lambda: reviews().token("ci", name, body))
    assert code == error.status
    assert why in error.message
