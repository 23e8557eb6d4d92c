"""Aggregated ClusterRoles follow the roles that they select."""

from __future__ import annotations

from kubesandbox.controllers.clusterroles import aggregated_rules
from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.controllers.cluster import Cluster, in_cluster

ROLES = "clusterroles.rbac.authorization.k8s.io"


def role(name: str, resource: str = "", **labels: str) -> JSONObject:
    rules = [{"apiGroups": [""], "resources": [resource], "verbs": ["get"]}] if resource else []
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": metadata, "rules": rules}


def whole() -> JSONObject:
    return {**role("whole"), "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"part": "yes"}}]}}


@in_cluster
async def test_rules_come_and_go_with_labels(cluster: Cluster) -> None:
    """A role joins when it is made, leaves when its label or the role itself goes."""

    def resources() -> list[str]:
        return [name for rule in cluster.get(ROLES, "whole", "").get("rules") or () for name in rule["resources"]]

    await cluster.create(ROLES, role("b", "pods", part="yes"))
    await cluster.create(ROLES, whole())
    await cluster.create(ROLES, role("a", "secrets", part="yes"))
    await cluster.create(ROLES, role("c", "nodes"))
    assert ["secrets", "pods"] == resources()
    await cluster.client.patch(ROLES, "b", "", {"metadata": {"labels": {"part": "no"}}})
    await cluster.settle()
    assert ["secrets"] == resources()
    await cluster.client.delete(ROLES, "a")
    await cluster.settle()
    assert [] == resources()


def test_equal_rules_stand_once_and_a_role_never_aggregates_itself() -> None:
    """Even when its own labels fit its selector."""
    body = {**whole(), "metadata": {"name": "whole", "labels": {"part": "yes"}}, "rules": [{"verbs": ["*"]}]}
    parts = [role("a", "pods", part="yes"), role("b", "pods", part="yes")]
    assert parts[0]["rules"] == aggregated_rules(body, [body, *parts])
