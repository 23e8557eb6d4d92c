"""Branches of policies: what is listed, and that what a trace takes is among it."""

from __future__ import annotations

import pytest

from pyverno.compiler import compile_documents
from pyverno.compiler.branches.expressions import deciding_parts
from pyverno.compiler.branches.patterns import pattern_branches
from pyverno.compiler.branches.sites import branches_of
from pyverno.compiler.branches.taken import taken_branches
from pyverno.kube.yaml.documents import load_documents
from pyverno.offline.session import Session

POLICY = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Pod], names: [a*]}}]}
    exclude: {any: [{resources: {namespaces: [system]}}]}
    preconditions:
      all:
      - {key: "{{ request.operation }}", operator: Equals, value: CREATE}
    validate:
      message: m
      pattern:
        spec:
          =(hostPID): false
          containers:
          - X(stdin): "null"
            (name): c*
            image: "!*:latest"
"""
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "namespace": "shop"},
    "spec": {"containers": [{"name": "c", "image": "nginx:1"}]},
}


def taken(pod: dict[str, object], text: str = POLICY) -> set[tuple[str, str]]:
    """The last step and the outcome of every branch that a pod takes, of those that the policy has."""
    compilation = compile_documents(load_documents(text))
    session = Session.open(compilation)
    listed = {branch.key for branch in branches_of(compilation.items[0].document.value)}
    found = set()
    for explanation in session.explain(pod):
        for trace in explanation.rules:
            keys = taken_branches(trace, compilation.items[0].document.value)
            found |= {(str(place[-1]), outcome) for place, part, outcome in keys if (place, part, outcome) in listed}
    return found


def test_every_place_of_a_rule_has_its_outcomes() -> None:
    """A match block of kinds alone has no "does not fit" branch; this one also has names."""
    value = load_documents(POLICY)[0].value
    found = [(branch.kind, branch.place[-1], branch.outcome) for branch in branches_of(value)]
    assert ("match", 0, "does not fit") in found
    assert [each for each in found if each[0] == "condition"] == [("condition", 0, "true"), ("condition", 0, "false")]
    assert [each[1:] for each in found if each[0] == "pattern"] == [
        ("=(hostPID)", "absent"),
        ("=(hostPID)", "pass"),
        ("=(hostPID)", "fail"),
        ("X(stdin)", "absent"),
        ("X(stdin)", "present"),
        ("(name)", "applies"),
        ("(name)", "does not apply"),
        ("image", "pass"),
        ("image", "fail"),
    ]


def test_a_passing_pod_takes_the_outcomes_of_passing() -> None:
    """An absent key is its own outcome, not a pass."""
    found = taken(POD)
    assert {("image", "pass"), ("=(hostPID)", "absent"), ("X(stdin)", "absent"), ("(name)", "applies")} <= found
    assert ("=(hostPID)", "pass") not in found


def test_a_deployment_takes_the_branches_of_the_rule_that_its_copy_is_made_of() -> None:
    """The template is no part of the place."""
    text = POLICY.replace(", names: [a*]", "").replace(
        "    exclude: {any: [{resources: {namespaces: [system]}}]}\n", ""
    )
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "a", "namespace": "shop"},
        "spec": {"template": {"spec": {"containers": [{"name": "c", "image": "nginx:latest"}]}}},
    }
    assert ("image", "fail") in taken(deployment, text)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a", []),
        ("a && b", ["a", "b"]),
        ("a && (b || !c)", ["a", "b", "!c"]),
        ("x.all(c, c.a || c.b)", ["c.a", "c.b"]),
        ("a ? b : c", ["a"]),
        ("true || a", ["a"]),
        ("a &&", []),
    ],
)
def test_operands_that_decide_are_those_of_logical_operators_and_conditions(text: str, parts: list[str]) -> None:
    """Constants decide nothing, and what does not parse has none."""
    assert parts == [part.text for part in deciding_parts(text)]


def test_lists_have_the_pattern_of_their_first_map_or_of_each_position() -> None:
    """As the engine reads them."""
    maps = [branch.place for branch in pattern_branches({"a": [{"b": 1}, {"c": 1}]}, (), "r")]
    assert {("a", 0, "b")} == set(maps)
    nested = [branch.place for branch in pattern_branches({"a": [[{"b": 1}], [{"c": 1}]]}, (), "r")]
    assert {("a", 0, 0, "b"), ("a", 1, 0, "c")} == set(nested)
