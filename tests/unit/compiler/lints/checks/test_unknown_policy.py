"""Exceptions and bindings for policies that are not there."""

from __future__ import annotations

import pytest

from tests.support.linting import cel_policy, found, policy, rule

POLICY = policy(rule("validate: {message: m, pattern: {metadata: {name: '?*'}}}", name="check"), name="require-labels")
EXCEPTION = """\
---
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {{name: e, namespace: team}}
spec:
  match: {{any: [{{resources: {{kinds: [Pod]}}}}]}}
  exceptions:
  - policyName: {policy}
    ruleNames: [{rule}]
"""
BINDING = """\
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: b}
spec: {policyName: other, validationActions: [Deny]}
"""
VAP = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: others}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: 'true'}]
"""


def test_an_exception_for_a_policy_that_is_not_there_is_found() -> None:
    """The nearest name is offered."""
    text = POLICY + EXCEPTION.format(policy="require-label", rule="check")
    [message] = found(text, "PV103")
    hint = "there is no policy `require-label` among the given policies: did you mean `require-labels`?"
    assert hint in message


def test_an_exception_for_a_rule_that_is_not_there_is_found() -> None:
    """Rules made by autogen count."""
    text = POLICY + EXCEPTION.format(policy="require-labels", rule="chek, autogen-check, 'che*'")
    [message] = found(text, "PV103")
    assert "the policy `require-labels` has no rule `chek`: did you mean `check`?" in message


def test_a_binding_of_a_policy_that_is_not_there_is_found() -> None:
    """A binding to nothing enforces nothing."""
    assert [
        "11:20 there is no ValidatingAdmissionPolicy `other` among the given policies: did you mean `others`?"
    ] == found(VAP + BINDING, "PV103")


@pytest.mark.parametrize(
    "text",
    [EXCEPTION.format(policy="x", rule="z"), BINDING, cel_policy("validations: [{expression: 'true'}]") + BINDING],
)
def test_without_policies_of_the_kind_nothing_is_reported(text: str) -> None:
    """The policies may be in another repository."""
    assert [] == found(text, "PV103")
