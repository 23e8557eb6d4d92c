"""Conditions, variables and budgets of CEL policies."""

from __future__ import annotations

import pytest

from tests.support.celpolicies import CONFIG_MAP, ERROR, ask, conditions, kyverno, named, native, said, validations

NO_KEY = "no such key: missing"


@pytest.mark.parametrize(
    ("failure_policy", "expressions", "expected"),
    [
        ("Fail", ["true"], [("pass", "success")]),
        ("Fail", ["true", "false"], [("skip", "skip")]),
        ("Fail", [ERROR], [("error", f"failed to load context: {NO_KEY}")]),
        ("Fail", [ERROR, "object.gone == 1"], [("error", f"failed to load context: {NO_KEY}; no such key: gone")]),
        ("Fail", [ERROR, "false"], [("skip", "skip")]),
        ("Fail", ["false", ERROR], [("skip", "skip")]),
        ("Ignore", [ERROR], [("skip", "skip")]),
        ("Ignore", [ERROR, "false"], [("skip", "skip")]),
        ("Ignore", ["true"], [("pass", "success")]),
    ],
)
def test_a_false_condition_wins_over_errors_and_errors_follow_the_failure_policy(failure_policy, expressions, expected):
    """An error is never "no match" unless `failurePolicy` is Ignore."""
    policy = kyverno(
        failurePolicy=failure_policy, matchConditions=conditions(*expressions), validations=validations("true")
    )
    assert expected == said(ask(policy))


def test_variables_fail_only_where_they_are_used():
    """An unused variable may be broken; the error does not name the variable, as in Kyverno."""
    variables = named(bad=ERROR, worse="variables.bad")
    used = [
        ("true", ("pass", "success")),
        ("variables.bad || true", ("pass", "success")),
        ("variables.bad", ("error", f"error: {NO_KEY}")),
        ("variables.worse", ("error", f"error: {NO_KEY}")),
    ]
    for expression, expected in used:
        assert [expected] == said(ask(kyverno(variables=variables, validations=validations(expression))))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("dyn(variables).all(name, false)", "fail"),
        ("dyn(variables).exists(name, name == 'second')", "pass"),
        ("dyn(variables).exists(name, value, value == 2)", "pass"),
        ("size(dyn(variables)) == 2", "pass"),
        ("dyn(variables) == dyn({})", "fail"),
        ("dyn(variables) == dyn({'first': 1, 'second': 2})", "pass"),
        ("json.marshal(dyn(variables)) == '{}'", "fail"),
    ],
)
def test_variables_as_a_whole_hold_all_of_them(expression, expected):
    """One that nothing has read yet is there as well: a loop over none would let everything pass."""
    assert [expected] == [
        status
        for status, _ in said(ask(kyverno(variables=named(first="1", second="2"), validations=validations(expression))))
    ]


def test_policies_of_kubernetes_name_the_variables_that_fail():
    """The message lists the chain of variables from the one used to the one that failed."""
    policy = native(variables=named(bad=ERROR, worse="variables.bad"), validations=validations("variables.worse"))
    names = 'composited variable "worse" fails to evaluate: composited variable "bad" fails to evaluate'
    assert [("error", f"expression 'variables.worse' resulted in error: {names}: {NO_KEY}")] == said(ask(policy))


def test_a_variable_has_one_value_in_an_evaluation():
    """It is computed once, on first use, also when it is random."""
    policy = kyverno(
        variables=named(dice="random('[0-9]{30}')"),
        validations=validations("variables.dice == variables.dice", "variables.dice == variables.dice + ''"),
    )
    assert [("pass", "success")] == said(ask(policy))


LARGE = {**CONFIG_MAP, "data": {f"k{index}": "x" for index in range(1_000)}}
DEAR = "object.data.all(a, object.data.all(b, a != b || a == b))"
"""Far beyond what one expression may cost."""
HALF = (
    "object.data.all(a, ['1','2','3','4','5','6','7','8','9','10'].all(b, " + "object.data[a] != b && " * 10 + "true))"
)
"""Costs 534,003."""


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"validations": validations(DEAR)}, ["error"]),
        ({"variables": named(v=DEAR), "validations": validations("variables.v || true")}, ["error"]),
        ({"matchConditions": conditions(DEAR), "validations": validations("true")}, ["error"]),
        ({"matchConditions": conditions(DEAR, "false"), "validations": validations("true")}, ["error"]),
        ({"validations": validations(HALF)}, ["pass"]),
        ({"validations": validations(*[HALF] * 19)}, ["error"]),
        ({"matchConditions": conditions(*[HALF] * 5), "validations": validations("true")}, ["error"]),
        ({"matchConditions": conditions(*[HALF] * 4), "validations": validations(*[HALF] * 16)}, ["pass"]),
    ],
)
def test_the_cost_of_expressions_is_limited_one_by_one_and_together(spec, expected):
    """1,000,000 for an expression, 10,000,000 for a policy, 2,500,000 for its match conditions; no `||` absorbs it."""
    assert expected == [status for status, _ in said(ask(kyverno(**spec), resource=LARGE))]


def test_ignore_lets_conditions_that_cost_too_much_not_match():
    """Running out of budget in match conditions is an error like any other for the failure policy."""
    policy = kyverno(failurePolicy="Ignore", matchConditions=conditions(DEAR), validations=validations("true"))
    assert [("skip", "skip")] == said(ask(policy, resource=LARGE))


def test_mutations_of_a_policy_draw_on_one_budget():
    """Each mutation sees new bindings, not a new budget."""
    mutation = {
        "patchType": "ApplyConfiguration",
        "applyConfiguration": {"expression": f"{HALF} ? Object{{}} : Object{{}}"},
    }
    assert ["pass"] == [
        status for status, _ in said(ask(kyverno("MutatingPolicy", mutations=[mutation]), resource=LARGE))
    ]
    policy = kyverno("MutatingPolicy", mutations=[mutation] * 19)
    assert ["error"] == [status for status, _ in said(ask(policy, resource=LARGE))]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("request.operation == 'CREATE'", "pass"),
        ("request.name == 'settings' && request.namespace == 'team'", "pass"),
        ("request.kind.kind == 'ConfigMap' && request.requestKind.version == 'v1'", "pass"),
        ("request.resource.resource == 'configmaps' && request.requestResource.group == ''", "pass"),
        ("!has(request.subResource) && request.dryRun == false", "pass"),
        ("request.userInfo.username == 'x' || true", "pass"),
        ("!has(request.userInfo.username) && !has(request.userInfo.groups)", "pass"),
        ("has(request.userInfo.username)", "fail"),
        ("has(request.userInfo) && request.userInfo.username == ''", "pass"),
        ("request.userInfo.username.startsWith('system:')", "fail"),
        ("!request.userInfo.?username.hasValue() && request.?userInfo.?username.orValue('none') == 'none'", "pass"),
        ("!('x' in request.userInfo.groups)", "error"),
        ("oldObject == {} && request.oldObject == null", "pass"),
        ("namespaceObject.metadata.name == 'team'", "pass"),
        ("namespaceObject.metadata.labels.tier == 'gold'", "pass"),
        ("size(exceptions.allowedImages) == 0", "pass"),
    ],
)
def test_what_an_expression_sees_of_a_request(expression, expected):
    """The AdmissionRequest without its objects, and the namespace as far as it is known."""
    review = ask(kyverno(validations=validations(expression)), namespace_labels={"tier": "gold"})
    assert [expected] == [status for status, _ in said(review)], said(review)
