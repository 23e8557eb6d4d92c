"""The reports controller of an installation, and its permissions.

It reads what the ClusterRole `view` shows; further kinds, such as Nodes and roles, need a ClusterRole with the
aggregation label.
"""

from __future__ import annotations

from typing import Final

from pyverno.install.component import RBAC, READ, RECORD_KEYS, Component, policy_resources, rule
from pyverno.kube.json import JSONObject

__all__ = ["REPORTS"]

_ALL: Final = [*READ, "create", "update", "patch", "delete"]
_ADMISSION: Final = "admissionregistration.k8s.io"
_POLICIES: Final = [
    f"{word}admission{noun}" for word in ("validating", "mutating") for noun in ("policies", "policybindings")
]


def _cluster_rules() -> list[JSONObject]:
    return [
        rule(["apiextensions.k8s.io"], ["customresourcedefinitions"], READ),
        rule([RBAC], ["rolebindings", "clusterrolebindings"], READ),
        rule(["kyverno.io"], [*policy_resources("kyverno.io"), "globalcontextentries"], READ),
        rule(["policies.kyverno.io"], policy_resources("policies.kyverno.io"), READ),
        rule([_ADMISSION], _POLICIES, READ),
        rule(["reports.kyverno.io"], ["ephemeralreports", "clusterephemeralreports"], [*READ, "patch", "delete"]),
        rule(["wgpolicyk8s.io"], ["policyreports", "clusterpolicyreports"], _ALL),
        rule(["openreports.io"], ["reports", "clusterreports"], _ALL),
        rule([""], ["namespaces", "configmaps"], READ),
        rule(["events.k8s.io"], ["events"], ["create"]),
        rule(["authorization.k8s.io"], ["subjectaccessreviews"], ["create"]),
    ]


def _namespace_rules() -> list[JSONObject]:
    return [
        rule(["coordination.k8s.io"], ["leases"], ["create"]),
        rule(["coordination.k8s.io"], ["leases"], ["get", "update"], ["kyverno-reports-controller"]),
        rule([""], ["secrets"], ["get"], [RECORD_KEYS]),
    ]


REPORTS: Final = Component("reports", _cluster_rules, _namespace_rules)
"""The controller that scans existing objects and writes reports."""
