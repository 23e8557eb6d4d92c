"""Kubernetes' own policies are lowered with their bindings."""

from __future__ import annotations

import pytest

from pyverno.engine.result import FailureAction, RuleType
from pyverno.engine.rule import Stage
from tests.support.celpolicies import ask, binding, compiled, native, said, validations

MUTATIONS = [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}]


def policies(*documents):
    compilation = compiled(*documents)
    assert [] == [str(error) for error in compilation.errors]
    return compilation.policies


@pytest.mark.parametrize(
    ("document", "stage", "rule_type"),
    [
        (native(validations=validations("true")), Stage.VALIDATE, RuleType.VALIDATION),
        (native("Mutating", mutations=MUTATIONS, reinvocationPolicy="Never"), Stage.MUTATE, RuleType.MUTATION),
    ],
)
def test_each_kind_has_its_stage(document, stage, rule_type):
    """The one rule is called like the policy, the kind is the source of its reports."""
    (policy,) = policies(document)
    (rule,) = policy.rules
    assert (stage, rule_type, "check", document["kind"]) == (
        rule.stage,
        rule.info.type,
        rule.info.name,
        policy.info.source,
    )


@pytest.mark.parametrize(
    ("bindings", "action"),
    [
        ((), FailureAction.ENFORCE),
        ((binding(),), FailureAction.ENFORCE),
        ((binding(validationActions=["Audit", "Warn"]),), FailureAction.AUDIT),
        ((binding("a", validationActions=["Audit"]), binding("b")), FailureAction.ENFORCE),
        ((binding(policyName="other", validationActions=["Audit"]),), FailureAction.ENFORCE),
    ],
)
def test_a_policy_can_deny_when_a_binding_of_it_does(bindings, action):
    """A policy without bindings is judged as if it were bound to deny."""
    (policy,) = policies(native(validations=validations("true")), *bindings)
    assert action is policy.rules[0].failure_action


def test_bindings_are_joined_by_kind_and_name():
    """The order of documents does not matter; a binding of the other kind does not count."""
    policy = native(validations=validations("false"))
    nowhere = {"objectSelector": {"matchLabels": {"a": "b"}}}
    assert [] == said(ask(binding(matchResources=nowhere), policy))
    assert ["fail"] == [status for status, _ in said(ask(policy, binding(kind="Mutating", matchResources=nowhere)))]


def test_a_binding_that_does_not_compile_stops_its_policy():
    """The error belongs to the binding, and the policy is not run as if it were bound everywhere."""
    selector = {"matchExpressions": [{"key": "a", "operator": "Sometimes"}]}
    policy = native(validations=validations("true"))
    broken = binding(matchResources={"objectSelector": selector})
    first, second = compiled(policy, broken).items
    assert (0, 1) == (len(first.errors), len(second.errors))
    assert "spec.matchResources.objectSelector" in second.errors[0].path


def test_parameters_are_declared_by_a_param_kind_only():
    """Without it the name `params` means nothing."""
    (error,) = compiled(native(validations=validations("params == null"))).errors
    assert ("spec.validations[0].expression", "cel-compile") == (error.path, error.code)


@pytest.mark.parametrize("name", ["for", "in", "a-b", "1x", "ä"])
@pytest.mark.parametrize("kind", ["Validating", "Mutating"])
def test_a_variable_needs_a_name_that_is_an_identifier(kind, name):
    """An API server rejects such a policy, so it is an error here too."""
    rest = {"validations": validations("true")} if kind == "Validating" else {"mutations": MUTATIONS}
    document = native(kind, variables=[{"name": name, "expression": "1"}], **rest)
    (error,) = compiled(document).errors
    expected = ("spec.variables[0].name", f"invalid value `{name}`: name is not a valid CEL identifier")
    assert expected == (error.path, error.message)


def test_names_that_only_resemble_reserved_words_are_accepted():
    """Reserved words count as a whole."""
    variables = [{"name": name, "expression": "1"} for name in ("format", "_in", "For", "x1")]
    policies(native(variables=variables, validations=validations("true")))
