"""UpdateRequests: they survive writing and reading, and labels find them."""

from __future__ import annotations

import pytest

from pyverno.kube.yaml.documents import Document
from pyverno.policy.schema import Cursor, Problems
from pyverno.policy.updaterequest import (
    UPDATE_REQUEST,
    AdmissionContext,
    RequestType,
    RuleContext,
    Trigger,
    UpdateRequest,
    UpdateRequestSpec,
    labels_of,
)

POD = Trigger("v1", "Pod", "shop", "web", "7")


def read(body):
    problems = Problems(Document(body, ""))
    found = UPDATE_REQUEST(body, Cursor(problems))
    assert [] == problems.errors
    assert isinstance(found, UpdateRequest)
    return found.spec


@pytest.mark.parametrize(
    "spec",
    [
        UpdateRequestSpec(RequestType.MUTATE, "team/patch", rule="touch", resource=POD),
        UpdateRequestSpec(RequestType.CEL_MUTATE, "patch"),
        UpdateRequestSpec(
            RequestType.GENERATE,
            "copy",
            rule_context=(RuleContext("a", POD), RuleContext("b", POD, delete_downstream=True)),
            context=AdmissionContext({"username": "alice"}, ("ns:r",), ("c",), {"uid": "1", "object": {}}, "CREATE"),
        ),
        UpdateRequestSpec(
            RequestType.CEL_GENERATE,
            "team/make",
            rule_context=(RuleContext("team/make", POD, synchronize=True, cache_restore=True),),
        ),
    ],
)
def test_what_is_written_is_read_again(spec):
    """Every field that the background controller needs survives the round trip."""
    assert spec == read(spec.to_json("kyverno"))


def test_fields_that_kyverno_always_writes_are_there():
    """Kyverno writes an empty rule, resource and context, so pyverno does not omit them."""
    body = UpdateRequestSpec(RequestType.CEL_MUTATE, "patch").to_json("kyverno")
    assert {
        "requestType": "cel-mutate",
        "policy": "patch",
        "rule": "",
        "deleteDownstream": False,
        "resource": {},
        "context": {"userInfo": {"userInfo": {}}},
    } == body["spec"]


def test_work_of_a_rule_that_changes_objects_is_found_by_policy_and_trigger():
    """In label values the API version has no slash and a name at most 63 characters."""
    prefix = "mutate.updaterequest.kyverno.io/"
    trigger = Trigger("apps/v1", "Deployment", "shop", "x" * 62 + ".y")
    assert {
        f"{prefix}policy-name": "patch",
        f"{prefix}trigger-name": "x" * 62,
        f"{prefix}trigger-namespace": "shop",
        f"{prefix}trigger-kind": "Deployment",
        f"{prefix}trigger-apiversion": "apps-v1",
    } == labels_of(UpdateRequestSpec(RequestType.MUTATE, "team/patch", resource=trigger))


def test_a_name_that_no_label_can_hold_is_written_as_one_that_it_can():
    """Names of roles may contain colons, which the API server rejects in label values."""
    trigger = Trigger("rbac.authorization.k8s.io/v1", "ClusterRole", "", "system:node:")
    labels = labels_of(UpdateRequestSpec(RequestType.MUTATE, "patch", resource=trigger))
    assert "system-node" == labels["mutate.updaterequest.kyverno.io/trigger-name"]
