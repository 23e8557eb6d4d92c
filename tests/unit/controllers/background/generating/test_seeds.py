"""Published policies in a cluster, with the effects that their descriptions promise."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import load_documents
from tests.support.background import World, in_cluster

CASES = Path(__file__).resolve().parents[4] / "cases" / "seeds"
POLICIES = GVR("kyverno.io", "v1", "clusterpolicies")
SECRETS = GVR("", "v1", "secrets")
NAMESPACES = GVR("", "v1", "namespaces")
QUOTAS = GVR("", "v1", "resourcequotas")
NETWORK_POLICIES = GVR("networking.k8s.io", "v1", "networkpolicies")
ROLES = GVR("rbac.authorization.k8s.io", "v1", "clusterroles")
BINDINGS = GVR("rbac.authorization.k8s.io", "v1", "clusterrolebindings")
ROLE_BINDINGS = GVR("rbac.authorization.k8s.io", "v1", "rolebindings")
DEFINITIONS = GVR("apiextensions.k8s.io", "v1", "customresourcedefinitions")
CLUSTERS = GVR("cluster.x-k8s.io", "v1beta1", "clusters")

NAMESPACE_DEFAULTS = """
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: namespace-defaults
spec:
  rules:
  - name: deny-all-traffic
    match: &namespaces
      any:
      - resources:
          kinds: [Namespace]
    exclude: &system
      any:
      - resources:
          namespaces: [kube-*, default, kyverno]
    generate:
      apiVersion: networking.k8s.io/v1
      kind: NetworkPolicy
      name: default-deny
      namespace: "{{request.object.metadata.name}}"
      synchronize: true
      data:
        spec:
          podSelector: {}
          policyTypes: [Ingress, Egress]
  - name: quota
    match: *namespaces
    exclude: *system
    generate:
      apiVersion: v1
      kind: ResourceQuota
      name: default-quota
      namespace: "{{request.object.metadata.name}}"
      synchronize: true
      data:
        spec:
          hard:
            pods: "{{request.object.metadata.labels.pods || '10'}}"
