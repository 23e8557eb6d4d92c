"""Formats of build servers: required fields, and escaping of every text."""

from __future__ import annotations

import csv
import io
import json
from html.parser import HTMLParser

import pytest

from pyverno.engine.result import ResourceRef
from pyverno.errors import Location
from pyverno.report.finding import Finding
from pyverno.report.formats.registry import FORMATTERS
from pyverno.report.problem import Problem

POD = ResourceRef("v1", "Pod", "shop", "a")
AT = Location("./k8s/pod.yaml", 7, 3)
FAIL = Finding("p", "r", POD, "fail", "no\ntags", "high", location=AT, path="/spec/containers/0/image/")
WARN = Finding("p", "s", POD, "warn", "look", location=AT)
ERROR = Finding("p", "t", POD, "error", "broken", location=AT)
PASS = Finding("p", "r", POD, "pass", location=AT)
SKIP = Finding("p", "u", POD, "skip", "excused #1", location=AT)
ALL = [PASS, FAIL, WARN, ERROR, SKIP]
PROBLEM = Problem("cannot read `b.yaml`", "document", Location("b.yaml", 2, 1))


def test_gitlab_issues_have_what_code_quality_needs() -> None:
    """Description, name of the check, a unique fingerprint, severity, relative path and line."""
    issues = json.loads(FORMATTERS["gitlab"](ALL, [PROBLEM]))
    assert ["blocker", "critical", "minor", "major"] == [each["severity"] for each in issues]
    assert {"path": "k8s/pod.yaml", "lines": {"begin": 7}} == issues[1]["location"]
    assert ("p/r", "shop/Pod/a: no\ntags") == (issues[1]["check_name"], issues[1]["description"])
    assert len(issues) == len({each["fingerprint"] for each in issues})


def test_a_fingerprint_survives_lines_that_move() -> None:
    """It survives a list element that moves, too; two equal findings have two fingerprints."""
    moved = Finding(
        "p", "r", POD, "fail", "no", location=Location("k8s/pod.yaml", 99, 1), path="/spec/containers/4/image/"
    )
    first, second = (json.loads(FORMATTERS["gitlab"]([each]))[0]["fingerprint"] for each in (FAIL, moved))
    assert first == second
    twice = json.loads(FORMATTERS["gitlab"]([FAIL, FAIL]))
    assert twice[0]["fingerprint"] != twice[1]["fingerprint"]


def test_azure_issues_are_errors_and_warnings_with_their_place() -> None:
    """Each finding is one command on one line."""
    lines = FORMATTERS["azure"](ALL, [PROBLEM]).splitlines()
    assert ["error", "error", "warning", "error"] == [line.split("type=")[1].split(";")[0] for line in lines]
    expected = "##vso[task.logissue type=error;sourcepath=./k8s/pod.yaml;linenumber=7;columnnumber=3;code=p/r]"
    assert f"{expected}shop/Pod/a: no%0Atags" == lines[1]


def test_teamcity_has_a_type_for_each_rule() -> None:
    """The type precedes its first inspection; a source that could not be read is a build problem."""
    lines = FORMATTERS["teamcity"]([FAIL, FAIL, WARN], [PROBLEM]).splitlines()
    kinds = [line.removeprefix("##teamcity[").split(" ")[0] for line in lines]
    assert ["buildProblem", "inspectionType", "inspection", "inspection", "inspectionType", "inspection"] == kinds
    assert "message='shop/Pod/a: no|ntags' file='./k8s/pod.yaml' line='7' SEVERITY='ERROR'" in lines[2]


def test_teamcity_writes_other_alphabets_as_numbers() -> None:
    """Other characters are written as UTF-16 code units."""
    (_, line) = FORMATTERS["teamcity"]([Finding("p", "r", POD, "fail", "é\U0001f600")]).splitlines()
    assert "é".encode() not in line.encode()
    assert "|0x00e9|0xd83d|0xde00" in line


def test_tap_has_a_point_for_each_result() -> None:
    """A warning is a TODO, a skip has its reason, and a problem fails."""
    lines = FORMATTERS["tap"](ALL, [PROBLEM]).splitlines()
    assert ["TAP version 14", "1..6"] == lines[:2]
    points = [line for line in lines if line.startswith(("ok", "not ok"))]
    expected = [
        "not ok 1 - pyverno document",
        "ok 2 - p/r shop/Pod/a",
        "not ok 3 - p/r shop/Pod/a",
        "not ok 4 - p/s shop/Pod/a # TODO warning",
        "not ok 5 - p/t shop/Pod/a",
        "ok 6 - p/u shop/Pod/a # SKIP excused \\#1",
    ]
    assert expected == points


def test_a_job_summary_counts_and_lists_what_needs_attention() -> None:
    """The summary stays within the size that GitHub accepts."""
    text = FORMATTERS["markdown"](ALL, [PROBLEM])
    assert "| 1 | 1 | 1 | 1 | 1 | 1 |" in text
    assert "| fail | high | p/r | shop/Pod/a | ./k8s/pod.yaml:7:3 | no<br>tags |" in text
    assert "| b.yaml:2:1 | cannot read \\`b.yaml\\` |" in text
    many = FORMATTERS["markdown"]([Finding("p", "r", POD, "fail", "\u4e00" * 9000)] * 1200)
    assert len(many.encode()) < 1024 * 1024
    assert "… and " in many


def test_csv_has_places_and_no_formulas() -> None:
    """Text of a policy never becomes a formula in a spreadsheet."""
    rows = [*csv.DictReader(io.StringIO(FORMATTERS["csv"]([Finding("p", "r", POD, "fail", "=1+1", location=AT)])))]
    assert ("'=1+1", "7", "3") == (rows[0]["message"], rows[0]["line"], rows[0]["column"])


def test_html_is_one_page_that_shows_errors_of_the_run() -> None:
    """Texts are escaped."""
    found: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.append(tag)

    text = FORMATTERS["html"]([Finding("p", "r", POD, "fail", "<script>x</script>", severity="None")], [PROBLEM])
    Reader().feed(text)
    assert "script" not in found
    assert "cannot read `b.yaml`" in text


@pytest.mark.parametrize("name", ["azure", "teamcity"])
def test_no_text_starts_a_command_of_its_own(name: str) -> None:
    """Names of files, rules and messages stay in one line, and inside their property."""
    nasty = "x]\n##vso[task.setvariable variable=a]b\r\n##teamcity[publishArtifacts '/etc/passwd']\u2028"
    each = Finding(nasty, nasty, ResourceRef("v1", "Pod", nasty, nasty), "fail", nasty, location=Location(nasty, 1, 1))
    text = FORMATTERS[name]([each], [Problem(nasty, "usage", Location(nasty))])
    prefix = {"azure": "##vso[task.logissue ", "teamcity": "##teamcity["}[name]
    assert all(line.startswith(prefix) for line in text.split("\n") if line)
    assert "\r" not in text
