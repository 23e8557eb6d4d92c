"""Explanations: what each part of a rule records, and what is named and never shown."""

import json

import pytest

import pyverno
from pyverno.engine.explain.explanation import explain
from pyverno.engine.explain.nodes import (
    BlockNode,
    CheckNode,
    ConditionNode,
    ContextNode,
    ControlNode,
    ElementNode,
    ExceptionNode,
    ExpressionNode,
    Hidden,
    MatchNode,
    OmittedNode,
    PartNode,
    PatchNode,
    PatternNode,
    Shown,
)
from pyverno.engine.phases import ADMISSION
from pyverno.kube.json import JSON
from pyverno.offline.host import OfflineHost, RecordedAnswer

CANARY = "canary-5c1f"
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}},
    "spec": {"hostPID": True, "containers": [{"name": "c", "image": "nginx:latest"}]},
}


def rules(*written: str, spec: str = "") -> pyverno.PolicySet:
    """A ClusterPolicy with these rules for Pods, each given by its body."""
    head = "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p, annotations: {%s}}\nspec:\n%s  rules:\n"
    no_copies = "pod-policies.kyverno.io/autogen-controllers: none"
    text = head % (no_copies, spec) + "".join(
        f"  - name: r{number}\n    match: {{any: [{{resources: {{kinds: [Pod, Secret]}}}}]}}\n    {body}\n"
        for number, body in enumerate(written)
    )
    return pyverno.load_policies(text)


def explained(policies: pyverno.PolicySet, manifest: JSON = POD, host: pyverno.Host | None = None) -> JSON:
    """The explanation of the manifest's creation."""
    return pyverno.review(manifest, policies, host=host).explain()


def nodes(explanation: JSON, kind: type, rule: int = 0) -> list:
    """All nodes of a kind in one rule."""
    return [node for node in explanation.rules[rule].walk() if type(node) is kind]


def test_the_results_of_an_explanation_are_those_of_the_review():
    """Recording a trace does not change any result."""
    made = rules(
        "validate: {message: m, pattern: {spec: {hostPID: false}}}",
        "validate: {message: m, anyPattern: [{spec: {hostPID: false}}, {spec: {hostPID: true}}]}",
        "validate: {podSecurity: {level: baseline}}",
        "validate: {cel: {expressions: [{expression: 'object.spec.hostPID == false'}]}}",
        "mutate: {patchStrategicMerge: {metadata: {labels: {a: b}}}}",
    )
    review = pyverno.review(POD, made)
    again = review.explain().review
    found, expected = (
        sorted((each.rule.name, each.status, each.message) for each in one.results) for one in (again, review)
    )
    assert expected == found


def test_a_pattern_records_the_path_what_was_wanted_and_what_was_found():
    """The value that failed is named with both sides."""
    made = explained(rules("validate: {message: m, pattern: {spec: {'=(hostPID)': false}}}"))
    failed = [node for node in nodes(made, PatternNode) if node.part == "value" and node.outcome == "fail"]
    assert [(("spec", "hostPID"), Shown(False), Shown(True))] == [(n.path, n.wanted, n.found) for n in failed]


def test_a_rule_that_does_not_match_names_the_field_and_the_block():
    """Match and exclude blocks are listed with the field that decided."""
    text = """
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Pod], namespaces: [prod]}}]}
    validate: {message: m, pattern: {spec: {hostPID: false}}}
"""
    trace = explained(pyverno.load_policies(text)).rules[0]
    block = next(node for node in trace.walk() if isinstance(node, BlockNode))
    assert (False, "namespace shop is not matched", [("kinds", True), ("namespaces", False)]) == (
        trace.matched,
        trace.reason,
        [(field.field, field.holds) for field in block.children],
    )


def test_conditions_record_both_sides_and_the_context_that_they_read():
    """A variable entry of the policy is shown with its value."""
    made = explained(
        rules(
            "context: [{name: app, variable: {jmesPath: request.object.metadata.labels.app}}]\n"
            "    validate: {message: m, deny: {conditions: {any: [{key: '{{ app }}', operator: Equals, value: web}]}}}"
        )
    )
    [condition], [context] = nodes(made, ConditionNode), nodes(made, ContextNode)
    assert (Shown("web"), "Equals", Shown("web"), True, ("app", Shown("web"))) == (
        condition.key,
        condition.operator,
        condition.value,
        condition.holds,
        (context.name, context.value),
    )


def test_foreach_records_each_element_with_its_check():
    """The element that failed holds the check that failed."""
    body = "deny: {conditions: {any: [{key: '{{ element.image }}', operator: Equals, value: '*:latest'}]}}"
    listed = "request.object.spec.containers"
    made = explained(rules(f"validate: {{message: m, foreach: [{{list: {listed}, {body}}}]}}"))
    [element] = nodes(made, ElementNode)
    checks = [node for node in element.children if isinstance(node, CheckNode)]
    assert (0, [("deny", ("fail",))]) == (element.index, [(node.kind, node.statuses) for node in checks])


def test_pod_security_lists_every_control_with_its_fields():
    """Controls that hold are listed too."""
    made = explained(rules("validate: {podSecurity: {level: baseline}}"))
    found = nodes(made, ControlNode)
    assert [("hostNamespaces", ("spec.hostPID",))] == [(n.check, n.fields) for n in found if not n.allowed]
    assert len(found) > 10


def test_cel_records_sub_expressions_variables_and_the_fields_that_were_read():
    """A ValidatingPolicy shows how its value came about."""
    text = """
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: p}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  variables: [{name: all, expression: object.spec.containers}]
  validations: [{expression: "variables.all.all(c, c.image != 'nginx:latest')", message: m}]
"""
    made = explained(pyverno.load_policies(text))
    outer = nodes(made, ExpressionNode)[0]
    parts = {node.text: node.value for node in outer.children if isinstance(node, PartNode)}
    assert (Shown(False), Shown("nginx:latest"), (("spec", "containers", "*", "image"),)) == (
        outer.value,
        parts["c.image"],
        outer.reads,
    )


