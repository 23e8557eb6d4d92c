"""Generate rules in a cluster: generated objects follow the trigger, the source and the rule."""

from __future__ import annotations

from typing import Any

import pytest

from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.policy.updaterequest import UPDATE_REQUESTS
from tests.support.background import World, in_cluster

POLICIES = GVR("kyverno.io", "v1", "clusterpolicies")
SECRETS = GVR("", "v1", "secrets")
CONFIG_MAPS = GVR("", "v1", "configmaps")
NAMESPACES = GVR("", "v1", "namespaces")
OF_NAMESPACES: JSONObject = {
    "any": [{"resources": {"kinds": ["Namespace"], "selector": {"matchLabels": {"team": "a"}}}}]
}
COPY: JSONObject = {
    "apiVersion": "v1",
    "kind": "Secret",
    "name": "pull",
    "namespace": "{{request.object.metadata.name}}",
    "synchronize": True,
    "clone": {"name": "pull", "namespace": "default"},
}
MADE: JSONObject = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "name": "zones",
    "namespace": "{{request.object.metadata.name}}",
    "synchronize": True,
    "data": {"data": {"zone": "x"}},
}


def policy(*generate: JSONObject, name: str = "copy", **spec: Any) -> JSONObject:
    """Return a policy for namespaces of team a, with one rule for each generation."""
    rules = [
        {"name": f"rule-{number}", "match": OF_NAMESPACES, "generate": each} for number, each in enumerate(generate)
    ]
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": name},
        "spec": {"rules": rules, **spec},
    }


def secret(name: str = "pull", namespace: str = "default", value: str = "YQ==", **labels: str) -> JSONObject:
    """Return a Secret."""
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"key": value}}


async def has_data(world: World, gvr: GVR, name: str, data: JSONObject, namespace: str = "team") -> None:
    """Wait until an object holds this data."""

    async def holds() -> bool:
        found = await world.get(gvr, name, namespace)
        return found is not None and found.get("data") == data

    await world.until(holds)


def test_what_is_generated_is_an_event_where_successes_are() -> None:
    """Object and policy each get one event; an update of the object has none (G6.19, E5.6)."""

    async def act(world: World) -> None:
        events = GVR("events.k8s.io", "v1", "events")
        await world.client.patch(CONFIG_MAPS, "kyverno", {"data": {"generateSuccessEvents": "true"}}, "kyverno")
        await world.apply(POLICIES, policy(MADE))
        await world.namespace("team", team="a")
        await world.appears(CONFIG_MAPS, "zones", "team")
        await world.client.patch(CONFIG_MAPS, "zones", {"data": {"zone": "mine"}}, "team")
        await has_data(world, CONFIG_MAPS, "zones", {"zone": "x"})
        await world.rest()

        async def found() -> list[tuple[str, str, str]]:
            listed = (await world.client.list(events, query={"fieldSelector": "reason=PolicyApplied"}))["items"]
            notes = [(each["regarding"]["kind"], each["note"], each["reportingController"]) for each in listed]
            return sorted(each for each in notes if each[2] == "kyverno-generate")

        async def are_there() -> bool:
            return len(await found()) >= 2

        await world.until(are_there)
        created = "Created ConfigMap zones as a result of applying policy copy/rule-0"
        assert [
            ("ClusterPolicy", "resource generated", "kyverno-generate"),
            ("ConfigMap", created, "kyverno-generate"),
        ] == await found()

    in_cluster(act)


def test_a_copy_follows_its_source_and_is_restored() -> None:
    """The copy follows edits, foreign changes to it are undone, and deleting the source deletes it."""

    async def act(world: World) -> None:
        await world.client.create(SECRETS, secret(), "default")
        await world.apply(POLICIES, policy(COPY))
        await world.namespace("team", team="a")
        await world.namespace("other")
        copy = await world.appears(SECRETS, "pull", "team")
        labels = copy["metadata"]["labels"]
        assert ("kyverno", "copy", "rule-0", "Namespace") == (
            labels["app.kubernetes.io/managed-by"],
            *(labels[f"generate.kyverno.io/{key}"] for key in ("policy-name", "rule-name", "trigger-kind")),
        )
        await world.rest()
        await world.client.patch(SECRETS, "pull", {"data": {"key": "Yg=="}}, "default")
        await has_data(world, SECRETS, "pull", {"key": "Yg=="})
        await world.client.patch(SECRETS, "pull", {"data": {"key": "Yw=="}}, "team")
        await has_data(world, SECRETS, "pull", {"key": "Yg=="})
        await world.client.delete(SECRETS, "pull", "team")
        await has_data(world, SECRETS, "pull", {"key": "Yg=="})
        await world.rest()
        await world.client.delete(SECRETS, "pull", "default")
        await world.vanishes(SECRETS, "pull", "team")
        await world.client.create(SECRETS, secret(value="ZA=="), "default")
        await has_data(world, SECRETS, "pull", {"key": "ZA=="})
        assert await world.get(SECRETS, "pull", "other") is None

    in_cluster(act)


