"""Selectors of match and exclude that Kubernetes refuses are errors of their policy, never of the compiler."""

import pytest

from pyverno.compiler import compile_documents
from pyverno.engine.engine import Engine
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Request
from pyverno.engine.result import Status
from pyverno.kube.yaml.documents import load_documents

BAD = "{matchExpressions: [{key: a, operator: Maybe}]}"
TEXT = '"Maybe" is not a valid label selector operator'
BLOCK = f"match: {{any: [{{resources: {{kinds: [Pod], SELECTOR: {BAD}}}}}]}}"
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "b"}}
SPECS = {
    "ClusterPolicy": f"{{rules: [{{name: r, {BLOCK}, validate: {{message: m, deny: {{}}}}}}]}}",
    "PolicyException": f"{{{BLOCK}, exceptions: [{{policyName: p, ruleNames: [r]}}]}}",
    "ClusterCleanupPolicy": f"{{{BLOCK}, schedule: '* * * * *'}}",
}
VERSIONS = {"ClusterPolicy": "v1", "PolicyException": "v2", "ClusterCleanupPolicy": "v2"}


def compiled(kind, field):
    spec = SPECS[kind].replace("SELECTOR", field)
    text = f"apiVersion: kyverno.io/{VERSIONS[kind]}\nkind: {kind}\nmetadata: {{name: p}}\nspec: {spec}\n"
    return compile_documents(load_documents(text, file="p.yaml"))


@pytest.mark.parametrize("field", ["selector", "namespaceSelector"])
@pytest.mark.parametrize("kind", SPECS)
def test_a_bad_selector_is_an_error_with_its_place(kind, field):
    """The error is reported once."""
    found = compiled(kind, field).errors
    assert [(error.code, error.message) for error in found] == [("match-selector", TEXT)]
    assert found[0].path.endswith(f"match.any[0].resources.{field}")


def test_a_policy_that_runs_in_spite_of_its_selector_errs():
    """A store may keep a bad policy loaded; it must not pass over what it may be about."""
    policy = compiled("ClusterPolicy", "selector").items[0].policy
    review = Engine(PolicySet((policy,))).review(Request.from_manifest(POD))
    assert [(result.status, result.message) for result in review.results] == [(Status.ERROR, TEXT)]
