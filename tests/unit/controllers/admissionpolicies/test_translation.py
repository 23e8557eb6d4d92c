"""Translation into admission policies of Kubernetes: what is copied, and which policies cannot be."""

from __future__ import annotations

from typing import Any

import pytest

from pyverno.compiler.compile import Compiled, compile_document
from pyverno.controllers.admissionpolicies.eligibility import Convertible, obstacle
from pyverno.controllers.admissionpolicies.translation import admission_policies, admission_policy_name
from pyverno.errors import UsageError
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import BUILTIN_KINDS
from pyverno.kube.yaml.documents import Document
from pyverno.policy.cel.exception import CelException
from pyverno.policy.exception import PolicyException

PODS: JSONObject = {"resources": {"kinds": ["Pod"]}}
CONSTRAINTS: JSONObject = {
    "resourceRules": [
        {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]}
    ]
}


def compiled(body: JSONObject) -> Compiled:
    """Compile a document that must be valid."""
    found = compile_document(Document(body))
    assert () == found.errors
    return found


def rule(
    *match: JSONObject, exclude: JSONObject | None = None, spec: JSONObject | None = None, **cel: Any
) -> Convertible:
    """Return a ClusterPolicy with one CEL rule that requests an admission policy."""
    written: JSONObject = {
        "name": "rule",
        "match": {"any": list(match)},
        "validate": {"cel": {"generate": True, "expressions": [{"expression": "true"}], **cel}},
    }
    if exclude is not None:
        written["exclude"] = {"any": [exclude]}
    body = {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "p", "uid": "1"},
        "spec": {"background": False, "rules": [written], **(spec or {})},
    }
    found = compiled(body).written
    assert isinstance(found, Convertible)
    return found


def cel(kind: str, **spec: Any) -> Convertible:
    """Return a CEL policy that requests an admission policy."""
    word = "mutating" if kind == "MutatingPolicy" else "validating"
    body = {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": kind,
        "metadata": {"name": "p", "uid": "1", "labels": {"reports.kyverno.io/disabled": ""}},
        "spec": {"matchConstraints": CONSTRAINTS, "autogen": {f"{word}AdmissionPolicy": {"enabled": True}}, **spec},
    }
    found = compiled(body).written
    assert isinstance(found, Convertible)
    return found


def cel_exception(name: str = "e", kind: str = "ValidatingPolicy", **spec: Any) -> CelException:
    """Return an exception from the policy `p`."""
    body = {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "PolicyException",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"policyRefs": [{"name": "p", "kind": kind}], **spec},
    }
    found = compiled(body).written
    assert isinstance(found, CelException)
    return found


def exception(match: JSONObject, **spec: Any) -> PolicyException:
    """Return an exception from the rule of the policy `p`."""
    body = {
        "apiVersion": "kyverno.io/v2",
        "kind": "PolicyException",
        "metadata": {"name": "e", "namespace": "default"},
        "spec": {"exceptions": [{"policyName": "p", "ruleNames": ["rule"]}], "match": {"any": [match]}, **spec},
    }
    found = compiled(body).written
    assert isinstance(found, PolicyException)
    return found


def test_a_rule_becomes_a_policy_and_a_binding() -> None:
    """Names, owner and labels equal Kyverno's; fields that the rule does not set are absent from the copy."""
    policy, binding = admission_policies(rule(PODS), kinds=BUILTIN_KINDS)
    metadata = {
        "labels": {"app.kubernetes.io/managed-by": "kyverno"},
        "ownerReferences": [{"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "name": "p", "uid": "1"}],
    }
    pods = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE", "CONNECT", "DELETE"],
        "resources": ["pods", "pods/ephemeralcontainers"],
    }
    head = {"apiVersion": "admissionregistration.k8s.io/v1"}
    assert {
        **head,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "cpol-p", **metadata},
        "spec": {"matchConstraints": {"resourceRules": [pods]}, "validations": [{"expression": "true"}]},
    } == policy
    assert {
        **head,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "cpol-p-binding", **metadata},
        "spec": {"policyName": "cpol-p", "validationActions": ["Audit", "Warn"]},
    } == binding


def test_kinds_of_one_group_share_a_rule_where_their_operations_are_equal() -> None:
    """The operations of one match block must not apply to the kinds of another."""
    created = {"resources": {"kinds": ["Deployment"], "operations": ["CREATE"]}}
    both = {"resources": {"kinds": ["StatefulSet", "DaemonSet"], "operations": ["UPDATE"]}}
    policy, _ = admission_policies(rule(created, both), kinds=BUILTIN_KINDS)
    rules = policy["spec"]["matchConstraints"]["resourceRules"]
    assert [["deployments"], ["daemonsets", "statefulsets"]] == [each["resources"] for each in rules]


def test_excluded_namespaces_are_kept_out_by_their_labels() -> None:
    """Kyverno's own rule excludes the Namespace objects only, not the objects in them."""
    policy, _ = admission_policies(rule(PODS, exclude={"resources": {"namespaces": ["a"]}}), kinds=BUILTIN_KINDS)
    constraints = policy["spec"]["matchConstraints"]
    assert ["namespaces"] == constraints["excludeResourceRules"][0]["resources"]
    label = "kubernetes.io/metadata.name"
    expected = {"matchExpressions": [{"key": label, "operator": "NotIn", "values": ["a"]}]}
    assert expected == constraints["namespaceSelector"]