def test_what_a_rule_makes_follows_the_rule_and_ends_with_it() -> None:
    """New data is written; deleting the rule deletes the object, but a copy of one named object stays."""

    async def act(world: World) -> None:
        await world.client.create(SECRETS, secret(), "default")
        await world.apply(POLICIES, policy(COPY, MADE))
        await world.namespace("team", team="a")
        await has_data(world, CONFIG_MAPS, "zones", {"zone": "x"})
        await world.appears(SECRETS, "pull", "team")
        await world.apply(POLICIES, policy(COPY, {**MADE, "data": {"data": {"zone": "y"}}}))
        await has_data(world, CONFIG_MAPS, "zones", {"zone": "y"})
        await world.client.delete(POLICIES, "copy")
        await world.vanishes(CONFIG_MAPS, "zones", "team")
        assert await world.get(SECRETS, "pull", "team") is not None

    in_cluster(act)


def test_what_is_generated_ends_with_its_trigger() -> None:
    """A namespace that no longer matches keeps the objects without `synchronize`."""

    async def act(world: World) -> None:
        once = {**MADE, "name": "once", "synchronize": False}
        await world.apply(POLICIES, policy(MADE, once))
        await world.namespace("team", team="a")
        for name in ("zones", "once"):
            await world.appears(CONFIG_MAPS, name, "team")
        await world.client.patch(NAMESPACES, "team", {"metadata": {"labels": {"team": "b"}}})
        await world.vanishes(CONFIG_MAPS, "zones", "team")
        await world.rest()
        assert await world.get(CONFIG_MAPS, "once", "team") is not None

    in_cluster(act)


