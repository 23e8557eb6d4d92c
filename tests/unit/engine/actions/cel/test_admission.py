"""The API server's own policies: bindings, parameters, messages, errors and mutations."""

from __future__ import annotations

import pytest

from pyverno.compiler.compile import compile_documents
from pyverno.engine.engine import Engine
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Request, User
from pyverno.engine.result import AdmissionDetail, CelDetail, Denial
from pyverno.kube.yaml.documents import Document
from pyverno.value import replace
from tests.support.celpolicies import CONFIG_MAP, ERROR, ask, binding, conditions, named, native, said, validations

FAILED = "expression 'object.missing == 1' resulted in error: no such key: missing"


def verdicts(*documents, **how):
    return said(ask(*documents, **how))


@pytest.mark.parametrize(
    ("failure_policy", "spec", "expected"),
    [
        ("Fail", {"matchConditions": conditions("false")}, ("skip", "match conditions aren't met")),
        ("Fail", {"matchConditions": conditions(ERROR, "false")}, ("skip", "match conditions aren't met")),
        ("Fail", {"matchConditions": conditions(ERROR)}, ("error", FAILED)),
        ("Ignore", {"matchConditions": conditions(ERROR)}, ("skip", "match conditions aren't met")),
        ("Fail", {"matchConditions": conditions("namespaceObject == null")}, ("pass", "")),
        ("Fail", {"validations": validations("namespaceObject.metadata.name == 'team'")}, ("pass", "")),
        ("Fail", {"validations": validations(ERROR)}, ("error", FAILED)),
        ("Ignore", {"validations": validations(ERROR)}, ("error", FAILED)),
        ("Ignore", {"validations": validations(ERROR, "false")}, ("fail", "failed expression: false")),
        ("Fail", {"validations": validations("false", ERROR)}, ("fail", "failed expression: false")),
        ("Fail", {"auditAnnotations": [{"key": "k", "valueExpression": "string(object.missing)"}]}, ("error", None)),
        ("Ignore", {"auditAnnotations": [{"key": "k", "valueExpression": "string(object.missing)"}]}, ("pass", "")),
        ("Fail", {"auditAnnotations": [{"key": "k", "valueExpression": "null"}]}, ("pass", "")),
        (
            "Fail",
            {"variables": named(v=ERROR), "validations": validations("variables.v")},
            ("error", "expression 'variables.v' resulted in error: "
             'composited variable "v" fails to evaluate: no such key: missing'),
        ),
        (
            "Fail",
            {"validations": validations("!authorizer.requestResource.check('get').allowed()")},
            ("error", None),
        ),
    ],
)  # fmt: skip
def test_errors_follow_the_failure_policy_and_false_never_does(failure_policy, spec, expected):
    """A false validation denies under Ignore too; an evaluation error does not."""
    policy = native(failurePolicy=failure_policy, **{"validations": validations("true"), **spec})
    (found,) = verdicts(policy)
    assert expected[0] == found[0]
    assert expected[1] in (None, found[1])


@pytest.mark.parametrize(
    "expression",
    [
        "!('system:nodes' in request.userInfo.groups)",
        "!request.userInfo.username.startsWith('system:serviceaccount:') && request.userInfo.uid != ''",
        "has(request.userInfo.username) && !has(request.userInfo.extra)",
    ],
)
def test_objects_without_a_user_have_one_that_no_policy_names(expression):
    """As in Kyverno's scans and command line: a policy that looks at user and groups is no error for what exists."""
    assert [("fail", "failed expression: false")] == verdicts(
        native(validations=validations("false"), matchConditions=conditions(expression))
    )


SENTINEL = "system:kyverno:background-scan"


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        (User(username="alice"), f"alice {SENTINEL} {SENTINEL}"),
        (User(groups=("developers",)), f"{SENTINEL} {SENTINEL} developers"),
        (User(uid="7"), f"{SENTINEL} 7 {SENTINEL}"),
    ],
)
def test_fields_that_a_user_lacks_are_filled_offline(user, expected):
    """As Kyverno does: a file with a name only is no error for a policy that looks at groups."""
    text = "request.userInfo.username + ' ' + request.userInfo.uid + ' ' + request.userInfo.groups[0]"
    checks = [{"expression": "false", "messageExpression": text}]
    assert [("fail", expected)] == verdicts(native(validations=checks), user=user)


