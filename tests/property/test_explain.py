"""The laws of explanations: a trace alone gives the verdict, and a change that it suggests turns it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyverno.compiler import compile_documents
from pyverno.engine.engine import Engine
from pyverno.engine.explain.explanation import Explanation
from pyverno.engine.explain.nodes import RuleTrace
from pyverno.engine.host import NoHost
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Operation, Request
from pyverno.engine.result import RuleResult, Status
from pyverno.kube.json import JSON, JSONObject, encode
from pyverno.kube.patch.jsonpatch import apply_patch
from pyverno.kube.yaml.documents import Document, load_documents
from tests.bench.inputs import mutated_pods
from tests.property import inputs as st
from tests.property.inputs import Draw, Inputs, law
from tests.property.naive_trace import naive_statuses
from tests.property.profile import examples
from tests.property.test_passcheck import OBJECTS_EACH, PATTERN_MAPS, conditions, policy, rules_and_objects

_SEED = 20_261_123


def held_to_the_trace(policies: PolicySet, request: Request) -> Explanation:
    """Hold an explanation against the review and its own trace."""
    engine = Engine(policies, NoHost())
    review = engine.review(request)
    explanation = review.explain()
    assert _told(review.results) == _told(explanation.review.results)
    for trace in explanation.rules:
        if not trace.is_old:
            statuses = [result.status.value for result in trace.results]
            assert excused(trace, explanation) == statuses, (trace.rule.name, trace.results)
    return explanation


def excused(trace: RuleTrace, explanation: Explanation) -> list[str]:
    """The statuses that follow from a trace, and from those of the object before an update that failed as well."""
    statuses = naive_statuses(trace)
    old = [naive_statuses(each) for each in explanation.rules if each.is_old and each.rule is trace.rule]
    return ["skip"] if old and all("fail" in each and "error" not in each for each in old) else statuses


def _told(results: Iterable[RuleResult]) -> list[tuple[str, str, str, str, str]]:
    return sorted(
        (each.rule.policy.name, each.rule.name, each.status.value, each.message, encode(each.patched))
        for each in results
    )


def turned(explanation: Explanation, policies: PolicySet) -> Sequence[bool]:
    """For each failing result whether a change was found; one that is found must turn the result."""
    found = []
    request = explanation.review.request
    for result in explanation.review.results:
        if result.status is not Status.FAIL:
            continue
        change = explanation.change(result)
        found.append(change is not None)
        if change is None:
            continue
        changed = apply_patch(request.object, [*change.patch])
        again = Engine(policies, NoHost()).review(request.with_object(changed))
        assert [Status.PASS] == [each.status for each in again.results if each.rule is result.rule]
    return found


# --- rules of ClusterPolicies ---------------------------------------------------------------------------------------


@law(
    st.composite(rules_and_objects),
    st.booleans(),
    st.sampled_from(["Audit", "Enforce"]),
    st.sampled_from(["CREATE", "UPDATE"]),
    few=40,
    each=OBJECTS_EACH,
)
def test_the_verdict_of_a_rule_follows_from_its_trace(
    drawn: tuple[list[JSONObject], list[JSONObject]], apply_one: bool, action: str, operation: str
) -> None:
    """Patterns, alternatives, denials and foreach: the trace alone gives the engine's statuses, and edits turn them."""
    checks, bodies = drawn
    policies = PolicySet(compile_documents([policy(checks, apply_one=apply_one, action=action)]).policies)
    assert len(bodies) == OBJECTS_EACH
    for number, body in enumerate(bodies):
        manifest = {**body, "apiVersion": "v1", "kind": "ConfigMap"}
        request = Request.from_manifest(manifest, operation=Operation(operation))
        explanation = held_to_the_trace(policies, request)
        if not number:  # a search makes many reviews
            turned(explanation, policies)


PRECONDITIONS = conditions("request.object")
OVERLAYS = PATTERN_MAPS


@law(PRECONDITIONS, OVERLAYS, st.lists(st.sampled_from(["a", "b", "c"]), max_size=2), few=40)
def test_the_verdict_of_a_mutation_follows_from_its_trace(preconditions: JSON, overlay: JSON, names: list[str]) -> None:
    """A rule that changes the object passes, one that changes nothing or does not apply is skipped."""
    rule = {
        "name": "rule",
        "match": {"any": [{"resources": {"kinds": ["ConfigMap"]}}]},
        "preconditions": preconditions,
        "mutate": {"patchStrategicMerge": {"metadata": {"labels": {"+(made)": "yes"}}, "data": overlay}},
    }
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", **{name: {"a": 1, "b": ["x"]} for name in names}}
    policies = PolicySet(compile_documents([_document("kyverno.io/v1", "ClusterPolicy", {"rules": [rule]})]).policies)
    review = Engine(policies, NoHost()).review(Request.from_manifest(manifest))
    explanation = review.explain()
    assert _told(review.results) == _told(explanation.review.results)
    for trace in explanation.rules:
        statuses = [result.status.value for result in trace.results]
        if statuses != ["error"]:  # the trace of a mutation ends with the text of its error
            assert naive_statuses(trace) == statuses


# --- policies in CEL ------------------------------------------------------------------------------------------------

