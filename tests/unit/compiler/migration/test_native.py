"""Converted policies as Kubernetes' own kinds: what the API server can evaluate, with bindings."""

from __future__ import annotations

import pytest

from pyverno.compiler.migration.native import convert_native
from pyverno.compiler.migration.outcome import UnconvertibleError
from pyverno.kube.json import JSONObject
from tests.support.migrationcases import convert, judge, policy_of

MERGE: JSONObject = {"patchStrategicMerge": {"metadata": {"labels": {"+(team)": "none"}}}}
EACH: JSONObject = {
    "foreach": [
        {
            "list": "request.object.spec.containers",
            "patchStrategicMerge": {
                "spec": {"containers": [{"name": "{{ element.name }}", "imagePullPolicy": "Always"}]}
            },
        }
    ]
}


def validating(pattern: JSONObject, action: str = "Enforce") -> JSONObject:
    """Return a rule for Pods and their controllers."""
    policy = policy_of({"kind": "Pod"})
    policy["metadata"].pop("annotations")
    rule = policy["spec"]["rules"][0]
    rule["match"]["any"][0]["resources"]["kinds"] = ["Pod"]
    rule["validate"] = {"failureAction": action, "allowExistingViolations": False, "message": "m", "pattern": pattern}
    return policy


@pytest.mark.parametrize("mutate", [MERGE, EACH], ids=["merge", "foreach"])
def test_a_mutation_is_the_same_in_the_api_server(mutate: JSONObject) -> None:
    """The old rule and the admission policy leave the same objects."""
    policy = policy_of({"kind": "Pod", "mutate": mutate})
    native = [each for document in convert(policy)[0] for each in convert_native(document).documents]
    assert ["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"] == [each["kind"] for each in native]
    assert ("Fail", "Never") == (native[0]["spec"]["failurePolicy"], native[0]["spec"]["reinvocationPolicy"])
    found = judge([policy], native, count=60, kinds=["Pod"])
    assert None is found.counterexample
    assert found.second["changed"]


def test_a_validation_is_the_same_in_the_api_server() -> None:
    """For Pods and all their controllers, which the policy names."""
    policy = validating({"spec": {"=(hostNetwork)": False}})
    native = [each for document in convert(policy)[0] for each in convert_native(document).documents]
    assert ["Deny"] == native[1]["spec"]["validationActions"]
    found = judge([policy], native, count=90)
    assert None is found.counterexample
    assert found.second["deny"]


def test_a_binding_keeps_the_action_and_the_namespace() -> None:
    """Audit stays Audit; a policy of a namespace is bound to it."""
    ((document,), _, _) = convert(validating({"spec": {"=(hostNetwork)": False}}, "Audit"))
    document["metadata"]["namespace"] = "team-a"
    policy, binding = convert_native({**document, "kind": "NamespacedValidatingPolicy"}).documents
    assert "namespace" not in policy["metadata"]
    selector = {"matchLabels": {"kubernetes.io/metadata.name": "team-a"}}
    assert {"policyName": "p", "validationActions": ["Audit"], "matchResources": {"namespaceSelector": selector}} == (
        binding["spec"]
    )


RULES = {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]}
OFF = {"podControllers": {"controllers": []}}


@pytest.mark.parametrize(
    ("kind", "spec", "code"),
    [
        ("GeneratingPolicy", {}, "native-kind"),
        ("MutatingPolicy", {"targetMatchConstraints": RULES}, "native-field"),
        ("ValidatingPolicy", {"matchConstraints": RULES}, "native-autogen"),
        ("MutatingPolicy", {"evaluation": {"useServerSideApply": True}}, "native-evaluation"),
        (
            "ValidatingPolicy",
            {"matchConditions": [{"name": f"c{number}", "expression": "true"} for number in range(65)]},
            "native-conditions",
        ),
        (
            "ValidatingPolicy",
            {
                "matchConstraints": RULES,
                "autogen": OFF,
                "validations": [{"expression": "resource.Get('v1', 'pods', 'a', 'b') != null"}],
            },
            "native-expression",
        ),
    ],
    ids=["kind", "targets", "autogen", "apply", "conditions", "library"],
)
def test_what_the_api_server_cannot_evaluate_is_refused(kind: str, spec: JSONObject, code: str) -> None:
    """With the code of the reason and a next step."""
    document = {"kind": kind, "metadata": {"name": "p"}, "spec": spec}
    with pytest.raises(UnconvertibleError) as raised:
        convert_native(document)
    assert (code, True) == (raised.value.refused.code, bool(raised.value.refused.advice))
