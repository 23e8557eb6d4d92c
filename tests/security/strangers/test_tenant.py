"""A tenant: the admin of a namespace, by RBAC, who writes policies in order to get what RBAC refuses.

The controllers run with all permissions of a cluster admin, so that only the checks of authors stand between.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
import yaml

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import Access, load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.controllers.admission.settings import AdmissionSettings
from pyverno.controllers.rights.authors import AuthorRights
from pyverno.controllers.rights.demands import Demand
from pyverno.controllers.state.settings import PolicyRights
from pyverno.engine.request import User
from pyverno.engine.result import ResourceRef
from pyverno.errors import HostError
from pyverno.kube.admissionreview import AdmissionRequest
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.loopthread import LoopThread
from pyverno.policy.kinds import KNOWN_KINDS
from pyverno.telemetry.observer import Observers
from pyverno.testing import BACKGROUND, CLEANUP, PolicySandbox
from pyverno.value import replace
from pyverno.webhook.policyreviews import DocumentReviews, ExceptionSettings
from tests.support.backgroundcluster import BackgroundCluster
from tests.support.loops import entered

NAMESPACES, POLICIES = GVR("", "v1", "namespaces"), GVR("kyverno.io", "v1", "policies")
RBAC = "rbac.authorization.k8s.io/v1"
CANARY = "canary-7f3a"
POLICY_RESOURCES = ("policies", "cleanuppolicies", "namespacedgeneratingpolicies", "namespacedmutatingpolicies",
                    "namespaceddeletingpolicies", "namespacedvalidatingpolicies")  # fmt: skip

SETUP = """
apiVersion: v1
kind: Namespace
metadata: {name: team}
---
apiVersion: v1
kind: Namespace
metadata: {name: other}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: limit, namespace: team}
spec: {hard: {pods: "1"}}
---
apiVersion: v1
kind: LimitRange
metadata: {name: range, namespace: team}
spec: {limits: [{type: Pod, max: {cpu: "1"}}]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: closed, namespace: team}
spec: {podSelector: {}}
---
apiVersion: v1
kind: Secret
metadata: {name: foreign, namespace: other}
data: {key: Y2FuYXJ5}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: source, namespace: team}
data: {a: b}
"""


def binding(user: str, role: str, kind: str = "ClusterRole") -> JSONObject:
    """Return the binding of a role to a user in the namespace."""
    return {
        "apiVersion": RBAC,
        "kind": "RoleBinding",
        "metadata": {"name": f"{user}-{role}", "namespace": "team"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }


def role(name: str, *rules: tuple[list[str], list[str], list[str]]) -> JSONObject:
    """Return a role of the namespace; rules are groups, resources and verbs."""
    written = [{"apiGroups": groups, "resources": resources, "verbs": verbs} for groups, resources, verbs in rules]
    return {"apiVersion": RBAC, "kind": "Role", "metadata": {"name": name, "namespace": "team"}, "rules": written}


GROUPS = ["kyverno.io", "policies.kyverno.io"]
WRITE = ["get", "list", "create", "update", "patch", "delete"]
ROLES = (
    role("policies", (GROUPS, list(POLICY_RESOURCES), WRITE)),
    role("clerk", ([""], ["configmaps"], WRITE)),
    role("trusted", (GROUPS, list(POLICY_RESOURCES), ["escalate"])),
    role("broad", (["*"], ["*"], WRITE)),
    role("podder", ([""], ["pods"], WRITE)),
    role("updater", ([""], ["resourcequotas", "configmaps"], ["get", "create", "update"])),
    binding("updater", "updater", "Role"),
    binding("broad", "broad", "Role"),
    binding("podder", "podder", "Role"),
    binding("podder", "policies", "Role"),
    binding("tenant", "admin"),
    binding("tenant", "policies", "Role"),
    binding("clerk", "clerk", "Role"),
    binding("clerk", "policies", "Role"),
    binding("trusted", "policies", "Role"),
    binding("trusted", "trusted", "Role"),
)


class Tenancy(BackgroundCluster):
    """The cluster, and its users."""

    def put(self, user: str, body: JSONObject) -> str:
        """Create or replace an object as a user, and return the API server's reason against it, "" for none."""
        return self.run(self._put(user, body))

    async def _put(self, user: str, body: JSONObject) -> str:
        info, namespace = self._place(body)
        access = load_kubeconfig(self.cluster.sandbox.kubeconfig, environment={})
        own = replace(access, impersonate={"as": user, "as-groups": ["system:authenticated"]})
        async with Client(own, qps=0) as client:
            try:
                try:
                    current = await client.get(info.gvr, body["metadata"]["name"], namespace)
                    version = current["metadata"]["resourceVersion"]
                    changed = {**body, "metadata": {**body["metadata"], "resourceVersion": version}}
                    await client.update(info.gvr, changed, namespace)
                except StatusError as error:
                    if error.status != 404:
                        raise
                    await client.create(info.gvr, body, namespace)
            except StatusError as error:
                return error.message
        await self.cluster.settle()
        return ""


