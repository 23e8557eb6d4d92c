"""The background controller of an installation, and its permissions.

The core role lets it write the kinds that policies usually generate; further kinds need a ClusterRole with the
aggregation label.
"""

from __future__ import annotations

from typing import Final

from pyverno.install.component import RBAC, READ, Component, policy_resources, rule
from pyverno.kube.json import JSONObject

__all__ = ["BACKGROUND", "SHARD_LEASES"]

_ENTRIES: Final = "globalcontextentries"
_CHANGE: Final = ["create", "update", "patch", "delete"]
_GENERATED: Final = (
    ("", ["configmaps", "resourcequotas", "limitranges"]),
    ("networking.k8s.io", ["ingresses", "ingressclasses", "networkpolicies"]),
    (RBAC, ["roles", "rolebindings"]),
    ("resource.k8s.io", ["resourceclaims", "resourceclaimtemplates"]),
)
"""The kinds that Kyverno's background controller may write without further roles."""

SHARD_LEASES: Final = 8
"""The largest number of shards: each has a lease, and the role names the leases."""


def _cluster_rules() -> list[JSONObject]:
    return [
        rule(["apiextensions.k8s.io"], ["customresourcedefinitions"], READ),
        rule([RBAC], ["rolebindings", "clusterrolebindings"], READ),
        rule(["kyverno.io"], [*policy_resources("kyverno.io"), _ENTRIES], READ),
        rule(["policies.kyverno.io"], policy_resources("policies.kyverno.io"), READ),
        *(
            rule([group], [f"{each}/status" for each in policy_resources(group) if "exceptions" not in each], ["patch"])
            for group in ("kyverno.io", "policies.kyverno.io")
        ),
        rule([""], ["namespaces", "configmaps"], READ),
        rule(["authorization.k8s.io"], ["subjectaccessreviews"], ["create"]),
        rule(["events.k8s.io"], ["events"], ["create"]),
        rule(["reports.kyverno.io"], ["ephemeralreports", "clusterephemeralreports"], ["list", "watch", "create"]),
        *(rule([group], resources, [*READ, *_CHANGE]) for group, resources in _GENERATED),
    ]


def _namespace_rules() -> list[JSONObject]:
    lease = "kyverno-background-controller"
    leases = [lease, *(f"{lease}-shard-{number}" for number in range(SHARD_LEASES))]
    return [
        rule(["kyverno.io"], ["updaterequests"], [*READ, "create", "update", "patch", "delete"]),
        rule(["kyverno.io"], ["updaterequests/status"], ["update", "patch"]),
        # the keys of image records, and deleted objects, whose names are those of UpdateRequests
        rule([""], ["secrets"], ["get"]),
        rule(["coordination.k8s.io"], ["leases"], ["create"]),
        rule(["coordination.k8s.io"], ["leases"], ["get", "update", "patch"], leases),
    ]


BACKGROUND: Final = Component("background", _cluster_rules, _namespace_rules)
"""The controller that works on UpdateRequests."""
