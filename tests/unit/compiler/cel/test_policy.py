"""The kinds of policies.kyverno.io are lowered to rules; what does not compile still errs."""

from __future__ import annotations

import pytest

from pyverno.engine.engine import Engine
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Request
from pyverno.engine.result import FailureAction, RuleType
from pyverno.engine.rule import Stage
from pyverno.offline.host import OfflineHost
from tests.support.celpolicies import CONFIG_MAP, ask, compiled, conditions, exception, kyverno, said, validations

VALID = validations("true")
MUTATION = [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}]
GENERATION = [{"expression": "generator.Apply('x', [])"}]


def lowered(document):
    """Return a compiled policy that has no problems."""
    compilation = compiled(document)
    assert [] == [str(error) for error in compilation.errors]
    return compilation.policies[0]


@pytest.mark.parametrize(
    ("kind", "spec", "stage", "rule_type", "name"),
    [
        ("ValidatingPolicy", {"validations": VALID}, Stage.VALIDATE, RuleType.VALIDATION, ""),
        ("MutatingPolicy", {"mutations": MUTATION}, Stage.MUTATE, RuleType.MUTATION, ""),
        ("GeneratingPolicy", {"generate": GENERATION}, Stage.GENERATE, RuleType.GENERATION, "check"),
        (
            "DeletingPolicy",
            {"schedule": "* * * * *", "conditions": conditions("true")},
            Stage.CLEANUP,
            RuleType.DELETION,
            "check",
        ),
    ],
)
@pytest.mark.parametrize("scope", ["", "Namespaced"])
def test_each_kind_has_its_stage(scope, kind, spec, stage, rule_type, name):
    """A namespaced twin is lowered alike and confined to its namespace."""
    policy = lowered(kyverno(scope + kind, **spec))
    (rule,) = policy.rules
    assert (stage, rule_type, name) == (rule.stage, rule.info.type, rule.info.name)
    assert ("team" if scope else "") == policy.info.namespace == rule.matcher.policy_namespace


@pytest.mark.parametrize(
    ("actions", "action", "warns"),
    [
        (None, FailureAction.ENFORCE, False),
        (["Deny", "Audit"], FailureAction.ENFORCE, False),
        (["Audit"], FailureAction.AUDIT, False),
        (["Warn"], FailureAction.AUDIT, True),
        (["Warn", "Deny"], FailureAction.ENFORCE, True),
    ],
)
def test_validation_actions_decide_what_a_failure_does(actions, action, warns):
    """Deny is what nothing written means."""
    policy = lowered(kyverno(validations=VALID, **({} if actions is None else {"validationActions": actions})))
    assert (action, warns) == (policy.rules[0].failure_action, policy.info.emit_warning)
    assert (action is FailureAction.ENFORCE) is policy.rules[0].info.can_deny


def test_a_policy_about_pods_is_also_about_what_makes_them():
    """Autogen copies are rules of the same policy."""
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    policy = kyverno(
        matchConstraints={"resourceRules": [pods]},
        validations=validations("object.spec.containers.all(c, c.image != 'bad')", message="bad image"),
    )
    template = {"metadata": {}, "spec": {"containers": [{"name": "a", "image": "bad"}]}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "a", "namespace": "team"},
        "spec": {"selector": {}, "template": template},
    }
    assert 1 < len(lowered(policy).rules)
    assert [("fail", "bad image")] == said(ask(policy, resource=deployment))


@pytest.mark.parametrize(
    "broken",
    [
        kyverno(validations=validations("nothing", "true")),
        kyverno(validations=validations("true", messageExpression="nothing")),
        kyverno(validations=VALID, auditAnnotations=[{"key": "k", "valueExpression": "nothing"}]),
        kyverno("MutatingPolicy", mutations=[*MUTATION, {**MUTATION[0], "applyConfiguration": {"expression": "x"}}]),
        kyverno("GeneratingPolicy", generate=[*GENERATION, {"expression": "nothing"}]),
    ],
)
def test_a_policy_that_does_not_compile_errs_as_a_whole(broken):
    """A policy that stays loaded reports the error and never runs the valid parts alone."""
    (item,) = compiled(broken).items
    assert 1 == len(item.errors)
    review = Engine(PolicySet([item.policy]), OfflineHost()).review(Request.from_manifest(CONFIG_MAP))
    assert ["error"] == [result.status.value for result in review.results]
    assert "nothing" in review.results[0].message or "'x'" in review.results[0].message
    assert not review.effects


def test_an_exception_that_does_not_compile_is_not_in_force():
    """Its errors carry paths within the exception."""
    policy, let = kyverno(validations=validations("false")), exception(matchConditions=conditions("nothing"))
    compilation = compiled(policy, let)
    assert ["spec.matchConditions[0].expression"] == [error.path for error in compilation.errors]
    assert ((), 1) == (compilation.exceptions, len(compilation.policies))
