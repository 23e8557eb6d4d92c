"""UpdateRequests that generate: the work that they contain, and what happens when it fails."""

from __future__ import annotations

import asyncio
from typing import Any

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.controllers.background.generating.handlers import works_of
from pyverno.controllers.background.work import read_request
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.policy.updaterequest import UPDATE_REQUESTS, Trigger
from pyverno.telemetry.observer import Observers
from pyverno.testing import PolicySandbox
from tests.support.background import World, in_cluster
from tests.unit.controllers.background.generating.test_restarts import background

POLICIES = GVR("kyverno.io", "v1", "clusterpolicies")
CONFIG_MAPS = GVR("", "v1", "configmaps")
TRIGGER = {"apiVersion": "v1", "kind": "Namespace", "name": "team", "uid": "7"}


def request(request_type: str = "generate", policy: str = "copy", *rules: JSONObject) -> Any:
    """Return a decoded request."""
    spec = {"requestType": request_type, "policy": policy, "ruleContext": list(rules), "context": {}}
    metadata = {"name": "ur-1", "namespace": "kyverno", "uid": "1"}
    return read_request({"apiVersion": "kyverno.io/v2", "kind": "UpdateRequest", "metadata": metadata, "spec": spec})


def test_rules_of_one_trigger_are_one_piece_of_work() -> None:
    """The rules of one trigger are evaluated together; another trigger is separate work."""
    other = {**TRIGGER, "name": "other", "uid": "8"}
    found = request(
        "generate",
        "copy",
        {"rule": "a", "trigger": TRIGGER},
        {"rule": "b", "trigger": TRIGGER, "deleteDownstream": True},
        {"rule": "a", "trigger": other},
    )
    works = list(works_of(found))
    assert [{"a": False, "b": True}, {"a": False}] == [work.rules for work in works]
    assert Trigger("v1", "Namespace", "", "team", "7") == works[0].trigger
    assert ("kyverno.io/ClusterPolicy", "", "copy") == works[0].policy


def test_a_policy_in_cel_has_one_rule_without_a_name() -> None:
    """Its labels name no rule; a request that only restores Kyverno's cache contains no work."""
    cel = {"rule": "team/copy", "trigger": TRIGGER}
    [work] = works_of(request("cel-generate", "team/copy", cel))
    assert (("policies.kyverno.io/NamespacedGeneratingPolicy", "team", "copy"), {"": False}) == (
        work.policy,
        work.rules,
    )
    assert [] == list(works_of(request("cel-generate", "copy", {**cel, "cacheRestore": True})))


def test_only_the_newest_failing_request_stays() -> None:
    """A trigger that changes often while its rule fails does not fill the cluster with UpdateRequests."""
    rule = {
        "name": "broken",
        "match": {"any": [{"resources": {"kinds": ["ConfigMap"], "names": ["trigger"]}}]},
        "generate": {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": "made",
            "namespace": "{{ request.object.data.nowhere }}",
            "data": {"data": {"a": "1"}},
        },
    }
    policy = {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "broken"}}

    async def act(world: World) -> None:
        await world.apply(POLICIES, {**policy, "spec": {"rules": [rule]}})
        trigger = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "trigger"}, "data": {"a": "0"}}
        await world.client.create(CONFIG_MAPS, trigger, "default")
        for number in range(5):
            await world.client.patch(CONFIG_MAPS, "trigger", {"data": {"a": str(number + 1)}}, "default")

        async def left() -> list[JSONObject]:
            found: list[JSONObject] = (await world.client.list(UPDATE_REQUESTS, "kyverno"))["items"]
            return found

        async def has_settled() -> bool:
            waiting = await left()
            return len(waiting) == 1 and "nowhere" in (waiting[0].get("status") or {}).get("message", "")

        await world.until(has_settled)

    in_cluster(act)


