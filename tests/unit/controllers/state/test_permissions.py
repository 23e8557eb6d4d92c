"""Permissions of the controllers' accounts, checked against a real API server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from kubesandbox import Sandbox
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.compiler.compile import compile_document
from pyverno.controllers.state.permissions import ReadPermissions, TargetPermissions, is_scanned, resources_of
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.kinds import BUILTIN_KINDS
from pyverno.kube.yaml.documents import Document
from pyverno.policy.cel.constraints import MatchConstraints, ResourceRule
from pyverno.policy.cel.policies import CelPolicy
from pyverno.policy.clusterpolicy import ClusterPolicy

T = TypeVar("T")
USER = "system:serviceaccount:kyverno:worker"
RBAC = "rbac.authorization.k8s.io"


def in_cluster(work: Callable[[Client], Awaitable[T]]) -> T:
    """Run work in a cluster whose account may only read and update Pods."""

    async def run() -> T:
        async with (
            Sandbox(controllers=False) as sandbox,
            Client(load_kubeconfig(sandbox.kubeconfig, environment={})) as client,
        ):
            await allow(client, "pods", "get", "list", "watch", "update")
            return await work(client)

    return asyncio.run(run())


async def allow(client: Client, resource: str, *verbs: str, names: tuple[str, ...] = ()) -> None:
    """Grant the account verbs on one resource, or on its objects with these names."""
    rules = [{"apiGroups": [""], "resources": [resource], "verbs": list(verbs), "resourceNames": list(names)}]
    metadata = {"name": resource.replace("/", "-")}
    await client.create(GVR(RBAC, "v1", "clusterroles"), {"metadata": metadata, "rules": rules})
    await client.create(
        GVR(RBAC, "v1", "clusterrolebindings"),
        {
            "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": metadata["name"]},
            "subjects": [{"apiGroup": RBAC, "kind": "User", "name": USER}],
        },
    )


def scanned(*resources: str) -> CelPolicy:
    """Return a ValidatingPolicy for core resources."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": list(resources)}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "true"}]}
    found = written({"apiVersion": "policies.kyverno.io/v1", "kind": "ValidatingPolicy", "spec": spec})
    assert is_scanned(found)
    return found


def mutating(*targets: JSONObject, **metadata: str) -> ClusterPolicy:
    """Return a policy that changes existing objects."""
    rule = {
        "name": "change",
        "match": {"any": [{"resources": {"kinds": ["ConfigMap"]}}]},
        "mutate": {"targets": list(targets), "patchStrategicMerge": {"metadata": {"labels": {"a": "b"}}}},
    }
    kind = "Policy" if metadata else "ClusterPolicy"
    found = written({"apiVersion": "kyverno.io/v1", "kind": kind, "spec": {"rules": [rule]}}, **metadata)
    assert isinstance(found, ClusterPolicy)
    return found


def written(body: JSONObject, **metadata: JSON) -> Any:
    """Return a decoded policy."""
    found = compile_document(Document({**body, "metadata": {"name": "check", **metadata}}))
    assert () == found.errors
    return found.written


def test_every_verb_that_reports_need_is_checked() -> None:
    """Each message starts with verb, group and version, and ends with the reason of the server."""

    async def ask(client: Client) -> tuple[str, ...]:
        return await ReadPermissions(client, USER).missing(scanned("pods", "secrets"))

    texts = ("get /v1, Resource=secrets: ", "list /v1, Resource=secrets: ", "watch /v1, Resource=secrets: ")
    assert texts == in_cluster(ask)


def test_scans_need_no_permission_for_subresources() -> None:
    """The scan reads parent objects only; `*/*` includes ordinary resources."""

    async def ask(client: Client) -> list[int]:
        permissions = ReadPermissions(client, USER)
        policies = (scanned("pods", "pods/ephemeralcontainers"), scanned("*/*"))
        return [len(await permissions.missing(each)) for each in policies]

    assert [0, 3] == in_cluster(ask)


def test_missing_permissions_are_checked_again_and_granted_ones_are_not() -> None:
    """A permission that is granted later takes effect in the next round; granted ones are cached."""

    async def ask(client: Client) -> list[tuple[str, ...]]:
        permissions, policy = ReadPermissions(client, USER), scanned("secrets")
        found = [await permissions.missing(policy)]
        await allow(client, "secrets", "get", "list", "watch")
        found.append(await permissions.missing(policy))
        await client.delete(GVR(RBAC, "v1", "clusterrolebindings"), "secrets")
        return [*found, await permissions.missing(policy), await permissions.missing(scanned("secrets"))]

    assert [3, 0, 0, 3] == [len(texts) for texts in in_cluster(ask)]


def test_resources_are_checked_once() -> None:
    """Several rules on the same resource share one review."""
    rules = (
        ResourceRule(("apps",), ("v1",), ("CREATE",), ("deployments", "deployments/scale")),
        ResourceRule(("", "apps"), ("v1",), ("UPDATE",), ("deployments",)),
    )
    expected = [("apps", "deployments"), ("apps", "deployments/scale"), ("", "deployments")]
    assert expected == [(each.group, each.resource) for each in resources_of(MatchConstraints(resource_rules=rules))]
    assert [] == list(resources_of(None))


def refusals(policy: ClusterPolicy, account: str = USER) -> tuple[str, ...]:
    """Return the permission errors of a policy in the cluster."""
    return in_cluster(lambda client: TargetPermissions(client, account, lambda: BUILTIN_KINDS).refusals(policy))


