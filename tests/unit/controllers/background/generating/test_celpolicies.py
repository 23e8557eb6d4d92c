"""GeneratingPolicies in a cluster: generated objects follow trigger, source and policy."""

from __future__ import annotations

from typing import Any

from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from tests.support.background import World, in_cluster

POLICIES = GVR("policies.kyverno.io", "v1", "generatingpolicies")
CONFIG_MAPS = GVR("", "v1", "configmaps")
NAMESPACES = GVR("", "v1", "namespaces")
REPORTS = GVR("reports.kyverno.io", "v1", "clusterephemeralreports")


def policy(expression: str, *, condition: str = "true", operations: tuple[str, ...] = ("CREATE",), **how: Any) -> Any:
    """Return a policy that matches labelled namespaces."""
    resource = {"apiGroups": [""], "apiVersions": ["v1"], "operations": list(operations), "resources": ["namespaces"]}
    selector = {"matchExpressions": [{"key": "zones", "operator": "Exists"}]}
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "GeneratingPolicy",
        "metadata": {"name": "zones"},
        "spec": {
            "matchConstraints": {"resourceRules": [resource], "objectSelector": selector},
            "matchConditions": [{"name": "only", "expression": condition}],
            "generate": [{"expression": expression}],
            "evaluation": {"synchronize": {"enabled": True}, **how},
        },
    }


def made(name: str = "'zone'", value: str = "object.metadata.labels.zones") -> str:
    """Return an expression that generates a ConfigMap in the namespace."""
    metadata = f"dyn({{'name': {name}, 'namespace': object.metadata.name}})"
    head = f"'apiVersion': dyn('v1'), 'kind': dyn('ConfigMap'), 'metadata': {metadata}"
    body = f"{{{head}, 'data': dyn({{'zone': {value}}})}}"
    return f"generator.Apply(object.metadata.name, [{body}])"


def test_objects_follow_the_trigger_and_end_with_it() -> None:
    """A changed label changes the data or the name; removing the label ends the generation."""

    async def act(world: World) -> None:
        await world.apply(POLICIES, policy(made("object.metadata.labels.zones")))
        await world.namespace("team", zones="a")
        first = await world.appears(CONFIG_MAPS, "a", "team")
        labels = first["metadata"]["labels"]
        assert ("zones", "team") == tuple(
            labels[f"generate.kyverno.io/{key}"] for key in ("policy-name", "trigger-name")
        )
        await world.client.patch(NAMESPACES, "team", {"metadata": {"labels": {"zones": "b"}}})
        await world.appears(CONFIG_MAPS, "b", "team")
        await world.vanishes(CONFIG_MAPS, "a", "team")
        await world.client.patch(NAMESPACES, "team", {"metadata": {"labels": {"zones": None}}})
        await world.vanishes(CONFIG_MAPS, "b", "team")

    in_cluster(act)


def test_an_edit_is_undone_and_the_end_of_the_policy_is_that_of_its_objects() -> None:
    """An existing object that no policy generated is left alone."""

    async def act(world: World) -> None:
        own = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "zone"}, "data": {"mine": "yes"}}
        await world.namespace("owned")
        await world.client.create(CONFIG_MAPS, own, "owned")
        await world.apply(POLICIES, policy(made(), operations=("CREATE", "UPDATE")))
        await world.namespace("team", zones="a")
        await world.appears(CONFIG_MAPS, "zone", "team")
        await world.client.patch(NAMESPACES, "owned", {"metadata": {"labels": {"zones": "a"}}})
        await world.rest()
        await world.client.patch(CONFIG_MAPS, "zone", {"data": {"zone": "other"}}, "team")
        await world.until(lambda: holds(world, {"zone": "a"}))
        await world.client.delete(POLICIES, "zones")
        await world.vanishes(CONFIG_MAPS, "zone", "team")
        kept = await world.get(CONFIG_MAPS, "zone", "owned")
        assert {"mine": "yes"} == (kept or {}).get("data")

    async def holds(world: World, data: JSONObject) -> bool:
        found = await world.get(CONFIG_MAPS, "zone", "team")
        return found is not None and found["data"] == data

    in_cluster(act)


def test_what_is_generated_is_reported_for_the_trigger() -> None:
    """The result names the generated object."""

    async def act(world: World) -> None:
        await world.apply(POLICIES, policy(made()))
        await world.namespace("team", zones="a")

        async def reports() -> list[JSONObject]:
            found: list[JSONObject] = (await world.client.list(REPORTS))["items"]
            return found

        [report] = await world.until(reports)
        [result] = report["spec"]["results"]
        assert ("zones", "pass", "/v1, Kind=ConfigMap Name=zone Namespace=team") == (
            result["policy"],
            result["result"],
            result["properties"]["generated-resources"],
        )

    in_cluster(act)
