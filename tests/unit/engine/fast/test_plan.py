"""The steps of a plan, and that they give the same results as the rules one by one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyverno.compiler import compile_documents
from pyverno.engine.engine import Engine
from pyverno.engine.fast.plan import Fast, RuleSequence
from pyverno.engine.phases import VALIDATING
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Request
from pyverno.engine.result import RuleResult
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.documents import load_documents

_POLICY = """
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: %s, annotations: {pod-policies.kyverno.io/autogen-controllers: none}}
spec:
  applyRules: %s
  rules:
"""
_RULE = """
  - name: %s
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {message: m, %s}
"""
_PATTERN = 'pattern: {metadata: {labels: {"%s": "?*"}}}'
_ANY = 'anyPattern: [{metadata: {labels: {"%s": "?*"}}}, {spec: {hostPID: true}}]'
_DENY = (
    'deny: {conditions: {any: [{key: "{{ request.object.metadata.labels.%s || \'\' }}", operator: Equals, value: ""}]}}'
)
_EACH = (
    "foreach: [{list: request.object.spec.containers, "
    "deny: {conditions: {any: [{key: '{{ element.image }}', operator: Equals, value: %s}]}}}]"
)


def _by_rule(result: RuleResult) -> str:
    return result.rule.name


def _policy(name: str, *rules: tuple[str, str], applies: str = "All") -> str:
    written = (_RULE % (f"{name}-{number}", form % label) for number, (form, label) in enumerate(rules))
    return _POLICY % (name, applies) + "".join(written)


def _engine(*policies: str) -> Engine:
    compilation = compile_documents(load_documents("---".join(policies)))
    assert not compilation.errors
    return Engine(compilation.policy_set())


def _pod(*labels: str, spec: JSON = None) -> Request:
    spec = {"containers": [{"image": "y"}]} if spec is None else spec
    body: JSONObject = {"metadata": {"name": "p", "namespace": "n", "labels": dict.fromkeys(labels, "x")}, "spec": spec}
    return Request.from_manifest({"apiVersion": "v1", "kind": "Pod", **body})


def _said(engine: Engine, request: Request) -> list[tuple[str, str]]:
    return [(result.rule.name, result.status.value) for result in engine.review(request, VALIDATING).results]


def test_rules_without_a_fused_check_are_one_step() -> None:
    """However many policies they are of; those that stop at the first decided rule have a step of their own."""
    engine = _engine(
        _policy("a", (_ANY, "x"), (_DENY, "y")),
        _policy("b", (_ANY, "x"), (_ANY, "y"), applies="One"),
        _policy("d", (_PATTERN, "x")),
    )
    engine.review(_pod("x"), VALIDATING)
    (plan,) = engine.policies._memo.values()
    shapes = [(type(step), len(step.rules), step.stops) for step in plan if isinstance(step, RuleSequence)]
    assert shapes == [(RuleSequence, 2, False), (RuleSequence, 2, True)]
    assert [type(step) for step in plan][:1] == [Fast]


def test_alternatives_and_denials_share_a_pass_check_of_their_own() -> None:
    """An object that fails one of them, or fits another alternative, leaves the pass-check of patterns as it is."""
    engine = _engine(
        _policy("a", (_ANY, "x")), _policy("b", (_DENY, "x")), _policy("c", (_EACH, "x")), _policy("d", (_PATTERN, "x"))
    )
    engine.review(_pod("x"), VALIDATING)
    (plan,) = engine.policies._memo.values()
    assert [[result.rule.name for result in step.results] for step in plan if isinstance(step, Fast)] == [
        ["d-0"],
        ["a-0", "b-0", "c-0"],
    ]
    assert len(plan) == 2


@pytest.mark.parametrize("host_pid", [False, True, "x"])
@pytest.mark.parametrize("images", [(), ("x",), ("y", "x"), ("y", "z"), None])
@pytest.mark.parametrize("labels", [(), ("x",), ("y",), ("x", "y")])
def test_fast_tiers_change_no_result(labels: tuple[str, ...], images: tuple[str, ...] | None, host_pid: JSON) -> None:
    """Alternatives after the first, denied elements, lists without elements, and values of a wrong type included."""
    forms = [(form, label) for form in (_ANY, _DENY, _EACH, _PATTERN) for label in ("x", "y")]
    policies = [_policy(f"p{number}", form, (form[0], "z")) for number, form in enumerate(forms)]
    containers: JSON = 7 if images is None else [{"image": image} for image in images]
    request = _pod(*labels, spec={"hostPID": host_pid, "containers": containers})
    engine = _engine(*policies)
    exact = [
        replace(policy, rules=tuple(replace(rule, fast_tier=None) for rule in policy.rules))
        for policy in engine.policies.policies
    ]
    expected = Engine(PolicySet(exact)).review(request, VALIDATING).results
    assert sorted(expected, key=_by_rule) == sorted(engine.review(request, VALIDATING).results, key=_by_rule)
    assert len(expected) >= 12


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (("x", "y"), ["pass", "pass", "pass", "pass"]),
        (("x",), ["pass", "fail", "pass", "fail"]),
        (("y",), ["fail", "pass", "fail", "pass"]),
    ],
)
def test_the_first_decided_rule_ends_a_policy_that_applies_one(labels: tuple[str, ...], expected: list[str]) -> None:
    """With `applyRules: One` the first decided rule ends its policy; rules of other policies are still evaluated."""
    rules = ((_ANY, "x"), (_ANY, "y"))
    engine = _engine(_policy("a", *rules), _policy("b", *rules, applies="One"), _policy("c", *rules))
    names = ["a-0", "a-1", "b-0", "c-0", "c-1"]
    a, b = expected[:2], expected[2:]
    assert _said(engine, _pod(*labels)) == list(zip(names, [*a, a[0], *b], strict=True))


@pytest.mark.parametrize("labels", [("x",), ("y",), (), ("x", "y")])
def test_a_plan_gives_the_results_of_its_policies_alone(labels: tuple[str, ...]) -> None:
    """Fused or not, in one step or in many."""
    forms = [(_PATTERN, "x"), (_PATTERN, "y"), (_ANY, "x"), (_DENY, "y")]
    policies = [_policy(f"p{number}", form) for number, form in enumerate(forms)]
    alone = [said for policy in policies for said in _said(_engine(policy), _pod(*labels))]
    assert sorted(_said(_engine(*policies), _pod(*labels))) == sorted(alone)
    assert len(alone) == 4


def test_an_empty_set_has_an_empty_plan() -> None:
    """Without rules there are no steps, so an empty plan means that no result is possible."""
    engine = Engine(PolicySet())
    engine.review(_pod(), VALIDATING)
    assert [*engine.policies._memo.values()] == [()]
