"""Misspelt names in values, rows and exceptions are said: each name in turn, at every command that reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commandline import Run

POLICY = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: guard}
spec:
  rules:
  - name: check
    match: {any: [{resources: {kinds: [Pod], namespaceSelector: {matchLabels: {tier: gold}}}}]}
    context:
    - {name: settings, configMap: {name: settings, namespace: team}}
    - {name: owner, variable: {value: nobody}}
    preconditions: {all: [{key: "{{ settings.data.mode }}", operator: Equals, value: "strict"}]}
    validate:
      message: "{{ owner }} needs a label"
      pattern: {metadata: {labels: {app: "?*"}}}
"""
CEL = """\
---
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: modern}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: "true"}]
"""
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: first, namespace: team}\n"
VALUES = """\
apiVersion: cli.kyverno.io/v1alpha1
kind: Values
metadata: {name: values}
globalValues: {owner: somebody, request.operation: CREATE}
policies:
- name: guard
  rules: [{name: check, values: {settings.data.mode: strict}}]
  resources: [{name: first, values: {settings: {data: {mode: strict}}, request.object.metadata.labels.b: c}}]
- name: modern
  rules: [{name: anything}]
namespaceSelector: [{name: team, labels: {tier: gold}}]
"""
ROW = "{policy: guard, rule: check, kind: Pod, resources: [first], result: fail}"
SUITE = f"""\
apiVersion: cli.kyverno.io/v1alpha1
kind: Test
metadata: {{name: suite}}
policies: [policy.yaml]
resources: [pod.yaml]
variables: values.yaml
results:
- {ROW}
"""
# a name as it is written, and with a mistake
MISSPELT = {
    "owner: somebody": "onwer",
    "name: guard": "gaurd",
    "name: check": "chekc",
    "settings.data.mode": "settings.data.mdoe",
    "settings: {": "setings",
    "name: first": "frist",
    "name: team": "taem",
}
EXCEPTION = """\
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: holiday, namespace: team}
spec:
  exceptions: [{policyName: guard, ruleNames: [check]}]
  match: {any: [{resources: {kinds: [Pod], names: [first]}}]}
"""


@pytest.fixture(autouse=True)
def _files(folder: Path) -> None:
    """Write files without a mistake."""
    for name, text in {
        "policy.yaml": POLICY + CEL,
        "pod.yaml": POD,
        "values.yaml": VALUES,
        "kyverno-test.yaml": SUITE,
        "exception.yaml": EXCEPTION,
    }.items():
        (folder / name).write_text(text)


APPLY = ("apply", "policy.yaml", "-r", "pod.yaml", "-f", "values.yaml")


@pytest.mark.parametrize("line", [APPLY, ("test", "."), (*APPLY, "-e", "exception.yaml")])
def test_names_that_are_right_are_no_warning(cli: Run, line: tuple[str, ...]) -> None:
    """Neither of policies in CEL, whose rules have no names, nor of what changes the request."""
    assert "warning" not in cli(*line).err


@pytest.mark.parametrize("line", [APPLY, ("test", ".")])
@pytest.mark.parametrize("right", MISSPELT)
def test_each_misspelt_name_of_a_values_file_is_a_warning(
    cli: Run, folder: Path, line: tuple[str, ...], right: str
) -> None:
    """It names the file and the name, and the exit code stays what the results make it."""
    wrong = MISSPELT[right]
    key = next(part for part in right.split(" ") if part.strip(":{") not in ("name", ""))
    (folder / "values.yaml").write_text(VALUES.replace(right, right.replace(key.strip(":"), wrong), 1))
    warnings = [text for text in cli(*line).err.splitlines() if text.startswith("warning: ")]
    assert 1 == len([text for text in warnings if "values.yaml" in text and f"`{wrong}" in text]), warnings


def test_a_misspelt_variable_on_the_command_line_is_a_warning(cli: Run) -> None:
    """As is one that only a values file can set; green runs stay green."""
    pod = ("apply", "policy.yaml", "-r", "pod.yaml")
    given = "owner=a,settings.data.mode=lax"
    assert "warning" not in cli(*pod, "-s", given).err
    assert "warning: --set: no policy reads the variable `onwer`\n" in cli(*pod, "-s", f"{given},onwer=b").err
    assert "--set request.object.kind has no effect" in cli(*pod, "-s", f"{given},request.object.kind=b").err
    assert "warning" not in cli(*pod, "-s", f"{given},onwer=b", "--compat", "kyverno").err


@pytest.mark.parametrize(
    ("right", "wrong", "text"),
    [
        ("resources: [first]", "resources: [frist]", "guard/check: no resource is named `frist`"),
        ("resources: [first]", "resources: [first, secnd]", "guard/check: no resource is named `secnd`"),
        ("rule: check", "rule: chekc", "guard/chekc: the policy has no rule `chekc`"),
        ("policy: guard", "policy: gaurd", "gaurd/check: the test loads no policy `gaurd`: did you mean `guard`?"),
    ],
)
@pytest.mark.parametrize("form", [(), ("-o", "json")])
def test_each_misspelt_name_of_a_row_is_said(
    cli: Run, folder: Path, right: str, wrong: str, text: str, form: tuple[str, ...]
) -> None:
    """Kyverno lets such a row pass about other resources."""
    (folder / "kyverno-test.yaml").write_text(SUITE.replace(right, wrong))
    ran = cli("test", ".", *form)
    assert text in ran.err
    assert "warning" not in cli("test", ".", "--strict").err


def test_exceptions_of_other_policies_are_said_once(cli: Run, folder: Path) -> None:
    """Wildcards and policies in CEL count."""
    other = EXCEPTION.replace("guard", "gaurd").replace("holiday", "other")
    cel = "apiVersion: policies.kyverno.io/v1\nkind: PolicyException\nmetadata: {name: new}\nspec:\n"
    cel += "  policyRefs: [{name: modern, kind: ValidatingPolicy}]\n"
    (folder / "exception.yaml").write_text("---\n".join((EXCEPTION, EXCEPTION.replace("guard", "gua*"), other, cel)))
    ran = cli(*APPLY, "-e", "exception.yaml")
    assert 1 == ran.err.count("warning: ")
    assert "warning: exceptions: no policy of this run is named in `other`\n" in ran.err
