"""Generate rules with several objects: lists of copies, and foreach."""

from __future__ import annotations

from pyverno.kube.json import JSONObject
from tests.support.background import World, in_cluster
from tests.unit.controllers.background.generating.test_rules import (
    CONFIG_MAPS,
    MADE,
    NAMESPACES,
    POLICIES,
    SECRETS,
    has_data,
    policy,
    secret,
)

COPIES: JSONObject = {
    "namespace": "{{request.object.metadata.name}}",
    "synchronize": True,
    "cloneList": {
        "namespace": "default",
        "kinds": ["v1/Secret", "v1/ConfigMap"],
        "selector": {"matchLabels": {"shared": "yes"}},
    },
}


def test_a_list_of_copies_follows_its_sources() -> None:
    """A new source is copied as well; a deleted source deletes its own copies and no others."""

    async def act(world: World) -> None:
        await world.client.create(SECRETS, secret("one", shared="yes"), "default")
        await world.client.create(SECRETS, secret("private"), "default")
        await world.apply(POLICIES, policy(COPIES))
        await world.namespace("team", team="a")
        await world.appears(SECRETS, "one", "team")
        await world.rest()
        await world.client.create(SECRETS, secret("two", shared="yes"), "default")
        await world.appears(SECRETS, "two", "team")
        await world.rest()
        await world.client.patch(SECRETS, "two", {"data": {"key": "Yg=="}}, "default")
        await has_data(world, SECRETS, "two", {"key": "Yg=="})
        await world.client.delete(SECRETS, "one", "default")
        await world.vanishes(SECRETS, "one", "team")
        assert await world.get(SECRETS, "two", "team") is not None
        assert await world.get(SECRETS, "private", "team") is None
        await world.client.delete(POLICIES, "copy")
        await world.vanishes(SECRETS, "two", "team")

    in_cluster(act)


def test_copies_outlive_the_policy_where_its_spec_sets_it() -> None:
    """With `orphanDownstreamOnPolicyDelete` all its objects stay; those of other rules are deleted."""

    async def act(world: World) -> None:
        await world.client.create(SECRETS, secret("one", shared="yes"), "default")
        orphans = {**COPIES, "orphanDownstreamOnPolicyDelete": True}
        await world.apply(
            POLICIES, policy(orphans, {**MADE, "orphanDownstreamOnPolicyDelete": True}, MADE | {"name": "x"})
        )
        await world.namespace("team", team="a")
        for gvr, name in ((SECRETS, "one"), (CONFIG_MAPS, "zones"), (CONFIG_MAPS, "x")):
            await world.appears(gvr, name, "team")
        await world.client.delete(POLICIES, "copy")
        await world.vanishes(CONFIG_MAPS, "x", "team")
        assert await world.get(SECRETS, "one", "team") is not None
        assert await world.get(CONFIG_MAPS, "zones", "team") is not None

    in_cluster(act)


def test_elements_that_fail_do_not_stop_the_others() -> None:
    """An element that names a missing namespace gets its object once the namespace exists."""
    each = {
        "list": "request.object.metadata.annotations.targets | split(@, ',')",
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "from-{{request.object.metadata.name}}",
        "namespace": "{{element}}",
        "data": {"data": {"number": "{{ to_string(elementIndex) }}"}},
    }

    async def act(world: World) -> None:
        await world.apply(POLICIES, policy({"synchronize": True, "foreach": [each]}))
        await world.namespace("first")
        metadata = {"name": "team", "labels": {"team": "a"}, "annotations": {"targets": "later,first"}}
        await world.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        await has_data(world, CONFIG_MAPS, "from-team", {"number": "1"}, "first")
        await world.namespace("later")
        await has_data(world, CONFIG_MAPS, "from-team", {"number": "0"}, "later")

    in_cluster(act)
