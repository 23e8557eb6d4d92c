"""Type checking in the status of ValidatingAdmissionPolicies."""

from __future__ import annotations

from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.controllers.cluster import Cluster, in_cluster

POLICIES = "validatingadmissionpolicies.admissionregistration.k8s.io"


def policy(expression: str) -> JSONObject:
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "check"},
        "spec": {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": expression}]},
    }


@in_cluster
async def test_warnings_stand_in_the_status(cluster: Cluster) -> None:
    """The warnings disappear when the policy is corrected."""
    await cluster.create(POLICIES, policy("object.spec.nosuch > 1"))
    status = cluster.get(POLICIES, "check", "")["status"]
    warning = status["typeChecking"]["expressionWarnings"][0]
    assert (1, "spec.validations[0].expression") == (status["observedGeneration"], warning["fieldRef"])
    assert "undefined field 'nosuch'" in warning["warning"]
    await cluster.client.patch(POLICIES, "check", "", {"spec": policy("object.spec.replicas > 1")["spec"]})
    await cluster.settle()
    status = cluster.get(POLICIES, "check", "")["status"]
    assert (2, {}) == (status["observedGeneration"], status["typeChecking"])