def test_the_user_of_an_api_servers_request_is_left_as_it_is():
    """An API server gives what it knows; inventing a group there would change its decisions."""
    check = "has(request.userInfo.groups) || has(request.userInfo.uid)"
    found = detailed_results(native(validations=validations(check)), binding("b"), user=User(username="alice"))
    assert [("fail", AdmissionDetail("b", (Denial(0, f"failed expression: {check}"),)))] == found


def test_errors_of_several_conditions_are_listed():
    """As the API server lists them."""
    policy = native(matchConditions=conditions(ERROR, "object.gone == 1"), validations=validations("true"))
    other = "expression 'object.gone == 1' resulted in error: no such key: gone"
    assert [("error", f"[{FAILED}, {other}]")] == verdicts(policy)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'has ' + object.data.key", "has value"),
        ("'  padded '", "padded"),
        ("''", "written"),
        ("'  '", "written"),
        ("'two\\nlines'", "written"),
        ("'two\\rlines'", "written"),
        ("string(object.missing)", "written"),
        ("'x'.replace('x', object.data.long)", "written"),
    ],
)
def test_a_message_expression_falls_back_to_the_message(text, expected):
    """Empty, with line ends, beyond 5 KiB or failing: what is written, and without that the expression."""
    resource = {**CONFIG_MAP, "data": {"key": "value", "long": "x" * 5_121}}
    policy = native(validations=validations("false", messageExpression=text, message=" written "))
    assert [("fail", expected)] == verdicts(policy, resource=resource)
    if expected == "written":
        policy = native(validations=validations(" false ", messageExpression=text))
        assert [("fail", "failed expression: false")] == verdicts(policy, resource=resource)


def test_every_validation_is_evaluated_and_the_first_denied_one_is_reported():
    """Its position is in the detail."""
    policy = native(validations=validations("true", "1 == 2", "false", ERROR))
    (result,) = ask(policy, binding(validationActions=["Warn", "Audit"])).results
    assert "failed expression: 1 == 2" == result.message
    assert CelDetail(1, "bound", ("Warn", "Audit")) == result.detail


@pytest.mark.parametrize(
    ("bindings", "statuses", "allowed"),
    [
        ([binding()], ["fail"], False),
        ([binding(validationActions=["Audit"])], ["fail"], True),
        ([binding(matchResources={"objectSelector": {"matchLabels": {"a": "b"}}})], [], True),
        (
            [binding("a", matchResources={"objectSelector": {"matchLabels": {"a": "b"}}}),
             binding("b", validationActions=["Audit"])],
            ["fail"],
            True,
        ),
        ([binding("a", validationActions=["Audit"]), binding("b")], ["fail", "fail"], False),
    ],
)  # fmt: skip
def test_each_binding_decides_about_its_own_denials(bindings, statuses, allowed):
    """The Deny action of one binding does not extend to another binding that only audits."""
    review = ask(native(validations=validations("false")), *bindings)
    for result in review.results:
        assert ("Enforce" if "Deny" in result.detail.actions else "Audit") == result.action.value
    assert (statuses, allowed) == ([result.status.value for result in review.results], review.decision.allowed)


def params(name, limit, namespace="team"):
    metadata = {"name": name, "namespace": namespace, "labels": {"for": "check"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"limit": limit}}


