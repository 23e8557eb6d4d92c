"""Rows and objects of a suite: twice as many of both cost about twice as much, in every mode."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyverno.cli.test.check import check_rows
from pyverno.cli.test.coverage import coverage_of
from pyverno.cli.test.strict import vacuous_checks
from pyverno.cli.test.suite import load_suite
from pyverno.cli.test.write import new_rows
from pyverno.kube.yaml.documents import load_documents
from pyverno.offline.testfile import read_test_file
from tests.support.operations import MOST_GROWTH, operations

POLICY = """
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p, annotations: {pod-policies.kyverno.io/autogen-controllers: none}}
spec:
  background: false
  rules:
  - name: checks
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {message: m, pattern: {spec: {containers: [{image: "!*:latest"}]}}}
  - name: changes
    match: {any: [{resources: {kinds: [Pod]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {a: b}}}}
  - name: makes
    match: {any: [{resources: {kinds: [Pod]}}]}
    generate:
      apiVersion: v1
      kind: ConfigMap
      name: "{{ request.object.metadata.name }}"
      namespace: team
      data: {data: {a: b}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {{name: p{0}, namespace: n{1}}}
spec: {{containers: [{{name: c, image: "nginx:latest"}}]}}
"""
CHANGED = POD.replace("namespace: n{1}", "namespace: n{1}, labels: {{a: b}}")
MADE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: p{0}, namespace: team}}\ndata: {{a: b}}\n"
HEAD = """
apiVersion: cli.kyverno.io/v1alpha1
kind: Test
metadata: {name: t}
policies: [policy.yaml]
resources: [pods.yaml]
variables: values.yaml
results:
"""
ROWS = {
    "names": "- {{policy: p, rule: checks, kind: Pod, resources: [p{0}], result: fail}}",
    "places": "- {{policy: p, rule: checks, kind: Pod, resources: [n{1}/p{0}], result: fail}}",
    "changes": "- {{policy: p, rule: changes, resources: [p{0}], patchedResources: changed.yaml, result: pass}}",
    "makes": "- {{policy: p, rule: makes, kind: Pod, resources: [p{0}], generatedResource: made.yaml, result: pass}}",
}


def cost(folder: Path, kind: str, size: int) -> dict[str, int]:
    """Return the operations of each mode of a suite with so many pods and rows."""
    every = range(size)
    place = folder / f"{kind}{size}"
    place.mkdir()
    (place / "policy.yaml").write_text(POLICY)
    for name, text in (("pods", POD), ("changed", CHANGED), ("made", MADE)):
        (place / f"{name}.yaml").write_text("\n---\n".join(text.format(at, at % 9) for at in every))
    values = "".join(f"  - {{name: p{at}, values: {{reason: r{at}}}}}\n" for at in every)
    head = (
        "apiVersion: cli.kyverno.io/v1alpha1\nkind: Values\nmetadata: {name: v}\npolicies:\n- name: p\n  resources:\n"
    )
    (place / "values.yaml").write_text(head + values)
    if kind == "one row":
        names = ", ".join(f"p{at}" for at in every)
        rows = f"- {{policy: p, rule: checks, kind: Pod, resources: [{names}], result: fail}}"
    else:
        rows = "\n".join(ROWS[kind].format(at, at % 9) for at in every)
    (document,) = load_documents(HEAD + rows, file="kyverno-test.yaml")
    suite = load_suite(read_test_file(document), place)
    suite.session.explanations = []
    judged = suite.judge()
    rows_of = tuple(check_rows(suite, judged, suite.test.results))
    assert {("Pass", "")} == {(row.outcome, row.vacuous) for row in rows_of}
    assert size == len(rows_of)
    return {
        "rows": operations(lambda: tuple(check_rows(suite, judged, suite.test.results))),
        "strict": operations(lambda: tuple(vacuous_checks(suite, judged, rows_of, suite.test.results))),
        "coverage": operations(lambda: coverage_of(suite, judged, rows_of, suite.test.results, "t")),
        "write": operations(lambda: new_rows(suite, judged)),
    }


@pytest.mark.parametrize("kind", [*ROWS, "one row"])
def test_twice_the_rows_and_objects_cost_about_twice(tmp_path: Path, kind: str) -> None:
    """Objects are found by their names, and files of expected objects are read once."""
    once, twice = cost(tmp_path, kind, 100), cost(tmp_path, kind, 200)
    assert {} == {mode: twice[mode] / once[mode] for mode in once if twice[mode] > MOST_GROWTH * once[mode]}
