"""Policies that delete: DeletingPolicies and cleanup policies."""

from __future__ import annotations

from random import Random

from pyverno.kube.json import JSONObject
from tests.differential.generate.celexpressions import about_object
from tests.differential.generate.celpolicies import constraints, selectors
from tests.differential.generate.clusterpolicies import match
from tests.differential.generate.draws import chance
from tests.differential.generate.expressions import conditions

__all__ = ["cleanup_policy", "deleting_policy"]

_SCHEDULE = "*/5 * * * *"


def deleting_policy(random: Random, name: str, sample: JSONObject) -> JSONObject:
    """Return a DeletingPolicy, sometimes one of a namespace."""
    spec: JSONObject = {
        "schedule": _SCHEDULE,
        "matchConstraints": constraints(random, sample["kind"], **selectors(random)),
    }
    if chance(random, 0.3):
        spec["variables"] = [{"name": "v0", "expression": about_object(random, sample, depth=1)}]
    wanted = about_object(random, sample, depth=2)
    if "variables" in spec and chance(random, 0.5):
        wanted = f"variables.v0 || {wanted}"
    if chance(random, 0.9):
        spec["conditions"] = [{"name": "old", "expression": wanted}]
        if chance(random, 0.2):
            spec["conditions"].append({"name": "other", "expression": about_object(random, sample, depth=1)})
    metadata: JSONObject = {"name": name}
    kind = "DeletingPolicy"
    if "namespace" in sample["metadata"] and chance(random, 0.2):
        kind, metadata["namespace"] = "NamespacedDeletingPolicy", sample["metadata"]["namespace"]
    return {"apiVersion": "policies.kyverno.io/v1", "kind": kind, "metadata": metadata, "spec": spec}


def cleanup_policy(random: Random, name: str, sample: JSONObject) -> JSONObject:
    """Return a cleanup policy, sometimes one of a namespace."""
    spec: JSONObject = {"schedule": _SCHEDULE, **match(random, sample, wide=chance(random, 0.5))}
    for filters in (spec["match"], spec.get("exclude", {})):
        for described in (each["resources"] for side in filters.values() for each in side):
            described.pop("operations", None)
    if chance(random, 0.8):
        spec["conditions"] = conditions(random, "target", sample)
    metadata: JSONObject = {"name": name}
    kind = "ClusterCleanupPolicy"
    if "namespace" in sample["metadata"] and chance(random, 0.2):
        kind, metadata["namespace"] = "CleanupPolicy", sample["metadata"]["namespace"]
    return {"apiVersion": "kyverno.io/v2", "kind": kind, "metadata": metadata, "spec": spec}