ONE, TWO, FAR = params("one", "1"), params("two", "2"), params("far", "3", "other")
KIND = {"apiVersion": "v1", "kind": "ConfigMap"}
NO_PARAMS = "no params found for policy binding with `Deny` parameterNotFoundAction"


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ({"name": "one"}, [("fail", "limit 1")]),
        ({"name": "far"}, []),
        ({"name": "far", "namespace": "other"}, [("fail", "limit 3")]),
        ({"name": "none", "parameterNotFoundAction": "Allow"}, []),
        ({"name": "none", "parameterNotFoundAction": "Deny"}, [("error", f"failed to configure binding: {NO_PARAMS}")]),
        ({"selector": {"matchLabels": {"for": "check"}}}, [("fail", "limit 1"), ("fail", "limit 2")]),
        ({"selector": {"matchLabels": {"for": "other"}}}, []),
        (
            {"selector": {"matchLabels": {"for": "other"}}, "parameterNotFoundAction": "Deny"},
            [("error", f"failed to configure binding: {NO_PARAMS}")],
        ),
        (None, [("fail", "no params")]),
    ],
)
def test_parameters_are_found_by_name_or_selector_in_the_namespace_of_the_request(reference, expected):
    """Each is judged by itself; none at all is nothing to judge, or a denial."""
    expression = "params == null ? 'no params' : 'limit ' + params.data.limit"
    policy = native(paramKind=KIND, validations=validations("false", messageExpression=expression))
    bound = binding(**({} if reference is None else {"paramRef": reference}))
    review = ask(policy, bound, objects=(ONE, TWO, FAR))
    assert expected == said(review)
    assert review.decision.allowed == (not expected)


@pytest.mark.parametrize(
    ("kind", "reference", "problem"),
    [
        (
            KIND,
            {"name": "one"},
            "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources",
        ),
        (
            {"apiVersion": "v1", "kind": "Node"},
            {"name": "one", "namespace": "team"},
            "paramRef.namespace must not be provided for a cluster-scoped `paramKind`",
        ),
    ],
)
@pytest.mark.parametrize("failure_policy", ["Fail", "Ignore"])
def test_parameters_that_can_not_be_found_are_a_configuration_error(failure_policy, kind, reference, problem):
    """It rejects whatever the binding's actions are, unless errors are ignored."""
    policy = native(failurePolicy=failure_policy, paramKind=kind, validations=validations("true"))
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}
    review = ask(policy, binding(paramRef=reference, validationActions=["Audit"]), resource=node, objects=(ONE,))
    expected = [] if failure_policy == "Ignore" else [("error", f"failed to configure binding: {problem}")]
    assert expected == said(review)
    assert review.decision.allowed == (not expected)


def rule(**cel):
    """Return a ClusterPolicy with one `validate.cel` rule."""
    found = {
        "name": "check",
        "match": {"any": [{"resources": {"kinds": ["ConfigMap"]}}]},
        "validate": {"failureAction": "Enforce", "message": "said", "cel": cel},
    }
    spec = {"background": False, "rules": [found]}
    return {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "check"}, "spec": spec}


@pytest.mark.parametrize(
    ("cel", "expected"),
    [
        ({"expressions": validations("true")}, ("pass", "Validation rule 'check' passed.")),
        ({"expressions": validations("false")}, ("fail", "said")),
        ({"expressions": validations("false", messageExpression="'own'")}, ("fail", "own")),
        ({"expressions": validations(ERROR)}, ("fail", FAILED)),
        (
            {"expressions": validations("params.data.limit != '2'"), "paramKind": KIND,
             "paramRef": {"selector": {"matchLabels": {"for": "check"}}, "parameterNotFoundAction": "Deny"}},
            ("fail", "said"),
        ),
        (
            {"expressions": validations("params.data.limit != '3'"), "paramKind": KIND,
             "paramRef": {"selector": {"matchLabels": {"for": "check"}}, "parameterNotFoundAction": "Deny"}},
            ("pass", "Validation rule 'check' passed."),
        ),
        (
            {"expressions": validations("false"), "paramKind": KIND,
             "paramRef": {"name": "none", "parameterNotFoundAction": "Allow"}},
            ("pass", "Validation rule 'check' passed."),
        ),
        (
            {"expressions": validations("true"), "paramKind": KIND,
             "paramRef": {"name": "none", "parameterNotFoundAction": "Deny"}},
            ("error", f"error in parameterized resource: {NO_PARAMS}"),
        ),
    ],
)  # fmt: skip
def test_a_rule_has_one_result_in_the_words_of_rules(cel, expected):
    """Errors are failures, several parameters give one result, and a message may come from the rule."""
    assert [expected] == verdicts(rule(**cel), objects=(ONE, TWO))