ATOMS = st.sampled_from(
    [
        "object.a == 1",
        "object.a != object.b",
        "has(object.a)",
        "has(object.b) && object.b > 0",
        "object.?c.orValue(0) < 5",
        "object.list.all(i, i > 0)",
        "object.list.exists(i, i == 1)",
        "size(object.list) < 3",
        "variables.v == 1",
        "variables.v in [1, 2]",
        "object.b.x == 'a'",
        "request.operation == 'CREATE'",
    ]
)
EXPRESSIONS = st.one_of(
    ATOMS,
    ATOMS.map("!({})".format),
    st.tuples(ATOMS, ATOMS).map(lambda drawn: "({}) && ({})".format(*drawn)),
    st.tuples(ATOMS, ATOMS).map(lambda drawn: "({}) || ({})".format(*drawn)),
    st.tuples(ATOMS, ATOMS, ATOMS).map(lambda drawn: "({}) ? ({}) : ({})".format(*drawn)),
)
VALUES = st.sampled_from([0, 1, 2, 5, "a", {"x": "a"}, None])
CEL_OBJECTS = st.tuples(
    st.dictionaries(st.sampled_from(["a", "b", "c"]), VALUES, max_size=3),
    st.lists(st.integers(0, 3), max_size=4),
).map(lambda drawn: {**drawn[0], "list": drawn[1]})
KINDS = st.sampled_from(["ValidatingPolicy", "ValidatingAdmissionPolicy", "ClusterPolicy"])


def _document(api_version: str, kind: str, spec: JSON) -> Document:
    written = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "generated"}, "spec": spec}
    return load_documents(encode(written))[0]


def cel_policy(kind: str, validations: Sequence[str], conditions: Sequence[str]) -> Document:
    """Write expressions as a policy about ConfigMaps."""
    written = [{"expression": each} for each in validations]
    variables = [{"name": "v", "expression": "object.a"}]
    named = [{"name": f"c{number}", "expression": each} for number, each in enumerate(conditions)]
    if kind == "ClusterPolicy":
        cel = {"expressions": written, "variables": variables}
        match = {"any": [{"resources": {"kinds": ["ConfigMap"]}}]}
        return _document("kyverno.io/v1", kind, {"rules": [{"name": "r", "match": match, "validate": {"cel": cel}}]})
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
    spec: JSONObject = {"matchConstraints": {"resourceRules": [rule]}, "validations": written, "variables": variables}
    if named:
        spec["matchConditions"] = named
    groups = {"ValidatingPolicy": "policies.kyverno.io", "ValidatingAdmissionPolicy": "admissionregistration.k8s.io"}
    return _document(f"{groups[kind]}/v1", kind, spec)


def _cel_case(draw: Draw) -> tuple[str, list[str], list[str], list[JSONObject]]:
    validations = [draw(EXPRESSIONS) for _ in range(draw(st.integers(1, 3)))]
    conditions = [
        draw(EXPRESSIONS.filter(lambda text: "variables" not in text)) for _ in range(draw(st.integers(0, 1)))
    ]
    return draw(KINDS), validations, conditions, [draw(CEL_OBJECTS) for _ in range(OBJECTS_EACH)]


CEL_CASES: Inputs[tuple[str, list[str], list[str], list[JSONObject]]] = st.composite(_cel_case)


@law(CEL_CASES, few=40, each=OBJECTS_EACH)
def test_the_verdict_of_a_policy_in_cel_follows_from_its_trace(
    case: tuple[str, list[str], list[str], list[JSONObject]],
) -> None:
    """ValidatingPolicy, ValidatingAdmissionPolicy and `validate.cel`, with match conditions and variables."""
    kind, validations, conditions, bodies = case
    policies = PolicySet(compile_documents([cel_policy(kind, validations, conditions)]).policies)
    assert len(policies) == 1
    for number, body in enumerate(bodies):
        request = Request.from_manifest({**body, "apiVersion": "v1", "kind": "ConfigMap"})
        explanation = held_to_the_trace(policies, request)
        if not number:
            turned(explanation, policies)


# --- pods -----------------------------------------------------------------------------------------------------------

POD_RULES = """
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: pods}
spec:
  rules:
  - name: baseline
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {podSecurity: {level: baseline}}
  - name: restricted
    match: {any: [{resources: {kinds: [Pod]}}]}
    exclude: {any: [{resources: {namespaces: [kube-*]}}]}
    validate: {podSecurity: {level: restricted}}
  - name: tags
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {message: m, pattern: {spec: {containers: [{image: "!*:latest & *:*"}]}}}
  - name: root
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate:
      message: m
      foreach:
      - list: request.object.spec.containers
        deny:
          conditions:
            any:
            - {key: "{{ element.securityContext.runAsUser || `0` }}", operator: Equals, value: 0}
"""


def test_explanations_of_pods_follow_from_their_traces_and_their_changes_are_found() -> None:
    """Pod security, patterns and foreach over pods changed at random: most failures can be mended."""
    policies = PolicySet(compile_documents(load_documents(POD_RULES)).policies)
    found: list[bool] = []
    pods = mutated_pods(_SEED, 24 if examples(1) == 1 else 10_000)
    for number, pod in enumerate(pods):
        explanation = held_to_the_trace(policies, Request.from_manifest(pod))
        if number % 100 < 6:  # a search makes many reviews
            found += turned(explanation, policies)
    assert sum(found) >= 0.75 * len(found) > 0
