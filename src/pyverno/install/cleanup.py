"""The cleanup controller of an installation, and its permissions.

It may delete no kind by default: each kind that policies or times to live delete needs a ClusterRole with the
aggregation label.
"""

from __future__ import annotations

from typing import Final

from pyverno.install.component import READ, Component, rule
from pyverno.kube.json import JSONObject
from pyverno.policy.kinds import DELETING_POLICIES

__all__ = ["CLEANUP"]

_LEASE: Final = "kyverno-cleanup-controller"


def _cluster_rules() -> list[JSONObject]:
    groups = dict.fromkeys(gvr.group for gvr in DELETING_POLICIES)
    policies = {group: [gvr.resource for gvr in DELETING_POLICIES if gvr.group == group] for group in groups}
    return [
        rule(["apiextensions.k8s.io"], ["customresourcedefinitions"], READ),
        *(rule([group], resources, READ) for group, resources in policies.items()),
        *(rule([group], [f"{each}/status" for each in resources], ["patch"]) for group, resources in policies.items()),
        rule(["policies.kyverno.io"], ["policyexceptions"], READ),
        rule(["kyverno.io"], ["globalcontextentries"], READ),
        rule(["kyverno.io"], ["globalcontextentries/status"], ["patch"]),
        rule([""], ["namespaces", "configmaps"], READ),
        rule(["authorization.k8s.io"], ["selfsubjectaccessreviews", "subjectaccessreviews"], ["create"]),
        rule(["events.k8s.io"], ["events"], ["create"]),
    ]


def _namespace_rules() -> list[JSONObject]:
    return [
        rule(["coordination.k8s.io"], ["leases"], ["create"]),
        rule(["coordination.k8s.io"], ["leases"], ["get", "update"], [_LEASE]),
    ]


CLEANUP: Final = Component("cleanup", _cluster_rules, _namespace_rules, reads_cluster=False)
"""The controller that deletes objects by schedule and by their time to live."""
