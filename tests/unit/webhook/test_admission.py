"""Answers of the webhook: deletions, connections, subresources, dry runs, and the order of protection and filters."""

from __future__ import annotations

from typing import Any

import pytest

from pyverno.engine.host import NO_HOST
from pyverno.kube.admissionreview import AdmissionRequest
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.offline.library import compile_policies
from pyverno.telemetry.observer import AdmissionOutcome
from pyverno.webhook.admission import answer
from pyverno.webhook.configuration import Configuration
from pyverno.webhook.policies import Policies
from pyverno.webhook.routes import read_route
from tests.support.webhookserver import MemoryWorld

POD: JSONObject = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "team"}, "spec": {}}
MANAGED: JSONObject = {
    **POD,
    "metadata": {**POD["metadata"], "labels": {"app.kubernetes.io/managed-by": "kyverno"}},
}


def denying(kind: str, *operations: str, **deny: Any) -> JSONObject:
    """Return a policy that denies operations on a kind."""
    resources: JSONObject = {"kinds": [kind], **({"operations": list(operations)} if operations else {})}
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "never", "annotations": {"pod-policies.kyverno.io/autogen-controllers": "none"}},
        "spec": {
            "background": False,
            "rules": [
                {
                    "name": "rule",
                    "match": {"any": [{"resources": resources}]},
                    "validate": {"failureAction": "Enforce", "message": "never", "deny": deny},
                }
            ],
        },
    }


MUTATING: JSONObject = {
    "apiVersion": "kyverno.io/v1",
    "kind": "ClusterPolicy",
    "metadata": {"name": "add"},
    "spec": {
        "rules": [
            {
                "name": "rule",
                "match": {"any": [{"resources": {"kinds": ["Pod"], "operations": ["CREATE", "DELETE"]}}]},
                "mutate": {"patchStrategicMerge": {"metadata": {"labels": {"a": "b"}}}},
            }
        ]
    },
}


def judge(path: str, *policies: JSONObject, cluster: MemoryWorld | None = None, **request: Any) -> AdmissionOutcome:
    """Return the outcome of a request on a Pod, or of the given `request`."""
    cluster = cluster or MemoryWorld()
    if policies:
        cluster.policies = Policies(compile_policies(policies))
    route = read_route(path)
    assert route is not None
    admission_request = {
        "uid": "1",
        "operation": "CREATE",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "name": "web",
        "namespace": "team",
        "userInfo": {"username": "alice"},
        "object": POD,
        "oldObject": None,
        **request,
    }
    return answer(AdmissionRequest("admission.k8s.io/v1", "1", admission_request), route, cluster, NO_HOST)


def test_a_deletion_is_evaluated_with_the_deleted_object() -> None:
    """`oldObject` is the only object of a deletion."""
    policy = denying("Pod", "DELETE")
    outcome = judge("/validate/fail", policy, operation="DELETE", object=None, oldObject=POD)
    assert "resource Pod/team/web was blocked" in outcome.answer.message
    assert judge("/validate/fail", policy).answer.allowed


def test_a_deletion_is_not_changed() -> None:
    """Kyverno evaluates no legacy mutate or image rules on DELETE; CEL policies decide by their own constraints."""
    outcome = judge("/mutate/fail", MUTATING, operation="DELETE", object=None, oldObject=POD)
    assert (True, (), None) == (outcome.answer.allowed, tuple(outcome.answer.patch), outcome.review)
    assert judge("/mutate/fail", MUTATING).answer.patch


def test_a_connection_is_evaluated_with_the_resource_that_it_opens() -> None:
    """The object has another kind, with the options of the connection."""
    options = {"apiVersion": "v1", "kind": "PodExecOptions", "command": ["sh"]}
    exec_of: dict[str, Any] = {
        "operation": "CONNECT",
        "kind": {"group": "", "version": "v1", "kind": "PodExecOptions"},
        "subResource": "exec",
        "object": options,
    }
    assert not judge("/validate/fail", denying("Pod/exec"), **exec_of).answer.allowed
    assert judge("/validate/fail", denying("Pod"), **exec_of).answer.allowed
    assert judge("/validate/fail", denying("Pod/attach"), **exec_of).answer.allowed


