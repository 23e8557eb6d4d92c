"""Kubernetes' admission policies and their bindings decode as written, without the API server's defaults."""

import pytest

from pyverno.policy.cel.admissionpolicy import (
    MutatingAdmissionPolicy,
    MutatingAdmissionPolicyBinding,
    ParameterNotFoundAction,
    ParamKind,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
)
from pyverno.policy.clusterpolicy import FailurePolicy
from pyverno.policy.decode import decode
from tests.unit.policy.documents import document, problems

VERSIONS = ("v1", "v1beta1", "v1alpha1")


def written(kind, body, *, version="v1"):
    return f"apiVersion: admissionregistration.k8s.io/{version}\nkind: {kind}\nmetadata: {{name: p}}\nspec:\n{body}"


def decoded(kind, body, *, version="v1"):
    result = decode(document(written(kind, body, version=version)))
    assert result.errors == ()
    return result.policy


@pytest.mark.parametrize("version", VERSIONS)
def test_a_validating_policy_decodes_in_every_version(version):
    """Parameters, conditions, variables, validations and audit annotations are decoded."""
    policy = decoded(
        "ValidatingAdmissionPolicy",
        "  failurePolicy: Ignore\n"
        "  paramKind: {apiVersion: rules.example.com/v1, kind: ReplicaLimit}\n"
        "  matchConstraints:\n"
        "    matchPolicy: Equivalent\n"
        "    resourceRules:\n"
        "      - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments], scope: '*'}\n"
        "  matchConditions: [{name: a, expression: c}]\n"
        "  variables: [{name: v, expression: d}]\n"
        "  validations: [{expression: e, messageExpression: m, reason: Invalid}]\n"
        "  auditAnnotations: [{key: k, valueExpression: w}]\n",
        version=version,
    )
    assert isinstance(policy, ValidatingAdmissionPolicy)
    assert policy.spec.failure_policy is FailurePolicy.IGNORE
    assert policy.spec.param_kind == ParamKind("rules.example.com/v1", "ReplicaLimit", ("spec", "paramKind"))
    assert [each.text for each in policy.spec.expressions()] == ["c", "d", "e", "m", "w"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_mutating_policy_decodes_in_every_version(version):
    """Mutations keep the path of their expression."""
    policy = decoded(
        "MutatingAdmissionPolicy",
        "  reinvocationPolicy: Never\n  mutations: [{patchType: JSONPatch, jsonPatch: {expression: j}}]\n",
        version=version,
    )
    assert isinstance(policy, MutatingAdmissionPolicy)
    assert [each.path for each in policy.spec.expressions()] == [("spec", "mutations", 0, "jsonPatch", "expression")]


def test_nothing_is_defaulted_but_the_failure_policy():
    """Absent constraints, parameters and conditions stay absent."""
    spec = decoded("ValidatingAdmissionPolicy", "  validations: []\n").spec
    assert (spec.failure_policy, spec.match_constraints, spec.param_kind) == (FailurePolicy.FAIL, None, None)


def test_a_binding_names_policy_parameters_and_actions():
    """Parameters are found by name or by selector; an absent action for missing ones stays absent."""
    by_name = decoded(
        "ValidatingAdmissionPolicyBinding",
        "  policyName: p\n  validationActions: [Deny, Audit]\n"
        "  paramRef: {name: limit, namespace: team, parameterNotFoundAction: Deny}\n"
        "  matchResources: {namespaceSelector: {matchLabels: {environment: test}}}\n",
    )
    assert isinstance(by_name, ValidatingAdmissionPolicyBinding)
    reference = by_name.spec.param_ref
    assert (reference.name, reference.namespace, reference.selector) == ("limit", "team", None)
    assert reference.parameter_not_found_action is ParameterNotFoundAction.DENY
    assert by_name.spec.match_resources.namespace_selector == {"matchLabels": {"environment": "test"}}
    by_selector = decoded("MutatingAdmissionPolicyBinding", "  policyName: p\n  paramRef: {selector: {}}\n")
    assert isinstance(by_selector, MutatingAdmissionPolicyBinding)
    assert by_selector.spec.param_ref.selector == {}
    assert by_selector.spec.param_ref.parameter_not_found_action is None


@pytest.mark.parametrize(
    ("kind", "body", "code", "path"),
    [
        ("ValidatingAdmissionPolicyBinding", "  validationActions: [Deny]\n", "missing-field", "spec"),
        (
            "MutatingAdmissionPolicyBinding",
            "  policyName: p\n  validationActions: [Deny]\n",
            "unknown-field",
            "spec.validationActions",
        ),
        (
            "ValidatingAdmissionPolicyBinding",
            "  policyName: p\n  paramRef: {parameterNotFoundAction: deny}\n",
            "unknown-value",
            "spec.paramRef.parameterNotFoundAction",
        ),
        ("ValidatingAdmissionPolicy", "  mutations: []\n", "unknown-field", "spec.mutations"),
        ("MutatingAdmissionPolicy", "  validations: []\n", "unknown-field", "spec.validations"),
    ],
)
def test_what_the_schema_refuses_is_located(kind, body, code, path):
    """Fields of the other kind, unknown values and missing fields are errors at their places."""
    assert [(code, path)] == [found[:2] for found in problems(written(kind, body))]