"""
KUBECONFIG = """
clusters: [{name: prod, cluster: {certificate-authority-data: Q0E=, server: 'https://prod:6443'}}]
users: [{name: prod, user: {client-certificate-data: Q0VSVA==, client-key-data: S0VZ, token: secret}}]
"""


def seed(name: str) -> list[JSONObject]:
    """Return the policies of a published text."""
    return [each.value for each in load_documents((CASES / name / "policy.yaml").read_bytes())]


async def apply(world: World, policies: list[JSONObject]) -> None:
    """Create policies and wait until they are in force."""
    for body in policies:
        await world.apply(POLICIES, body)


def opaque(name: str, namespace: str, **data: str) -> JSONObject:
    """Return a Secret."""
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "data": encoded}


async def allow(world: World, user: str, *resources: str) -> None:
    """Let a user create and change some resources."""
    rule = {"apiGroups": ["*"], "resources": list(resources), "verbs": ["*"]}
    role: JSONObject = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": user}}
    await world.client.create(ROLES, {**role, "rules": [rule]})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
    binding = {**role, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": [subject]}
    await world.client.create(BINDINGS, binding)


def test_the_pull_secret_reaches_a_new_namespace_and_follows_an_edit() -> None:
    """sync-secrets: the copy is created with the namespace, and follows its source."""
    policies = seed("sync-secrets-clones-the-secret-into-a-new-namespace")
    clone = policies[0]["spec"]["rules"][0]["generate"]["clone"]

    async def act(world: World) -> None:
        await world.client.create(SECRETS, opaque(clone["name"], clone["namespace"], key="one"), clone["namespace"])
        await apply(world, policies)
        await world.namespace("mytestns")
        await world.appears(SECRETS, clone["name"], "mytestns")
        patch = {"data": opaque("", "", key="two")["data"]}
        await world.client.patch(SECRETS, clone["name"], patch, clone["namespace"])

        async def follows() -> bool:
            found = await world.get(SECRETS, clone["name"], "mytestns")
            return found is not None and found["data"] == patch["data"]

        await world.until(follows)

    in_cluster(act)


def test_the_user_who_creates_a_namespace_becomes_its_admin() -> None:
    """The RoleBinding names the user of the admission request, although it is written in the background."""

    async def act(world: World) -> None:
        await allow(world, "ann", "namespaces")
        await apply(world, seed("a-role-binding-is-generated-for-the-user-who-creates-a-namespace"))
        access = load_kubeconfig(world.sandbox.sandbox.kubeconfig)
        access.impersonate.update({"as": "ann", "as-groups": ["system:authenticated"]})
        async with Client(access, qps=0) as ann:
            await ann.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
        made = await world.appears(ROLE_BINDINGS, "ann-admin-binding", "shop")
        assert ("admin", "ann") == (made["roleRef"]["name"], made["subjects"][0]["name"])

    in_cluster(act)


def test_a_new_namespace_gets_a_network_policy_and_a_quota() -> None:
    """Two rules of one policy, one with data of the trigger; edited or deleted objects are restored."""
    policies = [each.value for each in load_documents(NAMESPACE_DEFAULTS.encode())]

    async def act(world: World) -> None:
        await apply(world, policies)
        await world.namespace("shop", pods="5")
        made = await world.appears(NETWORK_POLICIES, "default-deny", "shop")
        assert ["Ingress", "Egress"] == made["spec"]["policyTypes"]
        await world.appears(QUOTAS, "default-quota", "shop")
        await world.client.delete(NETWORK_POLICIES, "default-deny", "shop")
        await world.client.patch(QUOTAS, "default-quota", {"spec": {"hard": {"pods": "100"}}}, "shop")
        await world.appears(NETWORK_POLICIES, "default-deny", "shop")
        await world.until(lambda: limited(world, "5"))
        await world.rest()
        await world.client.patch(NAMESPACES, "shop", {"metadata": {"labels": {"pods": "7"}}})
        await world.until(lambda: limited(world, "7"))

    async def limited(world: World, pods: str) -> bool:
        found: Any = await world.get(QUOTAS, "default-quota", "shop")
        return found is not None and found["spec"]["hard"] == {"pods": pods}

    in_cluster(act)


def test_argo_learns_of_a_cluster_once_its_kubeconfig_is_there() -> None:
    """The kubeconfig Secret is created long after the Cluster; one cluster has certificates, the other a token."""
    policies = seed("argo-registers-a-cluster-with-certificates")
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    definition: JSONObject = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "clusters.cluster.x-k8s.io"},
        "spec": {
            "group": "cluster.x-k8s.io",
            "names": {"kind": "Cluster", "listKind": "ClusterList", "plural": "clusters", "singular": "cluster"},
            "scope": "Namespaced",
            "versions": [
                {"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}},
            ],
        },
    }

    def cluster(name: str) -> JSONObject:
        metadata = {"name": name, "namespace": "fleet", "labels": {"region": "eu"}}
        return {"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": metadata, "spec": {}}

    async def act(world: World) -> None:
        await world.client.create(DEFINITIONS, definition)
        for name in ("argocd", "fleet"):
            await world.namespace(name)

        async def is_served() -> bool:
            found: Any = await world.get(DEFINITIONS, "clusters.cluster.x-k8s.io")
            return any(each["type"] == "Established" for each in found.get("status", {}).get("conditions", ()))

        await world.until(is_served)
        await world.client.create(CLUSTERS, cluster("prod"), "fleet")  # the policy covers existing objects, too
        await apply(world, policies)
        await world.client.create(CLUSTERS, cluster("managed"), "fleet")
        for name in ("prod", "managed"):
            await world.client.create(SECRETS, opaque(f"{name}-kubeconfig", "fleet", value=KUBECONFIG), "fleet")
        prod = await world.appears(SECRETS, "cluster-prod", "argocd")
        managed = await world.appears(SECRETS, "cluster-managed", "argocd")
        assert ("cluster", "prod", "eu") == tuple(
            prod["metadata"]["labels"][key] for key in ("argocd.argoproj.io/secret-type", "clusterId", "region")
        )
        assert b"https://prod:6443" == base64.b64decode(prod["data"]["server"])
        assert b'"certData": "Q0VSVA=="' in base64.b64decode(prod["data"]["config"])
        assert b'"bearerToken": "secret"' in base64.b64decode(managed["data"]["config"])

    in_cluster(act)