def mutation(expression, *, patch=False):
    if patch:
        return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def mutating(*mutations, **spec):
    return native("Mutating", **{"reinvocationPolicy": "Never", "mutations": list(mutations), **spec})


SET_A = mutation("Object{data: Object.data{a: '1'}}")
APPLIED = "mutation is successfully applied"


@pytest.mark.parametrize(
    ("policy", "status", "data"),
    [
        (mutating(SET_A), "pass", {"key": "value", "a": "1"}),
        (
            mutating(
                SET_A, mutation("Object{data: Object.data{b: object.data.a + variables.v}}"), variables=named(v="'x'")
            ),
            "pass",
            {"key": "value", "a": "1", "b": "1x"},
        ),
        (mutating(SET_A, mutation("Object{data: object.missing}")), "error", {"key": "value"}),
        (
            mutating(mutation("Object{data: object.missing}"), SET_A, failurePolicy="Ignore"),
            "pass",
            {"key": "value", "a": "1"},
        ),
        (mutating(SET_A, matchConditions=conditions("false")), "skip", {"key": "value"}),
        (mutating(SET_A, matchConditions=conditions(ERROR)), "error", {"key": "value"}),
        (mutating(SET_A, matchConditions=conditions(ERROR), failurePolicy="Ignore"), "skip", {"key": "value"}),
    ],
)
def test_mutations_run_in_order_on_the_object_as_changed_so_far(policy, status, data):
    """With failurePolicy Ignore one that fails is dropped; otherwise nothing is changed."""
    review = ask(policy)
    assert [status] == [result.status.value for result in review.results], said(review)
    assert data == review.resource["data"]
    assert review.decision.allowed is (status != "error")


def test_a_native_policy_may_not_replace_atomic_values():
    """A replacement would lose the elements that the policy does not know."""
    text = "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'a', args: ['x']}]}}"
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"name": "a"}]}}
    message = (
        "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: "
        ".spec.containers[0].args"
    )
    assert [("error", message)] == verdicts(mutating(mutation(text)), resource=pod)


def test_mutations_of_several_bindings_add_up():
    """Each binding, and each parameter of it, mutates what the ones before left."""
    policy = mutating(
        mutation("[JSONPatch{op: 'add', path: '/data/' + params.metadata.name, value: params.data.limit}]", patch=True),
        paramKind=KIND,
    )
    both = binding("a", kind="Mutating", paramRef={"selector": {"matchLabels": {"for": "check"}}})
    far = binding("b", kind="Mutating", paramRef={"name": "far", "namespace": "other"})
    review = ask(policy, both, far, objects=(ONE, TWO, FAR))
    assert [("pass", APPLIED)] == said(review)
    assert {"key": "value", "one": "1", "two": "2", "far": "3"} == review.resource["data"]


LARGE = {**CONFIG_MAP, "data": {f"k{index}": "x" for index in range(1_000)}}
DEAR = "object.data.all(a, object.data.all(b, a != b || a == b))"
"""Costs more than an expression may."""
OVER = "validation failed due to running out of cost budget, no further validation rules will be run"
DEAR_MESSAGE = f"{DEAR} ? 'x' : 'y'"


def test_an_expression_that_costs_too_much_is_an_error_of_its_own_while_the_budget_lasts():
    """The others are evaluated, and one that denies before it decides."""
    cancelled = f"expression '{DEAR}' resulted in error: operation cancelled: actual cost limit exceeded"
    assert [("error", cancelled)] == verdicts(native(validations=validations(DEAR, "false")), resource=LARGE)
    denied = native(validations=validations("false", DEAR, message="no"))
    assert [("fail", "no")] == verdicts(denied, resource=LARGE)
    assert [("error", OVER)] == verdicts(native(validations=validations("false", *[DEAR] * 10)), resource=LARGE)


