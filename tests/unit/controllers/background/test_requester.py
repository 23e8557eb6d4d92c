"""Policies that act with the permissions of their requesters."""

from __future__ import annotations

from pyverno.cluster.client import Client
from pyverno.controllers.background.requester import PERMISSIONS
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.policy.updaterequest import UPDATE_REQUESTS
from pyverno.value import replace
from tests.support.background import NAMESPACES, World, in_cluster
from tests.unit.controllers.background.generating.test_rules import CONFIG_MAPS, MADE, OF_NAMESPACES, POLICIES, policy

RBAC = "rbac.authorization.k8s.io"
ROLES = GVR(RBAC, "v1", "clusterroles")
BINDINGS = GVR(RBAC, "v1", "clusterrolebindings")


def _restricted(body: JSONObject, value: str = "requester") -> JSONObject:
    return {**body, "metadata": {**body["metadata"], "annotations": {PERMISSIONS: value}}}


def _changing() -> JSONObject:
    """Return a policy that changes an existing ConfigMap for each new namespace of the team."""
    target = {"apiVersion": "v1", "kind": "ConfigMap", "name": "teams", "namespace": "default"}
    patch = {"data": {"last": "{{request.object.metadata.name}}"}}
    rule = {"name": "note", "match": OF_NAMESPACES, "mutate": {"targets": [target], "patchStrategicMerge": patch}}
    metadata = {"name": "note", "annotations": {PERMISSIONS: "requester"}}
    return {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": metadata, "spec": {"rules": [rule]}}


async def _allow(world: World, *verbs: str, resource: str) -> None:
    """Give the user dev a permission."""
    name = f"dev-{resource}-{'-'.join(verbs)}"
    rules = [{"apiGroups": [""], "resources": [resource], "verbs": [*verbs]}]
    await world.client.create(ROLES, {"metadata": {"name": name}, "rules": rules})
    ref = {"apiGroup": RBAC, "kind": "ClusterRole", "name": name}
    subjects = [{"apiGroup": RBAC, "kind": "User", "name": "dev"}]
    await world.client.create(BINDINGS, {"metadata": {"name": name}, "roleRef": ref, "subjects": subjects})


async def _messages(world: World, *parts: str) -> None:
    """Wait until the status of some UpdateRequest contains each of these texts."""

    async def are_there() -> bool:
        listed = (await world.client.list(UPDATE_REQUESTS, "kyverno"))["items"]
        texts = [(each.get("status") or {}).get("message") or "" for each in listed]
        return all(any(part in text for text in texts) for part in parts)

    await world.until(are_there)


def test_what_the_requester_may_not_write_is_not_written() -> None:
    """The request names the missing permission and completes once it is granted; other policies are not restricted."""

    async def act(world: World) -> None:
        teams = {"metadata": {"name": "teams"}, "data": {"last": ""}}
        await world.client.create(CONFIG_MAPS, teams, "default")
        free = policy({**MADE, "name": "free"}, name="free")
        for body in (_restricted(policy(MADE)), _changing(), free):
            await world.apply(POLICIES, body)
        await _allow(world, "create", resource="namespaces")
        access = replace(world.client.access, impersonate={"as": "dev"})
        async with Client(access, qps=0) as dev:
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": {"team": "a"}}}
            await dev.create(NAMESPACES, body)
        await world.appears(CONFIG_MAPS, "free", "team")
        await _messages(
            world,
            "user `dev` cannot create configmaps in the namespace `team`",
            "user `dev` cannot update configmaps in the namespace `default`",
        )
        assert await world.get(CONFIG_MAPS, "zones", "team") is None
        found = await world.get(CONFIG_MAPS, "teams", "default")
        assert found is not None
        assert "" == found["data"]["last"]
        await _allow(world, "create", "update", resource="configmaps")
        await world.appears(CONFIG_MAPS, "zones", "team")
        await world.rest()
        found = await world.get(CONFIG_MAPS, "teams", "default")
        assert found is not None
        assert "team" == found["data"]["last"]

    in_cluster(act)


def test_another_value_of_the_annotation_writes_nothing() -> None:
    """A misspelt restriction must not lift the restriction."""

    async def act(world: World) -> None:
        await world.apply(POLICIES, _restricted(policy(MADE), "requestor"))
        await world.namespace("team", team="a")
        await _messages(world, "`pyverno.io/permissions` of the policy has value `requestor`")
        assert await world.get(CONFIG_MAPS, "zones", "team") is None

    in_cluster(act)