class Upgraded(PolicySandbox):
    """A cluster with a policy that was stored before there were authors."""

    async def _install(self) -> None:
        await super()._install()
        async with Client(load_kubeconfig(self.sandbox.kubeconfig, environment={}), qps=0) as client:
            for body in ({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}, stored_policy()):
                gvr, namespace = (NAMESPACES, "") if body["kind"] == "Namespace" else (POLICIES, "team")
                await client.create(gvr, body, namespace)


def stored_policy() -> JSONObject:
    """Return the policy that was stored before the upgrade."""
    return generate("old", "v1", "ConfigMap", {"data": {"c": "d"}})


@pytest.fixture(scope="module")
def cluster() -> Iterator[Tenancy]:
    """Run one cluster for all tests; names of policies and triggers are their own."""
    exceptions = ExceptionSettings(enabled=True, namespace="*")
    sandbox = Sandbox(Settings(kubelet=False))

    @asynccontextmanager
    async def run() -> AsyncIterator[tuple[PolicySandbox, Client]]:
        settings = AdmissionSettings(exceptions=exceptions, qps=0, lease_retry=60)
        async with (
            Upgraded(sandbox, Observers(), settings, further=(BACKGROUND, CLEANUP)) as found,
            Client(load_kubeconfig(sandbox.kubeconfig, environment={}), qps=0) as client,
        ):
            yield found, client

    with LoopThread("cluster") as thread, entered(thread, run()) as (found, client):
        tenancy = Tenancy(thread, found, client)
        tenancy.apply(SETUP + "".join(f"---\n{yaml.safe_dump(body)}" for body in ROLES))
        yield tenancy


# ------------------------------------------------------------------------------------------------------------ policies


def rules(name: str, action: JSONObject, *, kinds: tuple[str, ...] = ("ConfigMap",), trigger: str = "") -> JSONObject:
    """Return a Policy of one rule, for objects of a name or of all."""
    resources: JSONObject = {"kinds": list(kinds), **({"names": [trigger]} if trigger else {})}
    rule: JSONObject = {"name": "rule", "match": {"any": [{"resources": resources}]}, **action}
    metadata = {"name": name, "namespace": "team"}
    return {"apiVersion": "kyverno.io/v1", "kind": "Policy", "metadata": metadata, "spec": {"rules": [rule]}}


def generate(name: str, api_version: str, kind: str, content: JSONObject | None = None, **more: object) -> JSONObject:
    """Return a Policy that generates an object `made-NAME` for the ConfigMap of its own name."""
    target = {"apiVersion": api_version, "kind": kind, "name": f"made-{name}", "namespace": "team"}
    data = {"data": content} if content is not None else {}
    return rules(name, {"generate": {**target, "synchronize": False, **data, **more}}, trigger=name)