def test_a_kind_of_several_resources_is_refused() -> None:
    """Two API groups have the kind Event, so the kind alone is ambiguous."""
    with pytest.raises(UsageError, match="no unique match for kind Event"):
        admission_policies(rule({"resources": {"kinds": ["Event"]}}), kinds=BUILTIN_KINDS)


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (rule(PODS, generate=False), "validate.cel.generate is not set to true"),
        (rule({**PODS, "clusterRoles": ["admin"]}), "Roles / ClusterRoles / Subjects in `any/all` is not applicable"),
        (rule({"resources": {"kinds": ["Pod"], "names": ["a*"]}}), "wildcards in resource name is not applicable"),
        (
            rule(PODS, exclude={"resources": {"kinds": ["Pod"], "namespaces": ["a"]}}),
            "excluding a resource within a namespace is not applicable",
        ),
        (
            rule(PODS, {"resources": {"kinds": ["Service"], "namespaces": ["a"]}}),
            "Namespaces across multiple resources in the match block are not applicable",
        ),
        (cel("ValidatingPolicy", validations=[{"expression": "true"}], autogen={}), "not enabled"),
        (
            cel("ValidatingPolicy", validations=[{"expression": "true"}], evaluation={"mode": "JSON"}),
            "the policy is not about admission",
        ),
    ],
)
def test_what_an_admission_policy_cannot_express_stays_with_the_webhook(policy: Convertible, reason: str) -> None:
    """The status gives the reason, in Kyverno's words where Kyverno has them."""
    assert f"skip generating ValidatingAdmissionPolicy: {reason}." == obstacle(policy)


def test_an_exception_becomes_one_negated_condition() -> None:
    """An object is exempt when all conditions hold, so they are negated together; names stay distinct."""
    conditions = [{"name": "a", "expression": "1 < 2"}, {"name": "b", "expression": "2 < 3"}]
    exceptions = [
        cel_exception("one", matchConditions=conditions),
        cel_exception("two", matchConditions=conditions[:1]),
    ]
    found, _ = admission_policies(
        cel("ValidatingPolicy", validations=[{"expression": "true"}]), exceptions, kinds=BUILTIN_KINDS
    )
    expected = [{"name": "a", "expression": "!((1 < 2) && (2 < 3))"}, {"name": "a-2", "expression": "!(1 < 2)"}]
    assert expected == found["spec"]["matchConditions"]
    assert "true" == found["metadata"]["labels"]["reports.kyverno.io/disabled"]


def test_an_exception_without_conditions_exempts_everything() -> None:
    """Without conditions it matches every object, so the policy has no copy while the exception exists."""
    policy = cel("ValidatingPolicy", validations=[{"expression": "true"}])
    found, _ = admission_policies(policy, [cel_exception()], kinds=BUILTIN_KINDS)
    assert [{"name": "exception-e", "expression": "false"}] == found["spec"]["matchConditions"]


def test_lists_of_an_exception_are_data() -> None:
    """A quote in an image name does not end the string literal in the expression."""
    policy = cel("ValidatingPolicy", validations=[{"expression": "'a' in exceptions.allowedImages"}])
    found, _ = admission_policies(policy, [cel_exception(images=["a' + 'b", 'say "x"'])], kinds=BUILTIN_KINDS)
    assert [{"name": "allowedImages", "expression": "['a\\' + \\'b', 'say \"x\"']"}] == found["spec"]["variables"]
    assert [{"expression": "'a' in variables.allowedImages"}] == found["spec"]["validations"]


@pytest.mark.parametrize(
    "spec",
    [
        {"images": ["a"], "matchConditions": [{"name": "a", "expression": "true"}]},
        {"expiresAt": "2030-01-01T00:00:00Z"},
    ],
)
def test_an_exception_that_cannot_be_a_condition_keeps_the_policy_with_the_webhook(spec: JSONObject) -> None:
    """Examples are lists together with conditions, and exceptions with an expiry."""
    policy = cel("ValidatingPolicy", validations=[{"expression": "true"}])
    assert obstacle(policy, [cel_exception(**spec)]).startswith("skip generating ValidatingAdmissionPolicy: ")


def test_an_exception_from_rules_excludes_resources() -> None:
    """An exception with conditions has no counterpart in an admission policy."""
    policy = rule(PODS)
    exempt = exception({"resources": {"kinds": ["Pod"], "names": ["a"]}})
    found, _ = admission_policies(policy, [exempt], kinds=BUILTIN_KINDS)
    assert ["a"] == found["spec"]["matchConstraints"]["excludeResourceRules"][0]["resourceNames"]
    conditions = {"all": [{"key": "a", "operator": "Equals", "value": "a"}]}
    assert "Conditions in PolicyException" in obstacle(policy, [exception(PODS, conditions=conditions)])


def test_a_mutating_policy_keeps_its_failure_policy() -> None:
    """Negated exceptions precede its own conditions; a policy with server-side apply has no copy."""
    mutations = [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'remove', path: '/a'}]"}}]
    own = [{"name": "own", "expression": "true"}]
    policy = cel("MutatingPolicy", mutations=mutations, failurePolicy="Ignore", matchConditions=own)
    exempt = cel_exception(kind="MutatingPolicy", matchConditions=[{"name": "a", "expression": "1 < 2"}])
    found, binding = admission_policies(policy, [exempt], kinds=BUILTIN_KINDS, version="v1beta1")
    assert "mpol-p" == admission_policy_name(policy)
    assert {
        "failurePolicy": "Ignore",
        "reinvocationPolicy": "Never",
        "matchConstraints": CONSTRAINTS,
        "matchConditions": [{"name": "a", "expression": "!(1 < 2)"}, *own],
        "mutations": mutations,
    } == found["spec"]
    assert {"policyName": "mpol-p"} == binding["spec"]
    applied = cel("MutatingPolicy", mutations=mutations, evaluation={"useServerSideApply": True})
    assert "useServerSideApply is enabled" in obstacle(applied)