def test_a_rule_whose_targets_can_not_be_changed_is_refused() -> None:
    """The error names account, verbs, resource and namespace; permitted targets are left out."""
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "team"}
    [text] = refusals(mutating({"apiVersion": "v1", "kind": "Pod"}, claim))
    assert (
        "path: spec.rules[0].mutate.targets.: auth check fails, additional privileges are required for the service "
        f"account '{USER}': {USER} requires permissions get,update for resource v1/PersistentVolumeClaim in namespace "
        "team"
    ) == text


def test_a_role_may_name_the_targets_it_is_for() -> None:
    """A target without a name, or with a wildcard, needs a role without names."""
    secret = {"apiVersion": "v1", "kind": "Secret", "namespace": "team"}
    targets = [{**secret, "name": "token"}, {**secret, "name": "other"}, {**secret, "name": "t*"}, secret]

    async def work(client: Client) -> list[bool]:
        await allow(client, "secrets", "get", "update", names=("token",))
        permissions = TargetPermissions(client, USER, lambda: BUILTIN_KINDS)
        return [bool(await permissions.refusals(mutating(each))) for each in targets]

    assert [False, True, True, True] == in_cluster(work)


def test_the_permission_for_a_subresource_is_one_of_its_own() -> None:
    """A role for nodes does not cover their status."""
    node = {"apiVersion": "v1", "kind": "Node/status", "name": "worker"}

    async def work(client: Client) -> list[bool]:
        permissions = TargetPermissions(client, USER, lambda: BUILTIN_KINDS)
        found = []
        for resource in ("nodes", "nodes/status"):
            await allow(client, resource, "get", "update")
            found.append(bool(await permissions.refusals(mutating(node))))
        return found

    assert [True, False] == in_cluster(work)


def test_a_namespace_that_is_not_known_yet_is_every_namespace() -> None:
    """A namespace with a variable may resolve to any namespace."""
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "{{ request.object.metadata.name }}"}
    [text] = refusals(mutating(claim))
    assert text.endswith("for resource v1/PersistentVolumeClaim")


def test_an_unnamed_account_is_not_checked() -> None:
    """Without an account no target is refused."""
    assert () == refusals(mutating({"apiVersion": "v1", "kind": "PersistentVolumeClaim"}), account="")


def generating(**generate: Any) -> ClusterPolicy:
    """Return a policy that generates."""
    where = {"namespace": "{{ request.object.metadata.name }}"}
    rule = {
        "name": "make",
        "match": {"any": [{"resources": {"kinds": ["Namespace"]}}]},
        "generate": {**where, **generate},
    }
    found = written({"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "spec": {"rules": [rule]}})
    assert isinstance(found, ClusterPolicy)
    return found


def test_a_rule_that_could_not_generate_is_refused() -> None:
    """With `synchronize` it also needs update and delete; each kind of a clone list is checked."""
    made = {"apiVersion": "v1", "kind": "ServiceAccount", "name": "bot", "data": {}}
    once, kept = generating(**made), generating(**made, synchronize=True)
    copies = generating(cloneList={"namespace": "default", "kinds": ["v1/Secret", "v1/Pod"]})
    start = f"path: spec.rules[0].generate..: {USER} requires permissions"
    assert (f"{start} get,create for resource v1/ServiceAccount",) == refusals(once)
    assert (f"{start} get,create,update,delete for resource v1/ServiceAccount",) == refusals(kept)
    assert (
        f"{start} get,create for resource v1/Secret",
        f"{start} create for resource v1/Pod",
    ) == refusals(copies)


def ruled(*rules: tuple[JSONObject, list[str]]) -> ClusterPolicy:
    """Return a policy of rules, each with an action and its kinds."""
    written_rules = [
        {"name": f"rule-{number}", "match": {"any": [{"resources": {"kinds": kinds}}]}, **action}
        for number, (action, kinds) in enumerate(rules)
    ]
    body = {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "spec": {"rules": written_rules}}
    found = written(body, annotations={"pod-policies.kyverno.io/autogen-controllers": "none"})
    assert isinstance(found, ClusterPolicy)
    return found


CHECK: JSONObject = {"validate": {"message": "no", "pattern": {"metadata": {"labels": {"a": "?*"}}}}}
CHANGE: JSONObject = {"mutate": {"patchStrategicMerge": {"metadata": {"labels": {"a": "b"}}}}}
LACKS = f"{USER} requires permissions get,list,watch for resource "


@pytest.mark.parametrize(
    ("policy", "kinds"),
    [
        (ruled((CHECK, ["Pod"])), []),
        (ruled((CHECK, ["Pod", "Secret", "v1/ConfigMap"])), ["Secret"]),
        (ruled((CHANGE, ["Secret", "v1/ConfigMap"])), ["Secret", "v1/ConfigMap"]),
        (ruled((CHANGE, ["Secret", "Config*", "v1/ConfigMap"])), ["Secret"]),
    ],
)
def test_kinds_that_reports_may_not_read_are_warnings(policy: ClusterPolicy, kinds: list[str]) -> None:
    """Validate rules count their first kind, other rules all kinds up to a wildcard."""

    async def ask(client: Client) -> tuple[str, ...]:
        return await ReadPermissions(client, USER).unreadable(policy, BUILTIN_KINDS)

    assert tuple(LACKS + kind for kind in kinds) == in_cluster(ask)
