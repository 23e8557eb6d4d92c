"""Table `vap_map`: which policies become ValidatingAdmissionPolicies, and what MutatingAdmissionPolicies do."""

from __future__ import annotations

from typing import Any

from pyverno.controllers.admissionpolicies.eligibility import exception_obstacle, obstacle
from pyverno.engine.request import Request
from pyverno.policy.decode import decode
from pyverno.policy.exception import PolicyException
from tests.conformance.outcome import Claim
from tests.conformance.policies import as_document, judge, written_policy
from tests.conformance.tables.go_structs import as_json

_EXPRESSIONS = {"generate": True, "expressions": [{"expression": "true"}]}


def claim(row: dict[str, Any]) -> Claim:
    """Ask whether the policy, resource or exceptions of a row fit into an admission policy, or apply one."""
    if "rawPolicy" in row:
        review = judge(row["rawPolicy"], Request.from_manifest(row["rawResource"]))
        return Claim(row["expectedRawResource"], review.resource)
    if "exceptions" in row:
        return Claim(row["expected"], not exception_obstacle(map(_exception, row["exceptions"])))
    policy = row.get("policy") or _policy(row["resource"])
    return Claim(row["expected"], not obstacle(written_policy(policy)))


def _policy(resource: dict[str, Any]) -> dict[str, Any]:
    """Return a policy that requests its admission policy and matches the resources of a row."""
    match = {"any": [{"resources": resource}]}
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "row"},
        "spec": {"rules": [{"name": "row", "match": match, "validate": {"cel": _EXPRESSIONS}}]},
    }


def _exception(struct: dict[str, Any]) -> PolicyException:
    spec = as_json(struct["Spec"])
    body = {
        "apiVersion": "kyverno.io/v2",
        "kind": "PolicyException",
        "metadata": {"name": "row", "namespace": "default"},
        "spec": {"match": {}, **spec},
    }
    decoded = decode(as_document(body))
    assert isinstance(decoded.policy, PolicyException), decoded.errors
    return decoded.policy