def test_an_object_that_is_being_deleted_triggers_as_before() -> None:
    """A finalizer keeps an object that is in use, and who changes it is held to the rules (CVE-2023-34091)."""
    services = GVR("", "v1", "services")
    rule: JSONObject = {
        "name": "rule-0",
        "match": {"any": [{"resources": {"kinds": ["Service"], "selector": {"matchLabels": {"exposed": "yes"}}}}]},
        "generate": {
            **MADE,
            "name": "{{request.object.metadata.name}}",
            "namespace": "{{request.object.metadata.namespace}}",
        },
    }

    async def act(world: World) -> None:
        await world.apply(POLICIES, {**policy(), "spec": {"rules": [rule]}})
        await world.namespace("team")
        for name in ("held", "deleted"):
            metadata = {"name": name, "namespace": "team", "finalizers": ["example.com/hold"]}
            body = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 80}]}}
            await world.client.create(services, body, "team")
        await world.client.delete(services, "held", "team")
        for name in ("held", "deleted"):
            await world.client.patch(services, name, {"metadata": {"labels": {"exposed": "yes"}}}, "team")
            await world.appears(CONFIG_MAPS, name, "team")
        await world.client.delete(services, "deleted", "team")
        await world.vanishes(CONFIG_MAPS, "deleted", "team")

    in_cluster(act)


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE", "DELETE"])
def test_a_rejected_request_generates_nothing(operation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The UpdateRequest of a request that was never stored is no trigger, nor is another object (0b8c53a4)."""
    monkeypatch.setattr("pyverno.controllers.background.generating.handlers._WAIT_SECONDS", 2.0)
    labels = {"matchLabels": {"x": "wanted"}} if operation == "UPDATE" else {"matchLabels": {"x": "stored"}}
    rule: JSONObject = {
        "name": "rule-0",
        "match": {"any": [{"resources": {"kinds": ["Secret"], "selector": labels, "operations": [operation]}}]},
        "generate": {**MADE, "namespace": "team", "synchronize": False},
    }

    def asked(operation: str, uid: str, **sides: JSONObject | None) -> JSONObject:
        request = {
            "uid": "1",
            "kind": {"group": "", "version": "v1", "kind": "Secret"},
            "resource": {"group": "", "version": "v1", "resource": "secrets"},
            "operation": operation,
            "namespace": "team",
            "name": "pull",
            "userInfo": {"username": "mallory"},
            **sides,
        }
        trigger = {"apiVersion": "v1", "kind": "Secret", "namespace": "team", "name": "pull", "uid": uid}
        return {
            "apiVersion": "kyverno.io/v2",
            "kind": "UpdateRequest",
            "metadata": {"generateName": "ur-", "namespace": "kyverno"},
            "spec": {
                "requestType": "generate",
                "policy": "copy",
                "ruleContext": [{"rule": "rule-0", "trigger": trigger}],
                "context": {
                    "userInfo": {"userInfo": {"username": "mallory"}},
                    "admissionRequestInfo": {"admissionRequest": request, "operation": operation},
                },
            },
        }

    async def act(world: World) -> None:
        await world.namespace("team")
        stored = await world.client.create(SECRETS, secret(namespace="team", x="stored"), "team")
        await world.apply(POLICIES, {**policy(), "spec": {"rules": [rule]}})
        uid = stored["metadata"]["uid"]
        wanted = {**stored, "metadata": {**stored["metadata"], "labels": {"x": "wanted"}}}
        request = {
            "CREATE": asked("CREATE", "other", object={**stored, "metadata": {**stored["metadata"], "uid": "other"}}),
            "UPDATE": asked("UPDATE", uid, object=wanted, oldObject=stored),
            "DELETE": asked("DELETE", uid, oldObject=stored),
        }[operation]
        await world.client.create(UPDATE_REQUESTS, request, "kyverno")
        await world.rest()
        assert await world.get(CONFIG_MAPS, "zones", "team") is None
        if operation == "CREATE":
            await world.client.create(SECRETS, secret("twin", "team", x="stored"), "team")
        elif operation == "UPDATE":
            await world.client.patch(SECRETS, "pull", {"metadata": {"labels": {"x": "wanted"}}}, "team")
        else:
            await world.client.delete(SECRETS, "pull", "team")
        await world.appears(CONFIG_MAPS, "zones", "team")

    in_cluster(act)


def test_existing_triggers_are_covered_when_the_policy_sets_it() -> None:
    """With `generateExisting` it covers older namespaces; applying the policy again writes nothing."""

    async def act(world: World) -> None:
        await world.namespace("team", team="a")
        await world.apply(POLICIES, policy({**MADE, "generateExisting": True}))
        made = await world.appears(CONFIG_MAPS, "zones", "team")
        await world.rest()
        await world.apply(POLICIES, policy({**MADE, "generateExisting": True}, background=True))
        await world.rest()
        now = await world.get(CONFIG_MAPS, "zones", "team")
        assert now is not None
        assert made["metadata"]["resourceVersion"] == now["metadata"]["resourceVersion"]

    in_cluster(act)


def test_a_policy_waits_for_the_kind_that_it_matches() -> None:
    """Objects for existing triggers are generated once the cluster serves the kind of the trigger."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    names = {"kind": "Tenant", "listKind": "TenantList", "plural": "tenants", "singular": "tenant"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    definition: JSONObject = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "tenants.example.com"},
        "spec": {"group": "example.com", "names": names, "scope": "Cluster", "versions": [version]},
    }
    rule = {
        "name": "tenant",
        "match": {"any": [{"resources": {"kinds": ["example.com/v1/Tenant"]}}]},
        "generate": {**MADE, "namespace": "default", "generateExisting": True},
    }
    body = policy()
    body["spec"]["rules"] = [rule]

    async def act(world: World) -> None:
        await world.client.create(POLICIES, body)
        await world.sandbox.settle()
        await world.client.create(GVR("apiextensions.k8s.io", "v1", "customresourcedefinitions"), definition)
        tenant = {"apiVersion": "example.com/v1", "kind": "Tenant", "metadata": {"name": "a"}}

        async def is_created() -> bool:
            try:
                await world.client.create(GVR("example.com", "v1", "tenants"), tenant)
            except StatusError:
                return False
            return True

        await world.until(is_created)
        await world.appears(CONFIG_MAPS, "zones", "default")

    in_cluster(act)


def test_an_object_without_the_labels_of_its_rule_is_no_longer_synchronized() -> None:
    """The rule removes the labels when it generates another object; a user removes them to end the synchronization."""

    async def act(world: World) -> None:
        await world.client.create(SECRETS, secret(), "default")
        await world.apply(POLICIES, policy(MADE, COPY))
        await world.namespace("team", team="a")
        await has_data(world, CONFIG_MAPS, "zones", {"zone": "x"})
        copy = await world.appears(SECRETS, "pull", "team")
        await world.apply(POLICIES, policy({**MADE, "name": "areas"}, COPY))

        async def is_detached() -> bool:
            found = await world.get(CONFIG_MAPS, "zones", "team")
            assert found is not None
            return "generate.kyverno.io/policy-name" not in found["metadata"]["labels"]

        await world.until(is_detached)
        await world.rest()
        detached = {"metadata": {"labels": dict.fromkeys(copy["metadata"]["labels"])}, "data": {"key": "Yg=="}}
        await world.client.patch(SECRETS, "pull", detached, "team")
        await world.client.patch(CONFIG_MAPS, "zones", {"data": {"zone": "mine"}}, "team")
        await world.client.patch(SECRETS, "pull", {"data": {"key": "Yw=="}}, "default")
        await world.rest()
        await has_data(world, SECRETS, "pull", {"key": "Yg=="})
        await has_data(world, CONFIG_MAPS, "zones", {"zone": "mine"})
        await world.client.delete(POLICIES, "copy")
        await world.rest()
        assert await world.get(CONFIG_MAPS, "zones", "team") is not None
        assert await world.get(SECRETS, "pull", "team") is not None

    in_cluster(act)
