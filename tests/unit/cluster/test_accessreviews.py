"""Authorization checks: their requests to the API server, their number, and their results."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.accessreviews import access_review, decision_of, question_key
from pyverno.cluster.client import Client
from pyverno.cluster.host import ClusterHost
from pyverno.engine.request import User
from pyverno.errors import EvaluationError, HostError
from pyverno.kube.gvk import GVR
from pyverno.kube.kinds import BUILTIN_KINDS
from pyverno.lang.cel.host import AuthorizationCheck
from pyverno.offline.system import System

ROLES = GVR("rbac.authorization.k8s.io", "v1", "roles")
BINDINGS = GVR("rbac.authorization.k8s.io", "v1", "rolebindings")
PODS = {"group": "", "resource": "pods", "namespace": "default"}
ALICE = User("alice", ("devs",))


def check(verb: str = "get", account: tuple[str, str] | None = None, **attributes: str) -> AuthorizationCheck:
    return AuthorizationCheck({**PODS, **attributes}, verb, account)


def test_a_review_has_all_attributes_of_user_and_resource() -> None:
    """Groups, uid and extra are included; a selector is passed on unchanged."""
    user = User("alice", ("devs",), uid="7", extra={"scopes": ("a", "b")})
    spec = access_review(check("list", subresource="log", name="web", labelSelector="app=web"), user)["spec"]
    assert {
        "user": "alice",
        "groups": ["devs"],
        "uid": "7",
        "extra": {"scopes": ["a", "b"]},
        "resourceAttributes": {
            "verb": "list",
            "version": "*",
            "resource": "pods",
            "subresource": "log",
            "namespace": "default",
            "name": "web",
            "labelSelector": {"rawSelector": "app=web"},
        },
    } == spec


def test_a_path_is_checked_as_a_non_resource() -> None:
    """A check on a path has the path and a verb."""
    review = access_review(AuthorizationCheck({"path": "/healthz"}, "get", None), ALICE)
    assert {"path": "/healthz", "verb": "get"} == review["spec"]["nonResourceAttributes"]


@pytest.mark.parametrize(
    ("status", "allowed", "error"),
    [
        ({"allowed": True}, True, ""),
        ({"allowed": True, "evaluationError": "one role is missing"}, True, ""),
        ({"allowed": False, "evaluationError": "no roles"}, False, "no roles"),
        ({"allowed": True, "denied": True}, False, ""),
        ({}, False, ""),
        (None, False, ""),
    ],
)
def test_only_a_clear_yes_allows(status: object, allowed: bool, error: str) -> None:
    """A missing or invalid status denies."""
    found = decision_of({"status": status})
    assert (allowed, error) == (found.allowed, found.error)


def asking(questions: Callable[[ClusterHost, list[str]], None]) -> None:
    """Run checks in a worker thread, against a sandbox in which the group `devs` may read Pods of `default`."""

    async def run() -> None:
        requests: list[str] = []
        sandbox = Sandbox(Settings(controllers=False, log_request=requests.append))
        await sandbox.start()
        try:
            async with Client(load_kubeconfig(sandbox.kubeconfig), qps=0) as client:
                head = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "readers"}}
                rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
                await client.create(ROLES, {**head, "kind": "Role", "rules": rules}, "default")
                group = "rbac.authorization.k8s.io"
                reference = {"apiGroup": group, "kind": "Role", "name": "readers"}
                subjects = [{"apiGroup": group, "kind": "Group", "name": "devs"}]
                binding = {**head, "kind": "RoleBinding", "roleRef": reference, "subjects": subjects}
                await client.create(BINDINGS, binding, "default")
                host = ClusterHost(client, asyncio.get_running_loop(), lambda: BUILTIN_KINDS, System())
                await asyncio.to_thread(questions, host, requests)
        finally:
            await sandbox.stop()

    asyncio.run(run())


def reviews(requests: list[str]) -> int:
    return sum("subjectaccessreviews" in line for line in requests)


def test_the_authorizer_checks_the_user_of_the_request() -> None:
    """Its groups count; other users, verbs or namespaces have other results."""

    def questions(host: ClusterHost, _: list[str]) -> None:
        alice, bob = host.for_request(ALICE), host.for_request(User("bob"))
        assert alice.authorize(check()).allowed
        assert not alice.authorize(check("delete")).allowed
        assert not alice.authorize(check(namespace="kube-system")).allowed
        assert not alice.authorize(check(account=("default", "robot"))).allowed
        assert not bob.authorize(check()).allowed

    asking(questions)


def test_a_check_is_made_once_for_a_request() -> None:
    """The result holds for one admission request only, because roles may change."""

    def questions(host: ClusterHost, requests: list[str]) -> None:
        for _ in range(2):
            one = host.for_request(ALICE)
            assert one.authorize(check()).allowed
            assert one.authorize(check()).allowed
        assert 2 == reviews(requests)

    asking(questions)


def test_without_a_request_there_is_no_user_to_check() -> None:
    """A host without a user raises an error instead of a denial."""

    def questions(host: ClusterHost, requests: list[str]) -> None:
        with pytest.raises(EvaluationError, match="the evaluation has no user"):
            host.authorize(check())
        assert 0 == reviews(requests)

    asking(questions)


def test_a_check_after_the_deadline_has_no_result() -> None:
    """A finished request waits for nothing."""

    def questions(host: ClusterHost, _: list[str]) -> None:
        with pytest.raises(HostError, match="no answer within 0 seconds"):
            host.for_request(ALICE, time.monotonic() - 1).authorize(check())

    asking(questions)


def test_answers_are_remembered_without_the_texts_of_their_questions() -> None:
    """Users in reviews are anybody's text, of megabytes; parts that move from one place to another are other keys."""
    users = [User("a"), User("\ud800"), User("a" * 5_000_000), User("a", groups=("b",)), User("b", groups=("a",))]
    keys = [question_key(user, *parts) for user in users for parts in (("get", "pods"), ("getpods", ""), ("get", "p"))]
    assert ({32}, len(keys)) == ({len(key) for key in keys}, len(set(keys)))
