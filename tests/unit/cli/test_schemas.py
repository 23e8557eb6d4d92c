"""Documents of commands fit their published schemas, with findings, warnings and errors of the input in them.

`sarif` is a schema of our own: the part of SARIF 2.1.0 that we write. JUnit has no official schema; the elements and
attributes here are those that build servers read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest

from pyverno.cli.docs import SCHEMAS, schema_text
from tests.support.documents import AUDITED, LATEST
from tests.support.jsonschema import schema_errors

if TYPE_CHECKING:
    from tests.support.commandline import Run

REFERENCE = Path(__file__).parents[3] / "docs/reference/schemas"
APPLY = ("apply", "p", "-r", "good.yaml,bad.yaml,torn.yaml,missing.yaml", "--audit-warn")
JUNIT: dict[str, tuple[set[str], set[str]]] = {
    "testsuites": ({"tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": ({"name", "tests", "failures", "errors"}, {"testcase"}),
    "testcase": ({"classname", "name"}, {"failure", "error", "system-out"}),
    "failure": ({"message"}, set()),
    "error": ({"message"}, set()),
    "system-out": (set(), set()),
}
REPORT = """\
apiVersion: wgpolicyk8s.io/v1alpha2
kind: PolicyReport
metadata: {name: r, namespace: shop}
scope: {apiVersion: v1, kind: Pod, name: bad, namespace: shop}
results:
- {policy: p, rule: r, result: fail, message: no, severity: high, source: kyverno, timestamp: {seconds: 5, nanos: 0}}
"""
SUITE = """\
apiVersion: cli.kyverno.io/v1alpha1
kind: Test
metadata: {name: t}
policies: [latest.yaml]
resources: [good.yaml, bad.yaml, missing.yaml]
results:
- {policy: no-latest, rule: tag, kind: Pod, resources: [good, bad], result: pass}
"""
SEVERE = "severity: medium\n    policies.kyverno.io/description: Why."


@pytest.fixture
def inputs(folder: Path) -> Path:
    """Files for every kind of result."""
    (folder / "p").mkdir()
    (folder / "p" / "latest.yaml").write_text(
        LATEST.replace("severity: high", SEVERE).replace("controllers: none", "controllers: Deployment")
    )
    (folder / "p" / "audited.yaml").write_text(AUDITED)
    (folder / "p" / "broken.yaml").write_text(LATEST.replace("rules:", "ruels:"))
    (folder / "torn.yaml").write_text("apiVersion: v1\nkind: [1\n")
    (folder / "report.yaml").write_text(REPORT)
    (folder / "kyverno-test.yaml").write_text(SUITE)
    return folder


@pytest.mark.parametrize(
    ("schema", "command"),
    [
        ("apply", (*APPLY, "--format", "json")),
        ("sarif", (*APPLY, "--format", "sarif")),
        ("test", ("test", ".", "-o", "json", "--detailed-results")),
        ("report", ("report", "report.yaml", "torn.yaml", "-o", "json")),
        ("lint", ("lint", "p", "missing.yaml", "--format", "json")),
        ("explain", ("explain", "p", "-r", "good.yaml,bad.yaml,missing.yaml", "--all", "-o", "json")),
        ("sarif", ("report", "report.yaml", "torn.yaml", "-o", "sarif")),
        ("sarif", ("lint", "p", "missing.yaml", "--format", "sarif")),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
@pytest.mark.usefixtures("inputs")
def test_documents_fit_their_schema(cli: Run, schema: str, command: tuple[str, ...]) -> None:
    """Every command that writes the format, with results and errors."""
    document = json.loads(cli(*command).out)
    assert [] == [*schema_errors(document, json.loads(schema_text(schema)))]
    errors = document.get("errors") or document["runs"][0]["invocations"][0]["toolExecutionNotifications"]
    assert errors


@pytest.mark.usefixtures("inputs")
def test_counts_agree_with_results_and_exit_code(cli: Run) -> None:
    """In every format; the places of the errors are there."""
    ran = cli(*APPLY, "--format", "json")
    found = json.loads(ran.out)
    results = [each["status"] for each in found["results"]]
    expected = {status: results.count(status) for status in ("pass", "fail", "warn", "skip", "error")}
    expected["error"] += len(found["errors"])
    assert (1, expected) == (ran.code, found["summary"])
    places = {each["file"]: each["line"] for each in found["errors"] if "line" in each}
    assert {str(Path("p") / "broken.yaml"): 10, "torn.yaml": 2} == places
    suites = ElementTree.fromstring(cli(*APPLY, "--format", "junit").out)  # noqa: S314 - our own text
    assert str(expected["error"]) == suites.get("errors") == str(len([*suites.iter("error")]))
    assert str(expected["fail"]) == suites.get("failures") == str(len([*suites.iter("failure")]))
    annotations = cli(*APPLY, "--format", "github").out.splitlines()
    assert expected["fail"] + expected["error"] == sum(line.startswith("::error ") for line in annotations)
    assert any(line.startswith("::error file=torn.yaml,line=2,col=") for line in annotations)
    text = cli(*APPLY).out
    assert f"error: {expected['error']}" in text


@pytest.mark.parametrize(
    "command",
    [
        (*APPLY, "--format", "junit"),
        ("test", ".", "-o", "junit"),
        ("report", "report.yaml", "torn.yaml", "-o", "junit"),
        ("lint", "p", "torn.yaml", "missing.yaml", "--format", "junit"),
    ],
    ids=lambda words: words[0],
)
@pytest.mark.usefixtures("inputs")
def test_junit_has_known_elements_only(cli: Run, command: tuple[str, ...]) -> None:
    """And counts that are right."""
    root = ElementTree.fromstring(cli(*command).out)  # noqa: S314 - our own text
    _check(root)
    for suite in root:
        counted = [len(suite), len([*suite.iter("failure")]), len([*suite.iter("error")])]
        assert counted == [int(suite.get(name, "")) for name in ("tests", "failures", "errors")]


def _check(element: Any) -> None:
    required, children = JUNIT[element.tag]
    assert required <= set(element.attrib) <= required | {"type"}
    for child in element:
        assert child.tag in children
        _check(child)


def test_sarif_levels_follow_the_severity_and_rules_carry_help(cli: Run, inputs: Path) -> None:
    """A rule and its copies for controllers of pods are one."""
    pod = "  template: {spec: {containers: [{name: a, image: 'x:latest'}]}}\n"
    deployment = f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: d}}\nspec:\n{pod}"
    (inputs / "deployment.yaml").write_text(deployment)
    ran = cli("apply", "p/latest.yaml", "-r", "bad.yaml,deployment.yaml", "--format", "sarif")
    run = json.loads(ran.out)["runs"][0]
    (rule,) = run["tool"]["driver"]["rules"]
    assert ("no-latest/tag", "warning", True) == (
        rule["id"],
        rule["defaultConfiguration"]["level"],
        rule["help"]["text"].startswith("Why."),
    )
    assert [("no-latest/tag", "warning")] * 2 == [(each["ruleId"], each["level"]) for each in run["results"]]
    assert run["invocations"][0]["executionSuccessful"]


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_printed_and_published(cli: Run, name: str) -> None:
    """The same text in the wheel and in the reference."""
    text = cli("docs", "--schema", name).out
    assert text == schema_text(name) == (REFERENCE / f"{name}.json").read_text(encoding="utf-8")
