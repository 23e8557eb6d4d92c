"""RBAC over the roles and bindings of a store."""

from __future__ import annotations

import pytest

from kubesandbox.authorization.access import (
    MASTERS,
    AccessAttributes,
    EverythingAllowed,
    PolicyRule,
    forbidden_access,
)
from kubesandbox.authorization.rbac import GROUP, RbacAuthorizer, allows
from kubesandbox.storage.store import Key, Store
from pyverno.engine.request import User

PLURALS = {
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "Role": "roles",
    "RoleBinding": "rolebindings",
}


def put(store: Store, *bodies) -> Store:
    for body in bodies:
        metadata = body["metadata"]
        key = Key(f"{PLURALS[body['kind']]}.{GROUP}", metadata.get("namespace", ""), metadata["name"])
        store.put(key, body)
    return store


def role(name, *rules, namespace=""):
    kind = "Role" if namespace else "ClusterRole"
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"kind": kind, "metadata": metadata, "rules": list(rules)}


def binding(name, role_name, *subjects, namespace="", kind="ClusterRole"):
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role_name},
        "subjects": list(subjects),
    }


def user(name):
    return {"kind": "User", "name": name}


READ_PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}
JANE = User("jane", ("dev",))


@pytest.mark.parametrize(
    ("rule", "attributes", "expected"),
    [
        (PolicyRule(("*",), ("*",), ("*",)), {"group": "apps", "resource": "deployments"}, True),
        (PolicyRule(("get",), ("apps",), ("deployments",)), {"group": "apps", "resource": "deployments"}, True),
        (PolicyRule(("get",), ("",), ("deployments",)), {"group": "apps", "resource": "deployments"}, False),
        (PolicyRule(("list",), ("",), ("pods",)), {"resource": "pods"}, False),
        (PolicyRule(("get",), ("",), ("pods",)), {"resource": "pods", "subresource": "log"}, False),
        (PolicyRule(("get",), ("",), ("pods/log",)), {"resource": "pods", "subresource": "log"}, True),
        (PolicyRule(("get",), ("",), ("*/scale",)), {"resource": "rs", "subresource": "scale"}, True),
        (PolicyRule(("get",), ("",), ("*/scale",)), {"resource": "rs", "subresource": "upscale"}, False),
        (PolicyRule(("get",), ("",), ("pods",), ("a",)), {"resource": "pods", "name": "a"}, True),
        (PolicyRule(("get",), ("",), ("pods",), ("a",)), {"resource": "pods", "name": "b"}, False),
        (PolicyRule(("get",), ("",), ("pods",), ("a",)), {"resource": "pods"}, False),
        (PolicyRule(("get",), urls=("/healthz",)), {"path": "/healthz"}, True),
        (PolicyRule(("get",), urls=("/healthz",)), {"path": "/healthz/x"}, False),
        (PolicyRule(("get",), urls=("/healthz/*",)), {"path": "/healthz/x"}, True),
        (PolicyRule(("get",), urls=("*",)), {"path": "/x"}, True),
        (PolicyRule(("*",), ("*",), ("*",)), {"path": "/x"}, False),
        (PolicyRule(("*",), urls=("*",)), {"resource": "pods"}, False),
    ],
)
def test_a_rule_allows_what_it_names(rule, attributes, expected):
    """Verbs, groups, resources, names and URLs must all fit, each with its own wildcards."""
    assert expected is allows(rule, AccessAttributes(JANE, "get", **attributes))


def test_bindings_of_the_cluster_and_of_the_namespace_count():
    """A ClusterRoleBinding counts everywhere, a RoleBinding in its namespace."""
    store = put(
        Store(),
        role("reader", READ_PODS),
        binding("b", "reader", user("jane"), namespace="x"),
        binding("c", "reader", {"kind": "Group", "name": "ops"}),
    )
    found = RbacAuthorizer(store)
    in_x = AccessAttributes(JANE, "list", resource="pods", namespace="x")
    assert found.authorize(in_x).allowed
    expected = 'RBAC: allowed by RoleBinding "b/x" of ClusterRole "reader" to User "jane"'
    assert expected == found.authorize(in_x).reason
    assert not found.authorize(AccessAttributes(JANE, "list", resource="pods", namespace="y")).allowed
    assert not found.authorize(AccessAttributes(JANE, "list", resource="pods")).allowed
    ops = found.authorize(AccessAttributes(User("o", ("ops",)), "list", resource="pods"))
    assert 'RBAC: allowed by ClusterRoleBinding "c" of ClusterRole "reader" to Group "ops"' == ops.reason


def test_service_accounts_are_found_by_their_user_name():
    """A service account without a namespace is one of the binding's own."""
    store = put(
        Store(),
        role("reader", READ_PODS, namespace="x"),
        binding("b", "reader", {"kind": "ServiceAccount", "name": "sa"}, namespace="x", kind="Role"),
    )
    account = User("system:serviceaccount:x:sa")
    access = RbacAuthorizer(store).authorize(AccessAttributes(account, "get", resource="pods", namespace="x"))
    assert 'RBAC: allowed by RoleBinding "b/x" of Role "reader" to ServiceAccount "sa/x"' == access.reason


def test_changes_of_roles_count_at_once():
    """A rule that is taken away no longer allows, and one that is added does."""
    store = put(Store(), role("reader", READ_PODS), binding("b", "reader", user("jane")))
    found = RbacAuthorizer(store)
    wanted = AccessAttributes(JANE, "get", resource="pods")
    assert found.authorize(wanted).allowed
    put(store, role("reader"))
    assert not found.authorize(wanted).allowed
    put(store, role("reader", READ_PODS))
    assert found.authorize(wanted).allowed
    store.remove(Key(f"clusterrolebindings.{GROUP}", "", "b"))
    assert not found.authorize(wanted).allowed


def test_a_missing_role_is_named_in_the_refusal():
    """The refusal names the missing role of a binding of the user."""
    store = put(Store(), binding("b", "nothing", user("jane")))
    wanted = AccessAttributes(JANE, "list", resource="pods", namespace="default")
    access = RbacAuthorizer(store).authorize(wanted)
    error = forbidden_access(wanted, access.reason)
    expected = (
        'pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "default": '
        'RBAC: clusterrole.rbac.authorization.k8s.io "nothing" not found'
    )
    assert (403, "Forbidden", expected) == (error.status, error.reason, error.message)


def test_masters_and_servers_without_authorization_allow_everything():
    """Roles do not matter for `system:masters`, nor without an authorizer."""
    wanted = AccessAttributes(User("root", (MASTERS,)), "get", resource="pods")
    assert RbacAuthorizer(Store()).authorize(wanted).allowed
    assert EverythingAllowed().authorize(AccessAttributes(JANE, "get", path="/x")).allowed
