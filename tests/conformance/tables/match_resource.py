"""Table `match_resource`: match and exclude of all rules of a policy, autogen copies included, on a CREATE."""

from __future__ import annotations

from typing import Any

from pyverno.engine.request import Request, User
from pyverno.kube.resource import Resource
from tests.conformance.outcome import Claim
from tests.conformance.policies import compiled_policy


def claim(row: dict[str, Any]) -> Claim:
    """Judge one row; every rule of the policy must match or fail to match as the row claims."""
    info = row.get("admissionInfo") or {}
    asking = info.get("AdmissionUserInfo") or {}
    user = User(
        username=asking.get("Username", ""),
        groups=tuple(asking.get("Groups") or ()),
        roles=tuple(info.get("Roles") or ()),
        cluster_roles=tuple(info.get("ClusterRoles") or ()),
    )
    labels = row.get("namespaceLabels") or {}
    request = Request.from_manifest(row["resource"], user=user, namespace_labels=labels)
    resource = Resource(row["resource"])
    fails = [rule.matcher.mismatch(request, resource) is not None for rule in compiled_policy(row["policy"]).rules]
    return Claim([row["match_fails"]] * len(fails), fails)