def test_a_subresource_is_of_the_kind_of_its_resource() -> None:
    """A `Scale` of a Deployment is `Deployment/scale`; an unknown resource is an error."""
    scale: dict[str, Any] = {
        "operation": "UPDATE",
        "kind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
        "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
        "subResource": "scale",
        "object": {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {"name": "web"},
            "spec": {"replicas": 9},
        },
    }
    many = {"all": [{"key": "{{ request.object.spec.replicas }}", "operator": "GreaterThan", "value": 3}]}
    assert not judge("/validate/fail", denying("Deployment/scale", conditions=many), **scale).answer.allowed
    scale["object"]["spec"]["replicas"] = 3
    assert judge("/validate/fail", denying("Deployment/scale", conditions=many), **scale).answer.allowed
    scale["resource"] = {"group": "x.io", "version": "v1", "resource": "widgets"}
    with pytest.raises(StatusError, match="of subresource `scale` is not known"):
        judge("/validate/fail", denying("*/*"), **scale)


def test_a_dry_run_is_judged_like_any_request() -> None:
    """Rules can read `request.dryRun`."""
    assert not judge("/validate/fail", denying("Pod"), dryRun=True).answer.allowed
    is_dry = {"all": [{"key": "{{ request.dryRun }}", "operator": "Equals", "value": True}]}
    policy = denying("Pod", conditions=is_dry)
    assert (False, True) == tuple(judge("/validate/fail", policy, dryRun=dry).answer.allowed for dry in (True, False))


PROTECTED = "A kyverno managed resource can only be modified by kyverno"
EXCLUDED = Configuration.read({"excludeUsernames": "alice", "resourceFilters": "[Pod,*,*]"})


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ({"object": MANAGED}, PROTECTED),
        ({"operation": "UPDATE", "object": POD, "oldObject": MANAGED}, PROTECTED),
        ({"operation": "DELETE", "object": None, "oldObject": MANAGED}, PROTECTED),
        ({}, ""),
        ({"object": MANAGED, "userInfo": {"username": "system:serviceaccount:kyverno:any"}}, ""),
        ({"object": MANAGED, "userInfo": {"username": "system:serviceaccount:kyverno-2:any"}}, PROTECTED),
    ],
)
def test_protection_comes_before_filters_and_excluded_users(request_: dict[str, Any], expected: str) -> None:
    """An excluded user or a resource filter does not bypass it."""
    cluster = MemoryWorld(protects_managed=True, configuration=EXCLUDED)
    assert expected == judge("/validate/fail", denying("Pod"), cluster=cluster, **request_).answer.message


@pytest.mark.parametrize(
    ("group", "kind", "resource", "is_seen"),
    [
        ("kyverno.io", "UpdateRequest", "updaterequests", False),
        ("kyverno.io", "AdmissionReport", "admissionreports", False),
        ("x.io", "UpdateRequest", "updaterequests", True),
        ("reports.kyverno.io", "EphemeralReport", "ephemeralreports", True),
    ],
)
def test_own_objects_of_the_controllers_are_not_evaluated(group: str, kind: str, resource: str, is_seen: bool) -> None:
    """They are recognized by group and kind, because anyone can choose a name."""
    body = {"apiVersion": f"{group}/v2", "kind": kind, "metadata": {"name": "a", "namespace": "team"}}
    outcome = judge(
        "/validate/fail",
        denying("*"),
        kind={"group": group, "version": "v2", "kind": kind},
        resource={"group": group, "version": "v2", "resource": resource},
        object=body,
    )
    assert is_seen is (outcome.review is not None)
    assert is_seen is not outcome.answer.allowed