def mutate_existing(name: str, kind: str, target: str) -> JSONObject:
    """Return a Policy that labels an existing object for the ConfigMap of its own name."""
    targets = [{"apiVersion": "v1", "kind": kind, "name": target, "namespace": "team"}]
    patch = {"metadata": {"labels": {"changed-by": name}}}
    return rules(name, {"mutate": {"targets": targets, "patchStrategicMerge": patch}}, trigger=name)


def mutate(name: str, *kinds: str) -> JSONObject:
    """Return a Policy that changes requests of other users."""
    found = rules(name, {"mutate": {"patchStrategicMerge": {"metadata": {"labels": {"x": "y"}}}}}, kinds=kinds)
    return {**found, "spec": {**found["spec"], "background": "*" not in kinds}}


def cel(kind: str, name: str, spec: JSONObject) -> JSONObject:
    """Return a policy in CEL."""
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "team"},
        "spec": spec,
    }


def matching(*resources: str, group: str = "", operations: tuple[str, ...] = ("CREATE",), **more: object) -> JSONObject:
    """Return the constraints of a policy in CEL."""
    rule: JSONObject = {"apiGroups": [group], "apiVersions": ["v1"], "resources": list(resources), **more}
    return {"resourceRules": [{**rule, **({"operations": list(operations)} if operations else {})}]}


def generating(name: str, text: str) -> JSONObject:
    """Return a NamespacedGeneratingPolicy that makes an object of a CEL text for the ConfigMap of its own name."""
    spec = {
        "matchConstraints": matching("configmaps", resourceNames=[name]),
        "generate": [{"expression": f"generator.Apply('team', [{text}])"}],
    }
    return cel("NamespacedGeneratingPolicy", name, spec)


def mutating(name: str, resource: str, *, existing: str = "", group: str = "") -> JSONObject:
    """Return a NamespacedMutatingPolicy of requests, or of an existing resource."""
    patch = "Object{metadata: Object.metadata{labels: Object.metadata.labels{changed: 'yes'}}}"
    mutations = [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": patch}}]
    spec: JSONObject = {"matchConstraints": matching(resource, group=group), "mutations": mutations}
    if existing:
        spec["matchConstraints"] = matching(resource, resourceNames=[name])
        spec["evaluation"] = {"mutateExisting": {"enabled": True}}
        spec["targetMatchConstraints"] = matching(existing, operations=("CREATE", "UPDATE"))
    return cel("NamespacedMutatingPolicy", name, spec)


def connecting(name: str, *operations: str) -> JSONObject:
    """Return a NamespacedMutatingPolicy that changes which command runs in a container."""
    patch = '[JSONPatch{op: "replace", path: "/command", value: ["sh"]}]'
    mutations = [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}]
    spec: JSONObject = {"matchConstraints": matching("pods/exec", operations=operations), "mutations": mutations}
    return cel("NamespacedMutatingPolicy", name, spec)


def deleting(name: str, resource: str, group: str = "") -> JSONObject:
    """Return a NamespacedDeletingPolicy."""
    condition = [{"name": "never", "expression": "object.metadata.name == 'nothing'"}]
    constraints = matching(resource, group=group, operations=())
    return cel(
        "NamespacedDeletingPolicy",
        name,
        {"schedule": "* * * * *", "matchConstraints": constraints, "conditions": condition},
    )


def cleanup(name: str, kind: str) -> JSONObject:
    """Return a CleanupPolicy."""
    match = {"any": [{"resources": {"kinds": [kind], "names": ["nothing"]}}]}
    metadata = {"name": name, "namespace": "team"}
    spec = {"schedule": "* * * * *", "match": match}
    return {"apiVersion": "kyverno.io/v2", "kind": "CleanupPolicy", "metadata": metadata, "spec": spec}


