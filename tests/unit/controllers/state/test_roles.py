"""Roles of users from role bindings that change."""

from __future__ import annotations

from typing import Any

from pyverno.controllers.state.roles import RoleIndex
from pyverno.engine.request import User
from pyverno.kube.json import JSONObject


def binding(name: str, role: str, *subjects: JSONObject, namespace: str = "", kind: str = "ClusterRole") -> JSONObject:
    """Return a binding."""
    metadata: dict[str, Any] = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"metadata": metadata, "roleRef": {"kind": kind, "name": role}, "subjects": list(subjects)}


ALICE = {"kind": "User", "name": "alice"}
DEVS = {"kind": "Group", "name": "devs"}
ROBOT = {"kind": "ServiceAccount", "name": "robot", "namespace": "ci"}


def test_roles_are_of_all_namespaces_and_cluster_roles_of_this_one() -> None:
    """As in Kyverno, roles of every namespace count, but cluster roles only where their binding applies."""
    index = RoleIndex()
    index.put(binding("a", "edit", ALICE, namespace="team", kind="Role"))
    index.put(binding("b", "view", ALICE, namespace="team"))
    index.put(binding("c", "auditor", DEVS))
    alice = User("alice", groups=("devs",))
    assert (("team:edit",), ("auditor", "view")) == index.roles_of(alice, "team")
    assert (("team:edit",), ("auditor",)) == index.roles_of(alice, "other")
    assert ((), ()) == index.roles_of(User("bob"), "team")


def test_service_accounts_are_named_by_their_namespace() -> None:
    """A subject without a namespace has the namespace of its binding."""
    index = RoleIndex()
    index.put(binding("a", "deployer", ROBOT))
    index.put(binding("b", "reader", {"kind": "ServiceAccount", "name": "robot"}, namespace="ci"))
    robot = User("system:serviceaccount:ci:robot")
    assert ((), ("deployer", "reader")) == index.roles_of(robot, "ci")
    assert ((), ()) == index.roles_of(User("system:serviceaccount:other:robot"), "ci")


def test_a_grant_lasts_as_long_as_some_binding_gives_it() -> None:
    """A changed binding grants only its new roles."""
    index = RoleIndex()
    for name in ("a", "b"):
        index.put(binding(name, "auditor", ALICE, ALICE))
    index.remove(binding("a", "auditor"))
    assert ((), ("auditor",)) == index.roles_of(User("alice"), "")
    index.put(binding("b", "viewer", DEVS))
    assert ((), ()) == index.roles_of(User("alice"), "")
    index.remove(binding("none", "auditor"))
    assert ((), ("viewer",)) == index.roles_of(User("x", groups=("devs",)), "")
