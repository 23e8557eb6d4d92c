"""Machine-readable report formats, with any text in the findings."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest
import yaml

from pyverno.engine.result import PatternDetail, PodSecurityDetail, ResourceRef, Status
from pyverno.errors import Location
from pyverno.kube.yaml.documents import load_documents
from pyverno.report.exceptions import any_tag, exception_for
from pyverno.report.finding import Finding, finding
from pyverno.report.formats.junit import Case, junit, write_case
from pyverno.report.formats.registry import FORMATTERS
from pyverno.report.markdown import markdown_table
from pyverno.report.policyreport import ReportEntry
from pyverno.report.table import draw_table
from tests.unit.report.results import POD, result

NASTY = 'a]]>&<b>"\n::error::x%\r\x00'


def test_a_finding_points_at_the_field() -> None:
    """If the field is absent, the place is that of its nearest ancestor in the file."""
    (document,) = load_documents("kind: Pod\nspec:\n  containers:\n  - image: x\n", file="pod.yaml")
    found = finding(result(detail=PatternDetail("/spec/containers/0/image/")), POD, document)
    assert Location("pod.yaml", 4, 12) == found.location
    found = finding(result(detail=PatternDetail("/spec/hostPID/")), POD, document)
    assert Location("pod.yaml", 3, 3) == found.location
    assert Location("policy.yaml", 7, 5) == found.rule_location


@pytest.mark.parametrize("name", sorted(FORMATTERS))
def test_no_text_breaks_a_format(name: str) -> None:
    """Messages come from policies and resources, so any character may occur."""
    ref = ResourceRef("v1", "Pod", NASTY, NASTY)
    text = FORMATTERS[name]([Finding("p", NASTY, ref, "fail", NASTY, location=Location("a b.yaml", 1, 1))])
    match name:
        case "json" | "sarif":
            json.loads(text)
        case "yaml":
            assert NASTY == yaml.safe_load(text)["results"][0]["message"]
        case "junit":
            ElementTree.fromstring(text)  # noqa: S314 - our own text
        case "github":
            assert 1 == text.count("\n")
            assert text.startswith(
                '::error file=a b.yaml,line=1,col=1,title=p/a]]>&<b>"%0A%3A%3Aerror%3A%3Ax%25\\r\\x00'
            )


def test_only_problems_are_annotated() -> None:
    """Passes and skips are left out of code scanning and annotations."""
    found = [Finding("p", "r", POD, status) for status in ("pass", "skip", "warn", "error")]
    assert 2 == len(json.loads(FORMATTERS["sarif"](found))["runs"][0]["results"])
    assert ["::warning", "::error"] == [line.split(" ")[0] for line in FORMATTERS["github"](found).splitlines()]


def test_sarif_rules_are_listed_once() -> None:
    """Results refer to them by number."""
    found = [Finding("p", rule, POD, "fail", severity="high", category="C") for rule in ("a", "b", "a")]
    run = json.loads(FORMATTERS["sarif"](found))["runs"][0]
    assert ["p/a", "p/b"] == [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert [0, 1, 0] == [each["ruleIndex"] for each in run["results"]]
    assert {"tags": ["C"], "security-severity": "8.0"} == run["tool"]["driver"]["rules"][0]["properties"]


def test_junit_counts_failures_per_policy() -> None:
    """Each policy is a test suite."""
    cases = [
        Case("p", "r", "a", "Pass"),
        Case("q", "r", "a", "Fail", "Want pass, got fail", is_failure=True),
    ]
    suites = ElementTree.fromstring("".join(junit(map(write_case, cases))))  # noqa: S314 - our own text
    assert [("p", "0"), ("q", "1")] == [(suite.get("name"), suite.get("failures")) for suite in suites]
    failure = next(suites.iter("failure"))
    assert "Want pass, got fail" == failure.get("message")


def test_markdown_cells_stay_in_their_column() -> None:
    """Pipes and line ends are escaped."""
    assert "| a\\|b<br>c |" == markdown_table(["X"], [["a|b\nc"]]).splitlines()[2]


def test_a_table_with_many_rows_counts_them() -> None:
    """The first header contains the number of rows."""
    drawn = draw_table(["ID"], [[str(number)] for number in range(11)])
    assert "│ ID (11) │" == drawn.splitlines()[1]
    assert "" == draw_table(["ID"], [])


def test_long_and_multiline_cells_wrap() -> None:
    """Lines break at words; on further lines the other columns are blank."""
    drawn = draw_table(["A", "B"], [["1", "x\n" + "word " * 80]]).splitlines()
    assert 7 == len(drawn)
    assert all(len(line) == len(drawn[0]) for line in drawn)
    assert drawn[4].startswith("│   │ word")


def test_cells_and_headers_may_be_painted() -> None:
    """Colours do not count for the width."""
    drawn = draw_table(
        ["A"], [["x"]], paint_header=lambda text: f"<{text}>", paint_cell=lambda column, text: f"[{text}]"
    )
    assert ["│< A >│", "│[ x ]│"] == [drawn.splitlines()[1], drawn.splitlines()[3]]


@pytest.mark.parametrize(
    ("kind", "rule", "kinds", "rules"),
    [
        ("Pod", "r", ["Pod"], ["r"]),
        ("Deployment", "autogen-r", ["Deployment", "Pod"], ["autogen-r", "r"]),
        ("CronJob", "autogen-cronjob-r", ["CronJob", "Job", "Pod"], ["autogen-cronjob-r", "autogen-r", "r"]),
    ],
)
def test_exceptions_cover_what_a_controller_makes(kind: str, rule: str, kinds: list[str], rules: list[str]) -> None:
    """An exception matches those objects and no others."""
    made = exception_for(ReportEntry(result(rule=rule), ResourceRef("v1", kind, "n", "a"), 0), ttl="1h0m0s")
    assert made is not None
    (block,) = made["spec"]["match"]["all"]
    names = ["a", "a-*"] if len(kinds) > 1 else ["a"]
    assert {"kinds": kinds, "names": names, "namespaces": ["n"]} == block["resources"]
    assert [{"policyName": "p", "ruleNames": rules}] == made["spec"]["exceptions"]
    assert ("kyverno.io/v2beta1", f"p-{rule}-n-a") == (made["apiVersion"], made["metadata"]["name"])


def test_exceptions_name_the_controls_that_failed() -> None:
    """The images are listed with any tag."""
    detail = PodSecurityDetail("baseline", "latest", ({"id": "c", "name": "Capabilities", "images": ["r:5000/a:1"]},))
    made = exception_for(ReportEntry(result(detail=detail), POD, 0))
    assert made is not None
    assert [{"controlName": "Capabilities", "images": ["r:5000/a*"]}] == made["spec"]["podSecurity"]
    assert "labels" not in made["metadata"]


def test_only_failures_are_excused() -> None:
    """Warnings, errors and passes are not."""
    for said in (
        result(Status.PASS),
        result(Status.ERROR),
        result(annotations={"policies.kyverno.io/scored": "false"}),
    ):
        assert exception_for(ReportEntry(said, POD, 0)) is None


@pytest.mark.parametrize(("image", "expected"), [("a:1", "a*"), ("a@sha256:1", "a*"), ("h:1/a:1@sha256:1", "h:1/a*")])
def test_tags_and_digests_become_a_wildcard(image: str, expected: str) -> None:
    """The port of a registry is kept."""
    assert expected == any_tag(image)
