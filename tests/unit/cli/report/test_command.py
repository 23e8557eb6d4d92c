"""`pyverno report` on files and on a cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from kubesandbox import Sandbox
from pyverno.cli.root import run
from tests.unit.report.test_collected import report

FAIL = {"policy": "p", "rule": "r", "result": "fail", "severity": "high", "message": "no"}
PASS = {"policy": "q", "rule": "r", "result": "pass"}


def _file(folder: Path, *results: dict[str, str], name: str = "report.yaml") -> str:
    path = folder / name
    path.write_text(yaml.safe_dump(report(*results)))
    return str(path)


def test_the_table_has_counts_and_problems(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without colour where it is no terminal."""
    assert 0 == run(["report", _file(tmp_path, FAIL, PASS)])
    out = capsys.readouterr().out
    assert "1 fail, 0 error, 0 warn, 0 skip, 1 pass" in out
    assert "│ fail   │ high     │ p      │ r    │ team      │ Pod/a    │ no      │" in out
    assert "\x1b" not in out


@pytest.mark.parametrize("form", ["json", "yaml", "markdown", "html", "csv", "sarif", "junit"])
def test_every_format_shows_the_problem(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On stdout, or in a file with the same text."""
    source, target = _file(tmp_path, FAIL), tmp_path / "out"
    assert 0 == run(["report", source, "-o", form])
    shown = capsys.readouterr().out
    assert 0 == run(["report", source, "-o", form, "--output", str(target)])
    assert "no" in shown
    assert shown == target.read_bytes().decode()


def test_the_exit_code_is_one_for_the_statuses_of_fail_on(tmp_path: Path) -> None:
    """The exit code is zero when no result has one of these statuses."""
    source = _file(tmp_path, FAIL)
    assert [1, 0] == [run(["report", source, "--fail-on", status]) for status in ("fail,error", "error")]


def test_results_can_be_selected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every filter takes what it names, with wildcards in names."""
    source = _file(tmp_path, FAIL, PASS)
    counts = []
    for words in (["--policy", "p*"], ["--severity", "high"], ["--status", "pass"], ["--kind", "Deployment"]):
        assert 0 == run(["report", source, "-o", "json", *words])
        counts.append(len(json.loads(capsys.readouterr().out)["results"]))
    assert [1, 1, 1, 0] == counts


def test_filters_that_select_nothing_are_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A misspelt name looks like a clean report."""
    assert 0 == run(["report", _file(tmp_path, FAIL), "--policy", "typo", "--fail-on", "fail"])
    assert "note: the filters select none of 1 results\n" == capsys.readouterr().err


def test_an_earlier_output_is_a_baseline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The JSON of the command, or the reports themselves."""
    old = _file(tmp_path, FAIL, name="old.yaml")
    before = tmp_path / "before.json"
    assert 0 == run(["report", old, "-o", "json", "--output", str(before)])
    new = _file(tmp_path, FAIL, {**FAIL, "policy": "fresh"}, name="new.yaml")
    for baseline in (old, str(before)):
        assert 0 == run(["report", new, "--since", baseline, "-o", "json"])
        found = json.loads(capsys.readouterr().out)
        assert (["fresh"], []) == ([each["policy"] for each in found["new"]], found["resolved"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--fail-on", "bad"], 'invalid argument "bad" for "--fail-on" flag: expected fail, error, warn, skip, pass'),
        (["--severity", "huge"], 'invalid argument "huge" for "--severity" flag'),
        (["--kubeconfig", "x"], "give either files or --kubeconfig and --context, not both"),
    ],
)
def test_a_wrong_flag_is_one_clear_error(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A word that selects nothing is a mistake, not an empty report."""
    assert 0 != run(["report", _file(tmp_path, FAIL), *words])
    assert message in capsys.readouterr().err


def test_files_without_a_report_are_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty answer would look clean."""
    (tmp_path / "pod.yaml").write_text("kind: Pod\n")
    assert 0 != run(["report", str(tmp_path / "pod.yaml")])
    assert "holds no PolicyReport, ClusterPolicyReport, Report or ClusterReport" in capsys.readouterr().err


def test_a_file_that_cannot_be_read_is_reported_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The rest is shown."""
    (tmp_path / "bad.yaml").write_text("a: [")
    _file(tmp_path, FAIL)
    assert 1 == run(["report", str(tmp_path), "--summary"])
    captured = capsys.readouterr()
    assert "1 fail" in captured.out
    assert "bad.yaml" in captured.err


def test_a_cluster_without_reports_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """No definitions of reports is not the same as no results."""
    with Sandbox() as sandbox:
        assert 0 != run(["report", "--kubeconfig", sandbox.kubeconfig])
    assert "the cluster serves no reports" in capsys.readouterr().err


def test_a_document_whose_kind_is_no_string_is_no_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is passed over as any other document."""
    (tmp_path / "odd.yaml").write_text("apiVersion: wgpolicyk8s.io/v1alpha2\nkind: [PolicyReport]\n")
    assert 1 == run(["report", str(tmp_path / "odd.yaml")])
    assert "holds no PolicyReport" in capsys.readouterr().err
