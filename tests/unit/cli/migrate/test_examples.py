"""Objects of suites, by the policies that they test."""

from __future__ import annotations

from pathlib import Path

from pyverno.cli.migrate.examples import suite_examples
from tests.unit.cli.conftest import Run

POLICY = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: modes}
spec:
  rules:
  - name: strict
    match: {any: [{resources: {kinds: [example.com/v1/Widget]}}]}
    validate:
      message: be strict
      pattern: {spec: {=(mode): "?*"}}
"""
SUITE = """\
apiVersion: cli.kyverno.io/v1alpha1
kind: Test
metadata: {name: modes}
policies: [policy.yaml]
resources: [%s]
results:
- {policy: modes, rule: strict, kind: Widget, resources: [a], result: pass}
"""
WIDGET = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, spec: {mode: 3}}\n"


def test_the_objects_of_a_suite_belong_to_its_policies(folder: Path) -> None:
    """Other policies do not begin with them, and files that are missing are left to the suite."""
    for name, text in (("policy", POLICY), ("widget", WIDGET), ("kyverno-test", SUITE % "widget.yaml, gone.yaml")):
        (folder / f"{name}.yaml").write_text(text)
    found = suite_examples([str(folder)])
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"mode": 3}}
    assert [(widget,), ()] == [found.of(str(folder / name)) for name in ("policy.yaml", "other.yaml")]


def test_examples_show_the_types_of_custom_kinds(cli: Run, folder: Path) -> None:
    """The rule alone shows a text; the suite has a number, of which the pattern accepts any."""
    suite = folder / "suite"
    suite.mkdir()
    for name, text in (("policy", POLICY), ("widget", WIDGET), ("kyverno-test", SUITE % "widget.yaml")):
        (suite / f"{name}.yaml").write_text(text)
    alone = cli("migrate", "suite/policy.yaml", "-n", "100")
    beside = cli("migrate", "suite", "-n", "100")
    number = "string(object.spec.?mode"
    assert (False, True) == (number in alone.out, number in beside.out)