def test_conditions_and_mutations_that_cost_too_much_are_reported_with_their_expression():
    """A condition that is false still wins; what uses up the budget ends the policy."""
    cancelled = f"expression '{DEAR}' resulted in error: operation cancelled: actual cost limit exceeded"
    checks = {"validations": validations("true")}
    assert [("error", cancelled)] == verdicts(native(matchConditions=conditions(DEAR), **checks), resource=LARGE)
    lenient = native(matchConditions=conditions(DEAR, "false"), **checks)
    assert [("skip", "match conditions aren't met")] == verdicts(lenient, resource=LARGE)
    assert [("error", OVER)] == verdicts(native(matchConditions=conditions(*[DEAR] * 3), **checks), resource=LARGE)
    dear = f"{DEAR} ? Object{{}} : Object{{}}"
    told = f"expression '{dear}' resulted in error: operation cancelled: actual cost limit exceeded"
    assert [("error", told)] == verdicts(mutating(mutation(dear)), resource=LARGE)


@pytest.mark.parametrize("expression", ["true", "false"])
def test_messages_that_use_up_the_budget_deny_whatever_was_found(expression):
    """All are evaluated, of validations that passed too; one that is dear by itself is only left out."""
    one = validations(expression, messageExpression=DEAR_MESSAGE, message="written")
    expected = ("pass", "") if expression == "true" else ("fail", "written")
    assert [expected] == verdicts(native(validations=one), resource=LARGE)
    policy = native(validations=one * 10)
    assert [("error", f"failed messageExpression: {OVER}")] == verdicts(policy, resource=LARGE)
    ignoring = native(validations=one * 10, failurePolicy="Ignore")
    assert [("error", f"failed messageExpression: {OVER}")] == verdicts(ignoring, resource=LARGE)


def detailed_results(*documents, **how):
    """Return status and detail of each result of a policy whose rule reports all details."""
    (policy,) = compile_documents(map(Document, documents)).policies
    (rule,) = policy.rules
    whole = replace(policy, rules=(replace(rule, action=replace(rule.action, reports_all=True), fast_tier=None),))
    results = Engine(PolicySet((whole,))).review(Request.from_manifest(CONFIG_MAP, **how)).results
    return [(result.status.value, result.detail) for result in results]


def test_a_server_gets_every_denial_and_the_audit_annotations():
    """Each false validation and each error by its position; annotations that are empty or null are left out."""
    checks = validations("false", "true", ERROR)
    notes = [
        {"key": "who", "valueExpression": "' ' + object.metadata.name"},
        {"key": "nothing", "valueExpression": "null"},
        {"key": "broken", "valueExpression": "string(object.missing)"},
    ]
    ((status, detail),) = detailed_results(native(validations=checks, auditAnnotations=notes), binding("b"))
    denials = (Denial(0, "failed expression: false"), Denial(2, FAILED, is_error=True))
    errors = ("expression 'string(object.missing)' resulted in error: no such key: missing",)
    assert ("fail", AdmissionDetail("b", denials, errors, (("who", CONFIG_MAP["metadata"]["name"]),))) == (
        status,
        detail,
    )


def test_a_server_gets_no_errors_that_the_policy_ignores():
    """A validation that is false is still reported; a false match condition yields a skip without detail."""
    checks = validations(ERROR, "false")
    notes = [{"key": "broken", "valueExpression": "string(object.missing)"}]
    policy = native(failurePolicy="Ignore", validations=checks, auditAnnotations=notes)
    assert [("fail", AdmissionDetail("b", (Denial(1, "failed expression: false"),)))] == detailed_results(
        policy, binding("b")
    )
    assert [("skip", None)] == detailed_results(
        native(matchConditions=conditions("false"), validations=checks), binding("b")
    )
    failing = native(matchConditions=conditions(ERROR), validations=checks)
    assert [("fail", AdmissionDetail("b", (Denial(0, FAILED, is_error=True),)))] == detailed_results(
        failing, binding("b")
    )
