"""Results for machines: every format names resource and rule with file, line and column."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import yaml

if TYPE_CHECKING:
    from tests.support.commandline import Run

ARGUMENTS = ("apply", "latest.yaml", "-r", "good.yaml,bad.yaml", "--format")


def test_json_holds_every_result_with_its_places(cli: Run) -> None:
    """The place of a failure is the field that does not fit."""
    ran = cli(*ARGUMENTS, "json")
    found = json.loads(ran.out)
    assert (1, {"pass": 1, "fail": 1, "warn": 0, "error": 0, "skip": 0}) == (ran.code, found["summary"])
    failure = found["results"][1]
    assert {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "shop",
        "name": "bad",
        "file": "bad.yaml",
        "line": 9,
        "column": 12,
    } == failure["resource"]
    assert ("latest.yaml", 11) == (failure["source"]["file"], failure["source"]["line"])
    assert "/spec/containers/0/image/" == failure["path"]


def test_yaml_is_the_same_listing(cli: Run) -> None:
    """Only written otherwise."""
    assert json.loads(cli(*ARGUMENTS, "json").out) == yaml.safe_load(cli(*ARGUMENTS, "yaml").out)


def test_sarif_has_a_rule_and_a_result(cli: Run) -> None:
    """For code scanning."""
    run = json.loads(cli(*ARGUMENTS, "sarif").out)["runs"][0]
    assert ["no-latest/tag"] == [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    (result,) = run["results"]
    assert ("error", 0) == (result["level"], result["ruleIndex"])
    place = result["locations"][0]["physicalLocation"]
    assert ("bad.yaml", {"startLine": 9, "startColumn": 12}) == (place["artifactLocation"]["uri"], place["region"])


def test_junit_is_well_formed(cli: Run) -> None:
    """One suite per policy."""
    suites = ElementTree.fromstring(cli(*ARGUMENTS, "junit").out)  # noqa: S314 - our own text
    assert ("2", "1") == (suites.get("tests"), suites.get("failures"))
    assert ["shop/Pod/good", "shop/Pod/bad"] == [case.get("name") for case in suites.iter("testcase")]


def test_github_annotates_the_field(cli: Run) -> None:
    """One line per problem."""
    (line,) = cli(*ARGUMENTS, "github").out.splitlines()
    assert line.startswith("::error file=bad.yaml,line=9,col=12,title=no-latest/tag::shop/Pod/bad: validation error")


def test_nothing_else_is_on_stdout(cli: Run) -> None:
    """Errors and reasons of exit codes go to stderr."""
    ran = cli("apply", "audited.yaml", "invalid.yaml", "-r", "bad.yaml", "--format", "json")
    assert (1, True) == (ran.code, "Error: invalid.yaml:" in ran.err)
    json.loads(ran.out)
    ran = cli("apply", "audited.yaml", "-r", "bad.yaml", "--audit-warn", "--warn-exit-code", "5", "-p")
    assert (5, True) == (ran.code, "exit as warnExitCode is 5" in ran.err)
