"""Accounts and certificates in every namespace, and tokens in Secrets."""

from __future__ import annotations

import base64

from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.controllers.cluster import Cluster, in_cluster

TOKEN_TYPE = "kubernetes.io/service-account-token"  # noqa: S105  # a type of Secret


def secret(account: str) -> JSONObject:
    annotations = {"kubernetes.io/service-account.name": account}
    metadata = {"name": "token", "namespace": "default", "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": TOKEN_TYPE}


@in_cluster
async def test_every_namespace_has_an_account_and_the_certificate(cluster: Cluster) -> None:
    """A deleted account comes back, a changed certificate is put right."""
    await cluster.create("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    assert (["default"], ["kube-root-ca.crt"]) == (
        cluster.names("serviceaccounts", "team"),
        cluster.names("configmaps", "team"),
    )
    await cluster.client.delete("serviceaccounts", "default", "team")
    await cluster.client.patch("configmaps", "kube-root-ca.crt", "team", {"data": {"ca.crt": "forged"}})
    await cluster.settle()
    assert ["default"] == cluster.names("serviceaccounts", "team")
    assert {"ca.crt": "the certificate"} == cluster.get("configmaps", "kube-root-ca.crt", "team")["data"]


@in_cluster
async def test_a_secret_for_an_account_is_filled(cluster: Cluster) -> None:
    """The Secret gets token, certificate and namespace."""
    await cluster.create("secrets", secret("default"))
    found = cluster.get("secrets", "token")
    data = {key: base64.b64decode(value).decode() for key, value in found["data"].items()}
    expected = {"ca.crt": "the certificate", "namespace": "default", "token": "token of default in token"}
    assert expected == data
    uid = cluster.get("serviceaccounts", "default")["metadata"]["uid"]
    assert uid == found["metadata"]["annotations"]["kubernetes.io/service-account.uid"]


@in_cluster
async def test_the_secret_of_an_account_goes_with_it(cluster: Cluster) -> None:
    """A secret for an account that never existed is deleted as well."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot", "namespace": "default"}}
    await cluster.create("serviceaccounts", account)
    await cluster.create("secrets", secret("robot"))
    await cluster.client.delete("serviceaccounts", "robot", "default")
    await cluster.settle()
    assert [] == cluster.names("secrets")
    await cluster.create("secrets", secret("nobody"))
    assert [] == cluster.names("secrets")