QUOTA = {"spec": {"hard": {"pods": "1000"}}}
ADMIN = {
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "tenant"}],
}
LAUNDERED = {"spec": generate("inner", RBAC, "RoleBinding", ADMIN)["spec"]}
COPIED = {"clone": {"namespace": "team", "name": "limit"}}
MANY = {"cloneList": {"namespace": "team", "kinds": ["v1/ResourceQuota"], "selector": {"matchLabels": {"a": "b"}}}}
_ROLES = "rbac.authorization.k8s.io"

ATTEMPTS: tuple[tuple[str, JSONObject, str], ...] = (
    ("tenant", generate("quota", "v1", "ResourceQuota", QUOTA), "create resourcequotas"),
    ("tenant", generate("quota-sync", "v1", "ResourceQuota", QUOTA, synchronize=True), "update resourcequotas"),
    ("tenant", generate("limits", "v1", "LimitRange", {"spec": {"limits": []}}), "create limitranges"),
    ("tenant", generate("copied", "v1", "ResourceQuota", **COPIED), "create resourcequotas"),
    ("tenant", generate("bind", RBAC, "RoleBinding", ADMIN), f"bind clusterroles.{_ROLES} `cluster-admin`"),
    ("tenant", generate("roles", RBAC, "Role", {"rules": []}), f"escalate roles.{_ROLES}"),
    ("tenant", generate("laundry", "kyverno.io/v1", "Policy", LAUNDERED), "escalate policies.kyverno.io"),
    ("tenant", mutate_existing("raise", "ResourceQuota", "limit"), "update resourcequotas `limit`"),
    ("tenant", mutate("requests", "ResourceQuota"), "create resourcequotas"),
    ("tenant", mutate("bindings", "RoleBinding"), f"bind clusterroles.{_ROLES}"),
    ("tenant", mutate("all", "*"), "create *"),
    ("tenant", mutating("cel-requests", "resourcequotas"), "create resourcequotas"),
    ("tenant", mutating("cel-roles", "roles", group=_ROLES), f"escalate roles.{_ROLES}"),
    ("tenant", mutating("cel-everything", "*", group="*"), "create *.*"),
    ("tenant", mutating("cel-existing", "configmaps", existing="resourcequotas"), "update resourcequotas"),
    ("tenant", cleanup("clean", "ResourceQuota"), "delete resourcequotas"),
    ("tenant", cleanup("clean-all", "*"), "delete *"),
    ("tenant", deleting("cel-delete", "limitranges"), "delete limitranges"),
    ("tenant", deleting("cel-delete-all", "*", "*"), "delete *.*"),
    ("clerk", cleanup("open", "NetworkPolicy"), "delete networkpolicies.networking.k8s.io"),
    ("clerk", deleting("cel-open", "networkpolicies", "networking.k8s.io"), "delete networkpolicies"),
    ("clerk", generate("token", "v1", "Secret", {"type": "kubernetes.io/service-account-token"}), "create secrets"),
    ("clerk", mutate_existing("secret", "Secret", "any"), "update secrets `any`"),
    ("clerk", mutate("pods", "Pod"), "create pods"),
    ("clerk", connecting("cel-connect", "CONNECT"), "create pods/exec"),
    ("clerk", connecting("cel-connect-any", "*"), "create pods/exec"),
    ("podder", mutating("cel-copies", "pods"), "create deployments.apps"),
    ("podder", mutate("copies", "Pod"), "create deployments.apps"),
    ("broad", mutate("subresources", "*/*"), f"escalate roles.{_ROLES}"),
    ("broad", mutating("cel-subresources", "*/*", group="*"), f"escalate roles.{_ROLES}"),
)
"""Users, their policies, and the permission that a denial names."""


def _id(value: object) -> str:
    return f"{value['kind']}-{value['metadata']['name']}" if isinstance(value, dict) else ""


@pytest.mark.parametrize(("user", "policy", "permission"), ATTEMPTS, ids=_id)
def test_a_policy_is_admitted_only_if_its_author_may_do_what_it_does(
    cluster: Tenancy, user: str, policy: JSONObject, permission: str
) -> None:
    """The denial names user, verb, resource and namespace, and what to grant."""
    denial = cluster.put(user, policy)
    assert permission in denial
    for text in (f"user `{user}` lacks permissions", "in namespace `team`", "or the verb `escalate` on "):
        assert text in denial


