"""MutatingPolicies on existing objects that no request triggered: each object is judged as an update of itself."""

from __future__ import annotations

from pyverno.compiler.compile import compile_document
from pyverno.engine.engine import Engine
from pyverno.engine.inplace import in_place
from pyverno.engine.phases import MUTATING_EXISTING
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Operation, Request
from pyverno.engine.rule import CompiledPolicy
from pyverno.kube.gvk import GVR
from pyverno.kube.yaml.documents import Document
from tests.support.celpolicies import CONFIG_MAP, ERROR, compiled, conditions, exception, kyverno, said

CONFIG_MAPS = GVR("", "v1", "configmaps")
ENABLED = {"mutateExisting": {"enabled": True}, "admission": {"enabled": False}}
LABELLED = "Object{metadata: Object.metadata{labels: {'seen': 'true'}}}"


def constraints(resource="configmaps", operation="CREATE"):
    """Return constraints on one core resource."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": [operation], "resources": [resource]}
    return {"resourceRules": [rule]}


def policy(**spec):
    """Return a policy that labels what exists."""
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": LABELLED}}
    spec = {"matchConstraints": constraints(), "evaluation": ENABLED, **spec}
    return kyverno("MutatingPolicy", mutations=[mutation], **spec)


def review(*documents, resource=CONFIG_MAP, **how):
    """Review an object as an existing one."""
    compilation = compiled(*documents)
    assert [] == [str(error) for error in compilation.errors]
    (found,) = compilation.policies
    rules = tuple(rule for each in found.rules if (rule := in_place(each)) is not None)
    policies = PolicySet([CompiledPolicy(found.info, rules)], compilation.exceptions, asks_all=True)
    request = Request.from_manifest(resource, operation=Operation.UPDATE, gvr=CONFIG_MAPS, **how)
    return Engine(policies).review(request, MUTATING_EXISTING)


def test_an_existing_object_is_changed_by_an_effect():
    """The operation does not matter: the object is there, whatever brought it."""
    found = review(policy())
    assert [("pass", "success")] == said(found)
    assert [{"seen": "true"}] == [effect.after["metadata"]["labels"] for effect in found.effects]
    assert [CONFIG_MAP] == [effect.before for effect in found.effects]
    assert found.resource == CONFIG_MAP


def test_an_object_that_is_as_it_should_be_has_no_effect():
    """The verdict is still there for reports."""
    labelled = {**CONFIG_MAP, "metadata": {**CONFIG_MAP["metadata"], "labels": {"seen": "true"}}}
    found = review(policy(), resource=labelled)
    assert ([("pass", "success")], ()) == (said(found), found.effects)


def test_conditions_of_a_policy_without_targets_are_about_the_object():
    """An object that the policy does not match at admission is not changed later."""
    found = review(policy(matchConditions=conditions("object.metadata.name == 'other'")))
    assert ([("skip", "skip")], ()) == (said(found), found.effects)
    broken = review(policy(matchConditions=conditions(ERROR)))
    assert ["error"] == [status for status, _ in said(broken)]
    left_out = review(policy(targetMatchConditions=conditions("object.metadata.name == 'other'")))
    assert () == left_out.effects


def test_conditions_on_triggers_let_targets_be_when_they_do_not_hold():
    """Nothing triggered the policy: a condition about the trigger that cannot be evaluated is no error of a target."""
    targets = {"matchConstraints": constraints("secrets"), "targetMatchConstraints": constraints()}
    assert 1 == len(review(policy(**targets)).effects)
    for expression in ("request.object.kind == 'Secret'", ERROR):
        found = review(policy(**targets, matchConditions=conditions(expression)))
        assert ([("skip", "skip")], ()) == (said(found), found.effects)


def test_targets_that_an_expression_returns_need_a_request():
    """The expression reads the trigger, which only a request provides."""
    (found,) = compiled(policy(targetMatchConstraints={"expression": "{'kind': object.kind}"})).policies
    assert [None] == [in_place(rule) for rule in found.rules]


def test_an_exception_matches_the_object():
    """It exempts the existing object that its conditions describe."""
    let = exception(kind="MutatingPolicy", matchConditions=conditions("object.metadata.name == 'settings'"))
    found = review(policy(), let)
    assert (["skip"], ()) == ([status for status, _ in said(found)], found.effects)


def test_a_rule_that_does_not_compile_is_an_error_on_every_object():
    """Its policy is stored, and the reason shows."""
    found = compile_document(Document(policy(matchConditions=conditions("object.(")), "")).policy
    rules = tuple(rule for each in found.rules if (rule := in_place(each)) is not None)
    policies = PolicySet([CompiledPolicy(found.info, rules)], asks_all=True)
    request = Request.from_manifest(CONFIG_MAP, gvr=CONFIG_MAPS)
    results = Engine(policies).review(request, MUTATING_EXISTING).results
    assert ["error"] == [result.status.value for result in results]
