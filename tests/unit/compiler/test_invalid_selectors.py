"""Selectors of constraints that Kubernetes refuses are errors with their place, and what they are in never runs."""

import pytest

from pyverno.compiler import compile_documents
from pyverno.compiler.cel.matching import INVALID_SELECTOR, lower_constraints
from pyverno.compiler.parser import Parser
from pyverno.engine.actions.unavailable import Unavailable
from pyverno.engine.engine import Engine
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Request
from pyverno.engine.result import Status
from pyverno.kube.yaml.documents import load_documents
from pyverno.policy.cel.constraints import MatchConstraints, ResourceRule
from tests.unit.policy.documents import document

RULES = 'resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]'
BAD = "{matchExpressions: [{key: a, operator: Maybe}]}"
TEXT = '"Maybe" is not a valid label selector operator'
CEL = "apiVersion: policies.kyverno.io/v1\nkind: {kind}\nmetadata: {{name: p}}\nspec:\n"
KUBERNETES = "apiVersion: admissionregistration.k8s.io/v1\nkind: {kind}\nmetadata: {{name: p}}\nspec:\n"
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "b"}}
MUTATIONS = "  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{}'}}]\n"
BODIES = {
    "ValidatingPolicy": "  validations: [{expression: 'true'}]\n",
    "MutatingPolicy": MUTATIONS,
    "GeneratingPolicy": "  generate: [{expression: 'true'}]\n",
    "DeletingPolicy": "  schedule: '@daily'\n",
    "ImageValidatingPolicy": "  attestors: [{name: a, cosign: {}}]\n  validations: [{expression: 'true'}]\n",
    "ValidatingAdmissionPolicy": "  validations: [{expression: 'true'}]\n",
    "MutatingAdmissionPolicy": f"  reinvocationPolicy: Never\n{MUTATIONS}",
}


def compiled(*texts):
    return compile_documents(load_documents("---\n".join(texts), file="p.yaml"))


def located(errors):
    return [(error.code, error.path, error.message) for error in errors]


def policy(kind, constraints):
    head = KUBERNETES if "Admission" in kind else CEL
    return f"{head.format(kind=kind)}  matchConstraints: {{{RULES}, {constraints}}}\n{BODIES[kind]}"


def binding(kind, body):
    return f"{KUBERNETES.format(kind=f'{kind}Binding')}  policyName: p\n  {body}\n"


@pytest.mark.parametrize("field", ["namespaceSelector", "objectSelector"])
@pytest.mark.parametrize("kind", BODIES)
def test_a_bad_selector_is_reported_once_with_its_place(kind, field):
    """Autogen copies the namespaceSelector, but the mistake is in the policy once."""
    errors = compiled(policy(kind, f"{field}: {BAD}")).errors
    assert [(INVALID_SELECTOR, f"spec.matchConstraints.{field}", TEXT)] == located(errors)
    assert errors[0].location.line == 5


def test_a_policy_with_a_bad_selector_errs_for_what_it_may_be_about():
    """A store may keep a bad policy loaded; it must neither pass nor skip."""
    [item] = compiled(policy("ValidatingPolicy", f"objectSelector: {BAD}")).items
    review = Engine(PolicySet((item.policy,))).review(Request.from_manifest(POD))
    assert [(Status.ERROR, True)] == [(result.status, TEXT in result.message) for result in review.results]


@pytest.mark.parametrize("kind", ["ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"])
@pytest.mark.parametrize(
    ("body", "path"),
    [
        (f"matchResources: {{objectSelector: {BAD}}}", "spec.matchResources.objectSelector"),
        (f"paramRef: {{selector: {BAD}}}", "spec.paramRef.selector"),
    ],
)
def test_a_bad_selector_of_a_binding_is_an_error_of_the_binding(kind, body, path):
    """Its policy is fine."""
    first, second = compiled(policy(kind, "namespaceSelector: {}"), binding(kind, body)).items
    assert ([], [(INVALID_SELECTOR, path, TEXT)]) == (located(first.errors), located(second.errors))


@pytest.mark.parametrize("kind", ["ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"])
def test_a_policy_does_not_run_with_a_binding_that_can_not_be_read(kind):
    """Its results are errors, because the matched resources are unknown."""
    bound = binding(kind, f"matchResources: {{objectSelector: {BAD}}}")
    [rule] = compiled(policy(kind, "objectSelector: {}"), bound).items[0].policy.rules
    assert isinstance(rule.action, Unavailable)
    assert TEXT in rule.action.message


def test_a_bad_selector_of_targets_is_reported():
    """Targets are selected by the same constraints."""
    targets = f"  targetMatchConstraints: {{{RULES}, namespaceSelector: {BAD}}}\n"
    errors = compiled(policy("MutatingPolicy", "objectSelector: {}") + targets).errors
    assert [(INVALID_SELECTOR, "spec.targetMatchConstraints.namespaceSelector", TEXT)] == located(errors)


@pytest.mark.parametrize(
    ("selector", "is_open"),
    [(None, True), ({}, True), ({"matchLabels": {}}, True), ({"matchLabels": {"a": "b"}}, False)],
)
def test_an_empty_selector_selects_everything(selector, is_open):
    """It is what the API server writes as a default."""
    parser = Parser(document("a: b"))
    rules = (ResourceRule(("",), ("v1",), ("CREATE",), ("pods",)),)
    matcher = lower_constraints(MatchConstraints(rules, namespace_selector=selector, object_selector=selector), parser)
    assert (is_open, is_open) == (matcher.namespace_selector is None, matcher.object_selector is None)
    assert [] == parser.errors