@pytest.mark.parametrize("policy", [policy for user, policy, _ in ATTEMPTS if user == "tenant"], ids=_id)
def test_the_verb_escalate_excepts(cluster: Tenancy, policy: JSONObject) -> None:
    """As for roles: the administrator says that a user may write any policy."""
    body = {**policy, "metadata": {**policy["metadata"], "name": f"may-{policy['metadata']['name']}"}}
    body["spec"] = json.loads(json.dumps(body["spec"]).replace('"names": ["', '"names": ["may-'))
    assert "" == cluster.put("trusted", body)
    cluster.delete(body["apiVersion"], body["kind"], f"team/{body['metadata']['name']}")


def config_map(name: str, **labels: str) -> JSONObject:
    """Return a ConfigMap of the namespace."""
    metadata = {"name": name, "namespace": "team", "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}}


TWINS: tuple[tuple[JSONObject, str, str], ...] = (
    (generate("t-data", "v1", "ConfigMap", {"data": {"c": "d"}}), "v1/ConfigMap", "made-t-data"),
    (generate("t-secret", "v1", "Secret", {"stringData": {"c": "d"}}), "v1/Secret", "made-t-secret"),
    (
        generate("t-clone", "v1", "ConfigMap", clone={"namespace": "team", "name": "source"}),
        "v1/ConfigMap",
        "made-t-clone",
    ),
    (
        generating(
            "t-cel", "{'apiVersion': dyn('v1'), 'kind': dyn('ConfigMap'), 'metadata': dyn({'name': 'made-t-cel'})}"
        ),
        "v1/ConfigMap",
        "made-t-cel",
    ),
)


@pytest.mark.parametrize(("policy", "kind", "made"), TWINS, ids=_id)
def test_what_an_author_may_make_is_made(cluster: Tenancy, policy: JSONObject, kind: str, made: str) -> None:
    """The permissions of a namespace's admin suffice for its own workloads."""
    assert "" == cluster.put("tenant", policy)
    assert "" == cluster.put("tenant", config_map(policy["metadata"]["name"]))
    api_version, _, name = kind.rpartition("/")
    cluster.until(api_version, name, f"team/{made}", lambda body: True)
    cluster.no_requests()


def test_what_an_author_may_change_is_changed(cluster: Tenancy) -> None:
    """Requests in the namespace, and existing objects."""
    cluster.put("tenant", config_map("target"))
    for policy in (mutate_existing("t-existing", "ConfigMap", "target"), mutating("t-mutating", "secrets")):
        assert "" == cluster.put("tenant", policy)
    cluster.put("tenant", config_map("t-existing"))
    changed = cluster.until("v1", "ConfigMap", "team/target", lambda body: body["metadata"].get("labels"))
    assert "t-existing" == changed["metadata"]["labels"]["changed-by"]


HIDDEN: tuple[tuple[JSONObject, str, str], ...] = (
    (
        generating(
            "w-quota",
            "{'apiVersion': dyn('v1'), 'kind': dyn('ResourceQuota'), 'metadata': dyn({'name': 'made-w-quota'}),"
            " 'spec': dyn({'hard': {'pods': '1000'}})}",
        ),
        "v1/ResourceQuota",
        "create resourcequotas",
    ),
    (
        generating(
            "w-bind",
            "{'apiVersion': dyn('rbac.authorization.k8s.io/v1'), 'kind': dyn('RoleBinding'),"
            " 'metadata': dyn({'name': 'made-w-bind'}), 'roleRef': dyn({'apiGroup': 'rbac.authorization.k8s.io',"
            " 'kind': 'ClusterRole', 'name': 'cluster-admin'}), 'subjects': dyn([])}",
        ),
        f"{RBAC}/RoleBinding",
        f"bind clusterroles.{_ROLES} `cluster-admin`",
    ),
)
"""Policies whose kinds do not follow from their text, the kind that they would make, and the permission that lacks."""


@pytest.mark.parametrize(("policy", "kind", "permission"), HIDDEN, ids=_id)
def test_what_admission_cannot_see_is_checked_at_work(
    cluster: Tenancy, policy: JSONObject, kind: str, permission: str
) -> None:
    """The policy is stored; nothing is made, and an event of the policy names the permission."""
    name = policy["metadata"]["name"]
    assert "" == cluster.put("tenant", policy)
    cluster.put("tenant", config_map(name))

    def told() -> list[str]:
        return [text for each in cluster.events("team") if permission in (text := str(each.get("note")))]

    assert "user `tenant` cannot do what the policy does" in cluster.wait_for(told, f"an event of {name}")[0]
    api_version, _, kind_name = kind.rpartition("/")
    assert None is cluster.get(api_version, kind_name, f"team/made-{name}")
    cluster.delete(policy["apiVersion"], policy["kind"], f"team/{name}")
    cluster.delete("v1", "ConfigMap", f"team/{name}")


def author(cluster: Tenancy, name: str) -> str:
    """Return the recorded author of a Policy."""
    found = cluster.get("kyverno.io/v1", "Policy", f"team/{name}")
    assert found is not None
    written: str = json.loads(found["metadata"]["annotations"]["pyverno.io/author"])["username"]
    return written


def test_an_author_cannot_be_named_by_another(cluster: Tenancy) -> None:
    """A forged annotation is replaced at creation and at every update; a relabelled policy keeps its author."""
    forged = {"pyverno.io/author": json.dumps({"username": "root", "groups": ["system:masters"]})}
    policy = generate("forged", "v1", "ConfigMap", {"data": {"c": "d"}})
    policy["metadata"]["annotations"] = forged
    assert "" == cluster.put("tenant", policy)
    assert "tenant" == author(cluster, "forged")
    assert "" == cluster.put("tenant", policy)
    assert "tenant" == author(cluster, "forged")
    plain = {**policy, "metadata": {"name": "forged", "namespace": "team", "labels": {"a": "b"}}}
    cluster.apply(yaml.safe_dump(plain))
    assert "tenant" == author(cluster, "forged")
    plain["spec"]["rules"][0]["generate"]["data"] = {"data": {"c": "e"}}
    cluster.apply(yaml.safe_dump(plain))
    assert "tenant" != author(cluster, "forged")


def test_a_tool_that_notes_something_on_a_policy_is_not_its_author(cluster: Tenancy) -> None:
    """Deployment tools annotate everything, with permissions of the cluster; our own annotations are content."""
    policy = generate("noted", "v1", "ConfigMap", {"data": {"c": "d"}})
    assert "" == cluster.put("tenant", policy)
    for key, is_same in (
        ("argocd.argoproj.io/tracking-id", True),
        ("meta.helm.sh/release-name", True),
        ("team", True),
        ("pyverno.io/last-change", True),
        ("pod-policies.kyverno.io/autogen-controllers", False),
    ):
        cluster.apply(yaml.safe_dump({**policy, "metadata": {**policy["metadata"], "annotations": {key: "none"}}}))
        assert is_same == (author(cluster, "noted") == "tenant")


def test_a_policy_without_an_author_writes_nothing(cluster: Tenancy) -> None:
    """It was stored before there were authors; writing the annotation makes a user its author."""
    policy = stored_policy()
    cluster.put("tenant", config_map("old"))

    def told() -> list[str]:
        return [text for each in cluster.events("team") if "has no author on record" in (text := str(each.get("note")))]

    assert cluster.wait_for(told, "an event")
    assert None is cluster.get("v1", "ConfigMap", "team/made-old")
    policy["metadata"]["annotations"] = {"pyverno.io/author": "me"}
    assert "" == cluster.put("tenant", policy)
    assert "tenant" == author(cluster, "old")
    cluster.until("v1", "ConfigMap", "team/made-old", lambda body: True)


TTL = "cleanup.kyverno.io/ttl"


def test_a_time_to_live_is_a_deletion(cluster: Tenancy) -> None:
    """Whoever may update an object, but not delete it, cannot have the controller delete it; others can."""
    quota = cluster.get("v1", "ResourceQuota", "team/limit")
    network = cluster.get("networking.k8s.io/v1", "NetworkPolicy", "team/closed")
    assert quota is not None
    assert network is not None
    for user, body, denial in (
        ("updater", quota, "user `updater` cannot delete resourcequotas `limit` in namespace `team`"),
        ("tenant", network, ""),
    ):
        metadata = {**body["metadata"], "labels": {TTL: "1000h"}}
        assert denial in (answer := cluster.put(user, {**body, "metadata": metadata})), answer
        assert bool(denial) == bool(answer)
    labelled = cluster.get("networking.k8s.io/v1", "NetworkPolicy", "team/closed")
    assert labelled is not None
    assert "1000h" == labelled["metadata"]["labels"][TTL]


def test_a_label_that_stays_deletes_nothing_more(cluster: Tenancy) -> None:
    """An update that leaves the time to live alone needs no permission to delete, nor does a new object."""
    assert "" == cluster.put("updater", config_map("kept", **{TTL: "1000h"}))
    found = cluster.get("v1", "ConfigMap", "team/kept")
    assert found is not None
    assert "" == cluster.put("updater", {**found, "data": {"a": "c"}})
    sooner = {**found, "metadata": {**found["metadata"], "labels": {TTL: "1s"}}}
    assert "user `updater` cannot delete configmaps `kept`" in cluster.put("updater", sooner)


def test_kyvernos_behaviour_has_a_flag() -> None:
    """With `controller` nothing is asked of the API server: the controller's permissions alone decide."""

    async def scene() -> None:
        async with Client(Access("http://127.0.0.1:1"), qps=0) as client:
            rights = AuthorRights(client, lambda: KNOWN_KINDS, PolicyRights.CONTROLLER)
            policy = ResourceRef("kyverno.io/v1", "Policy", "team", "any")
            await rights.require(policy, None, Demand("update", "", "resourcequotas"))
            assert () == await rights.refusals(None, policy, User("tenant"))
            assert await rights.may_delete(User("tenant"), POLICIES, "team", "any")

    asyncio.run(scene())


def test_a_policy_is_rejected_while_its_author_cannot_be_checked() -> None:
    """Without an answer of the API server the user is asked to try again."""

    async def refuse(written: object, policy: ResourceRef, author: User) -> tuple[str, ...]:
        raise HostError("the API server is away")

    reviews = DocumentReviews(lambda: KNOWN_KINDS, ExceptionSettings(), rights=refuse)
    asked: JSONObject = {
        "uid": "1",
        "kind": {"group": "kyverno.io", "version": "v1", "kind": "Policy"},
        "operation": "CREATE",
        "namespace": "team",
        "name": "made",
        "userInfo": {"username": "tenant"},
        "object": generate("made", "v1", "ConfigMap", {"data": {}}),
    }
    recorded = asyncio.run(reviews.record_author(AdmissionRequest("admission.k8s.io/v1", "1", asked)))
    asked["object"]["metadata"]["annotations"] = recorded.patch[0]["value"]
    answer = asyncio.run(reviews.review(AdmissionRequest("admission.k8s.io/v1", "1", asked)))
    assert (False, True) == (answer.allowed, "try again: the API server is away" in answer.message)
    asked["object"]["metadata"]["annotations"] = {"pyverno.io/author": '{"username":"root"}'}
    answer = asyncio.run(reviews.review(AdmissionRequest("admission.k8s.io/v1", "1", asked)))
    assert (False, True) == (answer.allowed, "was changed by another webhook" in answer.message)
