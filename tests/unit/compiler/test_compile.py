"""`compile_document`: checks of one document beyond its schema."""

from __future__ import annotations

from pyverno.compiler import compile_document
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import Document

CALLS: JSONObject = {
    "apiVersion": "policies.kyverno.io/v1",
    "kind": "NamespacedValidatingPolicy",
    "metadata": {"name": "calls", "namespace": "team"},
    "spec": {
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
            ]
        },
        "validations": [{"expression": "http.Get('http://example.com').statusCode == 200"}],
    },
}


def test_a_policy_of_a_namespace_may_use_http_only_where_that_is_opened() -> None:
    """The flag takes back this one error and no other."""
    text = "http.* is not allowed in namespaced policies; set --allowHTTPInNamespacedPolicies to enable"
    document = Document(CALLS, "")
    assert [text] == [error.message for error in compile_document(document).errors]
    assert () == compile_document(document, http_in_namespaces=True).errors
    broken = Document({**CALLS, "spec": {**CALLS["spec"], "validations": [{"expression": "nothing"}]}}, "")
    messages = [error.message for error in compile_document(broken).errors]
    assert 1 == len(messages)
    assert messages == [error.message for error in compile_document(broken, http_in_namespaces=True).errors]


def test_a_bad_reference_is_one_error() -> None:
    """The rule, its pattern and its copies for controllers resolve the same `$(…)`."""
    pattern = {"spec": {"hostname": "$(./../../nothing/here)"}}
    policy: JSONObject = {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "references"},
        "spec": {
            "rules": [
                {
                    "name": name,
                    "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
                    "validate": {"message": "m", "pattern": pattern},
                }
                for name in ("one", "two")
            ]
        },
    }
    found = compile_document(Document(policy, "")).errors
    assert [f"spec.rules[{index}].validate.pattern" for index in (0, 1)] == [error.path for error in found]