def test_an_exception_is_recorded_whether_it_applies_or_not():
    """Its match is part of the trace."""
    exception = """
---
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: e, namespace: shop}
spec:
  exceptions: [{policyName: p, ruleNames: [r0]}]
  match: {any: [{resources: {kinds: [Pod], names: [%s]}}]}
"""
    body = "validate: {message: m, pattern: {spec: {hostPID: false}}}"
    base = rules(body)
    found = []
    for name in ("web", "other"):
        with_exception = base.with_exceptions(pyverno.load_policies(exception % name).exceptions)
        trace = explained(with_exception)
        node = nodes(trace, ExceptionNode)[0]
        found.append(
            (node.key, node.applies, [type(child) for child in node.children], trace.rules[0].results[0].status)
        )
    assert [
        ("shop/e", True, [MatchNode], pyverno.Status.SKIP),
        ("shop/e", False, [MatchNode], pyverno.Status.FAIL),
    ] == found


def test_a_mutation_is_recorded_as_a_patch():
    """The operations are those of the rule alone."""
    made = explained(rules("mutate: {patchStrategicMerge: {metadata: {labels: {a: b}}}}"))
    assert [({"op": "add", "path": "/metadata/labels/a", "value": "b"},)] == [
        node.operations for node in nodes(made, PatchNode)
    ]


API_CALL = "context: [{name: found, apiCall: {urlPath: /api/v1/namespaces/shop/secrets/s}}]"
VARIABLE = ", ".join(
    (
        "context: [{name: found, apiCall: {urlPath: /api/v1/namespaces/shop/secrets/s}}",
        "{name: derived, variable: {value: '{{ found.data.key }}'}}]",
    )
)


@pytest.mark.parametrize(
    "body",
    [
        API_CALL + "\n    validate: {message: m, deny: {conditions: {any: "
        "[{key: '{{ found.data.key }}', operator: Equals, value: x}]}}}",
        VARIABLE + "\n    validate: {message: m, deny: {conditions: {any: "
        "[{key: '{{ derived }}', operator: NotEquals, value: x}]}}}",
        API_CALL + "\n    validate: {message: m, pattern: {metadata: {labels: {app: '{{ found.data.key }}'}}}}",
        API_CALL + "\n    validate: {message: m, deny: {conditions: {any: "
        "[{key: '{{ to_string(@) }}', operator: Equals, value: x}]}}}",
        API_CALL + "\n    validate: {message: m, foreach: [{list: 'values(found.data)', deny: {conditions: {any: "
        "[{key: '{{ element }}', operator: Equals, value: x}]}}}]}",
        API_CALL + "\n    mutate: {patchStrategicMerge: {metadata: {labels: {a: '{{ found.data.key }}'}}}}",
    ],
)
def test_what_came_from_an_api_call_is_named_and_never_held(body: str):
    """I4: no part of an explanation repeats an answer of the cluster, nor what a rule made of it."""
    answer = RecordedAnswer("/api/v1/namespaces/shop/secrets/s", {"kind": "Secret", "data": {"key": CANARY}})
    made = explained(rules(body), host=OfflineHost(answers=(answer,)))
    changes = [made.change(result) for result in made.review.results if result.patched is None]
    assert (0, 0, True) == (
        json.dumps(made.to_json()).count(CANARY),
        repr(changes).count(CANARY),
        '"hidden"' in json.dumps(made.to_json()) or '"patch"' in json.dumps(made.to_json()),
    )


def test_the_data_of_a_secret_under_review_is_never_held():
    """Its metadata is shown, its data and annotations are not."""
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "namespace": "shop", "annotations": {"last": CANARY}},
        "stringData": {"key": CANARY},
    }
    made = explained(
        rules(
            "validate: {message: m, pattern: {metadata: {name: t, annotations: {last: x}}, stringData: {key: x}}}",
            "validate: {message: m, deny: {conditions: {any: "
            "[{key: '{{ request.object.stringData.key }}', operator: NotEquals, value: x}]}}}",
            "validate: {cel: {expressions: [{expression: \"object.stringData.key == 'x'\"}]}}",
        ),
        secret,
    )
    shown = [node.found for rule in (0, 1, 2) for node in nodes(made, PatternNode, rule) if node.part == "value"]
    assert (0, True) == (json.dumps(made.to_json()).count(CANARY), any(isinstance(each, Hidden) for each in shown))
    assert [None, None, None] == [made.change(result) for result in made.review.results]


def test_a_trace_has_bounded_room():
    """A trace keeps a bounded number of entries and counts the dropped ones."""
    made = rules("validate: {message: m, pattern: {spec: {containers: [{name: '?*', image: '?*'}]}}}")
    many = {**POD, "spec": {"containers": [{"name": f"c{n}", "image": "i"} for n in range(100)]}}
    request = pyverno.Request.from_manifest(many)
    short = explain(
        request,
        made,
        ADMISSION,
        lambda policies, asked: pyverno.Engine(policies, OfflineHost()).review(asked),
        max_nodes=50,
    )
    kept = [node for node in short.rules[0].walk() if not isinstance(node, OmittedNode)]
    assert (True, True) == (len(kept) <= 50, any(isinstance(node, OmittedNode) for node in short.rules[0].children))


def test_a_review_that_was_put_together_by_hand_cannot_be_explained():
    """It knows no policies."""
    review = pyverno.Review(pyverno.Request.from_manifest(POD), POD, ())
    with pytest.raises(ValueError, match="only a review that an engine made"):
        review.explain()
