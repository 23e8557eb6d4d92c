"""A PUT or an apply patch that creates an object needs the verb `create` beside its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest

from tests.e2e.sandbox.client import Answer, Client

APPLY = "application/apply-patch+yaml"
Way: TypeAlias = Callable[..., Answer]
LEASES = "coordination.k8s.io"


def grant(client: Client, namespace: str, name: str, *verbs: str, names: tuple[str, ...] = ()) -> None:
    """Grant a user these verbs on leases, ConfigMaps and the status of pods."""
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace.rpartition('/')[2]}"
    rule = {"apiGroups": ["", LEASES], "resources": ["configmaps", "leases", "pods/status"], "verbs": list(verbs)}
    role = {"metadata": {"name": name}, "rules": [{**rule, **({"resourceNames": list(names)} if names else {})}]}
    assert 201 == client.post(f"{rbac}/roles", role).status
    to = {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}}
    subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name}
    assert 201 == client.post(f"{rbac}/rolebindings", {"metadata": {"name": name}, **to, "subjects": [subject]}).status


def put(client: Client, namespace: str, user: str, query: str = "", name: str = "a") -> Answer:
    """Replace a lease as the given user."""
    path = namespace.replace("/api/v1", f"/apis/{LEASES}/v1")
    body = {"metadata": {"name": name}, "spec": {"leaseDurationSeconds": 7}}
    return client.send("PUT", f"{path}/leases/{name}{query}", body, Impersonate_User=user)


def apply(client: Client, namespace: str, user: str, query: str = "", name: str = "a") -> Answer:
    """Apply a ConfigMap as the given user."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}}
    path = f"{namespace}/configmaps/{name}?fieldManager=tests{query.replace('?', '&')}"
    return client.send("PATCH", path, body, APPLY, Impersonate_User=user)


@pytest.mark.parametrize("query", ["", "?dryRun=All"])
@pytest.mark.parametrize("way", [put, apply])
def test_a_user_without_create_can_not_create_by_update(client: Client, namespace: str, way: Way, query: str) -> None:
    """Refused with 403, dry run or not, and nothing is stored; the same user may change what is there."""
    grant(client, namespace, "changer", "update", "patch", "get")
    refused = way(client, namespace, "changer", query)
    what = "leases.coordination.k8s.io" if way is put else "configmaps"
    assert (403, f'{what} "a" is forbidden: ') == (refused.status, refused.message)
    grant(client, namespace, "both", "get", "create", "update", "patch")
    assert 201 == way(client, namespace, "both", query).status
    if query:
        assert 403 == way(client, namespace, "changer").status
    elif way is apply:
        assert 200 == way(client, namespace, "changer").status


@pytest.mark.parametrize("way", [put, apply])
def test_a_user_with_create_only_can_not_change_objects(client: Client, namespace: str, way: Way) -> None:
    """The verb of the request itself is authorized first, with its own error text."""
    grant(client, namespace, "maker", "create")
    refused = way(client, namespace, "maker")
    assert 403 == refused.status
    assert f'User "maker" cannot {"update" if way is put else "patch"} resource' in refused.message


@pytest.mark.parametrize("way", [put, apply])
def test_a_permission_to_create_may_name_the_object(client: Client, namespace: str, way: Way) -> None:
    """The name is in the path, so that a role can hold it."""
    grant(client, namespace, "namer", "create", "update", "patch", names=("a",))
    assert 201 == way(client, namespace, "namer").status
    assert 403 == way(client, namespace, "namer", name="b").status


def test_a_subresource_creates_nothing(client: Client, namespace: str) -> None:
    """With or without the verb `create` there is no status of a pod that is not there."""
    grant(client, namespace, "status", "create", "update", "patch")
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "status": {"message": "x"}}
    path = f"{namespace}/pods/a/status"
    assert 404 == client.send("PUT", path, body, Impersonate_User="status").status
    assert 404 == client.send("PATCH", f"{path}?fieldManager=tests", body, APPLY, Impersonate_User="status").status


def test_a_merge_patch_creates_nothing(client: Client, namespace: str) -> None:
    """A merge patch of a missing object is not found, even for a user with the right to create it."""
    grant(client, namespace, "merger", "create", "update", "patch")
    answer = client.send(
        "PATCH", f"{namespace}/configmaps/a", {"data": {}}, "application/merge-patch+json", Impersonate_User="merger"
    )
    assert 404 == answer.status