def test_a_request_of_kyverno_deletes_what_a_deleted_policy_left() -> None:
    """The request lists objects by name; objects of another policy, or of none, stay."""

    def generated(name: str, policy: str) -> JSONObject:
        labels = {
            "app.kubernetes.io/managed-by": "kyverno",
            "generate.kyverno.io/policy-name": policy,
            "generate.kyverno.io/policy-namespace": "",
            "generate.kyverno.io/rule-name": "rule",
            "generate.kyverno.io/trigger-kind": "Namespace",
            "generate.kyverno.io/trigger-version": "v1",
            "generate.kyverno.io/trigger-uid": "7",
        }
        metadata = {"name": name, "labels": labels if policy else {}}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}

    names = {"left": "gone", "taken": "other", "own": ""}
    listed = [{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": name} for name in names]
    spec = {
        "requestType": "generate",
        "policy": "gone",
        "rule": "rule",
        "deleteDownstream": True,
        "resource": TRIGGER,
        "context": {},
    }

    async def act() -> None:
        async with (
            PolicySandbox(Sandbox(Settings(kubelet=False)), Observers()) as cluster,
            Client(load_kubeconfig(cluster.sandbox.kubeconfig), qps=0) as client,
        ):
            world = World(cluster, client)
            for name, policy in names.items():
                await client.create(CONFIG_MAPS, generated(name, policy), "default")
            body = {"apiVersion": "kyverno.io/v2", "kind": "UpdateRequest", "metadata": {"name": "ur-1"}, "spec": spec}
            await client.create(UPDATE_REQUESTS, body, "kyverno")
            status = {"status": {"state": "Pending", "generatedResources": listed}}
            await client.patch(UPDATE_REQUESTS, "ur-1", status, "kyverno", subresource="status")
            async with background(cluster):
                await world.vanishes(UPDATE_REQUESTS, "ur-1", "kyverno")
            left = [name for name in names if await world.get(CONFIG_MAPS, name, "default") is not None]
            assert ["taken", "own"] == left

    asyncio.run(act())


def request_of_kyverno(request_type: str, policy: str, trigger: JSONObject) -> JSONObject:
    """Return a request as Kyverno's admission controller writes it for a created Namespace."""
    review = {"uid": "1", "operation": "CREATE", "name": "team", "namespace": "team", "dryRun": False}
    version = {"group": "", "version": "v1"}
    review |= {key: {**version, "kind": "Namespace"} for key in ("kind", "requestKind")}
    review |= {key: {**version, "resource": "namespaces"} for key in ("resource", "requestResource")}
    user = {"username": "alice", "groups": ["system:masters", "system:authenticated"]}
    reference = {"apiVersion": "v1", "kind": "Namespace", "name": "team", "uid": trigger["metadata"]["uid"]}
    return {
        "apiVersion": "kyverno.io/v2",
        "kind": "UpdateRequest",
        "metadata": {"generateName": "ur-", "labels": {"generate.kyverno.io/policy-name": policy}},
        "spec": {
            **{"requestType": request_type, "policy": policy, "rule": "", "deleteDownstream": False, "resource": {}},
            "ruleContext": [{"rule": "make", "deleteDownstream": False, "trigger": reference}],
            "context": {
                "userInfo": {"clusterRoles": ["view"], "userInfo": user},
                "admissionRequestInfo": {
                    "admissionRequest": {**review, "object": trigger, "userInfo": user},
                    "operation": "CREATE",
                },
            },
        },
    }


def test_requests_that_kyverno_left_are_done() -> None:
    """Pending and failed requests of both policy families are completed and deleted, and their objects exist."""
    make: JSONObject = {"apiVersion": "v1", "kind": "ConfigMap", "name": "by-rule"}
    make |= {"namespace": "{{ request.object.metadata.name }}", "data": {"data": {"a": "1"}}}
    match = {"any": [{"resources": {"kinds": ["Namespace"]}}]}
    rule = {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "rules"}}
    rule |= {"spec": {"rules": [{"name": "make", "match": match, "generate": make}]}}
    rows = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["namespaces"]}
    made = "[{'apiVersion': dyn('v1'), 'kind': dyn('ConfigMap'), 'metadata': dyn({'name': 'by-cel'})}]"
    cel = {"apiVersion": "policies.kyverno.io/v1", "kind": "GeneratingPolicy", "metadata": {"name": "cel"}}
    generate = [{"expression": f"generator.Apply(object.metadata.name, {made})"}]
    cel |= {"spec": {"matchConstraints": {"resourceRules": [rows]}, "generate": generate}}
    states: list[JSONObject] = [{"state": "Pending"}, {"state": "Failed", "retryCount": 2, "message": "no"}]

    async def act() -> None:
        async with (
            PolicySandbox(Sandbox(Settings(kubelet=False)), Observers()) as cluster,
            Client(load_kubeconfig(cluster.sandbox.kubeconfig), qps=0) as client,
        ):
            world = World(cluster, client)
            trigger = await world.namespace("team")
            await world.apply(POLICIES, rule)
            await world.apply(GVR("policies.kyverno.io", "v1", "generatingpolicies"), cel)
            names = []
            pairs = (("generate", "rules"), ("cel-generate", "cel"))
            for (request_type, policy), state in zip(pairs, states, strict=True):
                body = request_of_kyverno(request_type, policy, trigger)
                names.append((await client.create(UPDATE_REQUESTS, body, "kyverno"))["metadata"]["name"])
                await client.patch(UPDATE_REQUESTS, names[-1], {"status": state}, "kyverno", subresource="status")
            async with background(cluster):
                for name in names:
                    await world.vanishes(UPDATE_REQUESTS, name, "kyverno")
            assert {"by-rule", "by-cel"} == {
                name for name in ("by-rule", "by-cel") if await world.get(CONFIG_MAPS, name, "team") is not None
            }

    asyncio.run(act())
