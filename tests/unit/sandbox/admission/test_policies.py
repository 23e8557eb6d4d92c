"""ValidatingAdmissionPolicy and MutatingAdmissionPolicy in process."""

from __future__ import annotations

import asyncio
import json

import pytest

from pyverno.engine.request import Operation, User
from pyverno.kube.status import StatusError
from pyverno.sandbox.attributes import Notes
from pyverno.sandbox.authorization.rbac import RbacAuthorizer
from tests.unit.sandbox.admission.stage import admission, admitted, cluster, config_map, in_store, namespace, request

GROUP = "admissionregistration.k8s.io"
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}


def policy(*validations, name="p", **spec):
    body = {"matchConstraints": {"resourceRules": [RULE]}, "validations": list(validations), **spec}
    return {"apiVersion": f"{GROUP}/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": body}


def binding(name="b", policy="p", actions=("Deny",), **spec):
    body = {"policyName": policy, "validationActions": list(actions), **spec}
    kind = "ValidatingAdmissionPolicyBinding"
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": name}, "spec": body}


def mutation(*expressions, name="m", **spec):
    listed = [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": text}} for text in expressions]
    body = {"matchConstraints": {"resourceRules": [RULE]}, "mutations": listed, **spec}
    return {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": body,
    }


def mutation_binding(name="mb", policy="m"):
    kind = "MutatingAdmissionPolicyBinding"
    return {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"policyName": policy},
    }


def sent(body, *bodies, notes=None, **options):
    _, view = cluster(*bodies)
    return asyncio.run(admitted(admission(view), request(body, **options), notes))


def refusal(body, *bodies, **options) -> StatusError:
    with pytest.raises(StatusError) as refused:
        sent(body, *bodies, **options)
    return refused.value


@pytest.mark.parametrize(
    ("validation", "code", "reason", "message"),
    [
        ({"expression": "false", "message": "no"}, 422, "Invalid", "no"),
        ({"expression": "false", "message": "no", "reason": "Forbidden"}, 403, "Forbidden", "no"),
        (
            {"expression": "object.metadata.name == 'x'"},
            422,
            "Invalid",
            "failed expression: object.metadata.name == 'x'",
        ),
        ({"expression": "false", "messageExpression": "'not ' + object.metadata.name"}, 422, "Invalid", "not c"),
        (
            {"expression": "object.data.x == '1'"},
            422,
            "Invalid",
            "expression 'object.data.x == '1'' resulted in error: no such key: data",
        ),
    ],
)
def test_denials_have_the_words_of_the_api_server(validation, code, reason, message):
    """Policy, binding, text, reason and code are those of a cluster."""
    error = refusal(config_map(), policy(validation), binding())
    text = f"ValidatingAdmissionPolicy 'p' with binding 'b' denied request: {message}"
    assert (code, reason, f'configmaps "c" is forbidden: {text}') == (error.status, error.reason, error.message)
    assert [{"message": text}] == error.to_json()["details"]["causes"]


def test_a_policy_needs_a_binding():
    """A policy that nothing binds says nothing, nor does a binding of a policy that is not there."""
    body = config_map()
    assert body == sent(body, policy({"expression": "false"}), binding(policy="other"))


def test_bindings_narrow_policies():
    """A binding for other namespaces leaves the request alone."""
    selector = {"namespaceSelector": {"matchLabels": {"team": "a"}}}
    bodies = (policy({"expression": "false", "message": "no"}), binding(matchResources=selector))
    assert config_map() == sent(config_map(), *bodies)
    assert "no" in refusal(config_map(), *bodies, namespace("x", team="a")).message


def test_warn_and_audit_let_requests_pass():
    """The client is warned and the failure is recorded."""
    notes = Notes()
    sent(
        config_map(),
        policy({"expression": "true"}, {"expression": "false", "message": "no"}),
        binding(actions=("Warn", "Audit")),
        notes=notes,
    )
    assert ["Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': no"] == notes.warnings
    (recorded,) = json.loads(notes.annotations["validation.policy.admission.k8s.io/validation_failure"])
    assert ("no", "p", "b", 1, ["Warn", "Audit"]) == tuple(
        recorded[key] for key in ("message", "policy", "binding", "expressionIndex", "validationActions")
    )


def test_errors_follow_the_failure_policy():
    """With Ignore an expression that fails denies nothing."""
    assert config_map() == sent(
        config_map(), policy({"expression": "object.data.x == '1'"}, failurePolicy="Ignore"), binding()
    )


def test_parameters_are_read_from_the_store():
    """A named parameter is an object of the cluster; without it the binding says what happens."""
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    bodies = (
        policy({"expression": "object.metadata.name == params.data.name"}, paramKind=kind),
        binding(paramRef={"name": "settings", "namespace": "x", "parameterNotFoundAction": "Deny"}),
    )
    assert config_map() == sent(config_map(), *bodies, config_map("settings", data={"name": "c"}))
    assert (
        "denied request: failed expression: "
        in refusal(config_map(), *bodies, config_map("settings", data={"name": "d"})).message
    )
    assert "no params found for policy binding with `Deny`" in refusal(config_map(), *bodies).message


def test_expressions_may_ask_the_authorizer():
    """The answer is that of the server's own authorizer, about the user of the request or a service account."""
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "r"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    }
    bound = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "r"},
        "roleRef": {"kind": "ClusterRole", "name": "r"},
        "subjects": [{"kind": "User", "name": "jane"}, {"kind": "ServiceAccount", "name": "sa", "namespace": "x"}],
    }
    check = "authorizer.group('').resource('pods').namespace('x').check('get').allowed()"
    account = "authorizer.serviceAccount('x', 'sa').group('').resource('pods').check('get').allowed()"
    _, view = cluster(policy({"expression": f"{check} && {account}"}), binding(), role, bound)
    chain = admission(view, authorizer=RbacAuthorizer(view))
    asyncio.run(admitted(chain, request(config_map())))
    with pytest.raises(StatusError, match="denied request"):
        asyncio.run(admitted(chain, request(config_map(), user=User("joe"))))


def test_a_policy_that_does_not_compile_denies():
    """It is kept, and its failure policy says what its errors mean."""
    broken = policy({"expression": "object.metadata.nmae +"})
    assert 422 == refusal(config_map(), broken, binding()).status
    assert config_map() == sent(config_map(), policy({"expression": "1 +"}, failurePolicy="Ignore"), binding())


def test_mutating_policies_change_the_object():
    """Mutations are applied in order, each to what the one before left."""
    bodies = (
        mutation('Object{data: {"a": "1"}}', 'Object{data: {"b": object.data.a}}'),
        mutation_binding(),
    )
    assert {"a": "1", "b": "1"} == sent(config_map(), *bodies)["data"]


def test_validating_policies_see_what_mutating_ones_left():
    """Mutation comes first."""
    bodies = (
        mutation('Object{data: {"a": "1"}}'),
        mutation_binding(),
        policy({"expression": "object.data.a == '1'"}),
        binding(),
    )
    assert {"a": "1"} == sent(config_map(), *bodies)["data"]


def test_a_mutation_that_fails_refuses_the_request():
    """The status is that of a cluster: code 403, reason Invalid."""
    error = refusal(config_map(), mutation('Object{data: {"a": object.nope}}'), mutation_binding())
    assert (403, "Invalid") == (error.status, error.reason)
    why = "expression 'Object{data: {\"a\": object.nope}}' resulted in error: no such key: nope"
    assert f"policy 'm' with binding 'mb' denied request: {why}" == error.message
    ignoring = mutation('Object{data: {"a": object.nope}}', failurePolicy="Ignore")
    assert config_map() == sent(config_map(), ignoring, mutation_binding())


def test_policies_are_not_about_policies():
    """No policy can lock out those who would repair it."""
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
    everything = policy({"expression": "false"}, matchConstraints={"resourceRules": [rule]})
    body = policy({"expression": "true"}, name="other")
    assert body == sent(body, everything, binding())


def test_changes_of_policies_count_at_once():
    """A policy that is repaired is compiled anew."""
    store, view = cluster(policy({"expression": "false"}), binding())
    chain = admission(view)
    with pytest.raises(StatusError):
        asyncio.run(admitted(chain, request(config_map())))
    in_store(store, policy({"expression": "true"}))
    assert config_map() == asyncio.run(admitted(chain, request(config_map())))


def test_deletions_are_judged_by_the_old_object():
    """On DELETE `object` is null."""
    rule = {**RULE, "operations": ["DELETE"]}
    bodies = (
        policy(
            {"expression": "object == null && oldObject.metadata.name != 'c'", "message": "kept"},
            matchConstraints={"resourceRules": [rule]},
        ),
        binding(),
    )
    _, view = cluster(*bodies)
    chain = admission(view)
    with pytest.raises(StatusError, match="kept"):
        asyncio.run(chain.validate(request(None, old=config_map(), operation=Operation.DELETE), Notes()))
    asyncio.run(chain.validate(request(None, old=config_map("d"), operation=Operation.DELETE), Notes()))
