"""`pyverno report --diff`: a policy beside those that replace it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from pyverno.cli.root import run
from tests.unit.report.test_collected import report

OLD = {"policy": "p", "rule": "r", "source": "kyverno"}
NEW = {"policy": "p", "source": "KyvernoValidatingPolicy"}
RENAMED = {"policy": "p-audit", "source": "KyvernoValidatingPolicy"}


def compare(folder: Path, flag: str, *results: dict[str, str]) -> int:
    """Compare the results of a report; all of them are about one Pod."""
    path = folder / "report.yaml"
    path.write_text(yaml.safe_dump(report(*results)))
    return run(["report", str(path), "--diff", flag])


@pytest.mark.parametrize(("flag", "new"), [("p=p", NEW), ("p=p-audit", RENAMED), ("p=p-audit+p-enforce", RENAMED)])
def test_policies_that_name_the_same_objects_are_alike(
    flag: str, new: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also under the same name: the source tells them apart."""
    assert 0 == compare(tmp_path, flag, {**OLD, "result": "fail"}, {**new, "result": "fail"})
    assert "problems of the same 1 objects" in capsys.readouterr().out


@pytest.mark.parametrize(("old", "new", "side"), [("fail", "pass", "old"), ("pass", "error", "new")])
def test_an_object_that_one_side_names_is_a_difference(
    old: str, new: str, side: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the side, and its message."""
    found = {**OLD, "result": old, "message": "old"}, {**NEW, "result": new, "message": "new"}
    assert 1 == compare(tmp_path, "p=p", *found)
    shown = capsys.readouterr().out
    assert "1 objects differ, 0 are named by both" in shown
    assert [side, "team", "Pod/a", side] == [each.strip() for each in shown.splitlines()[-2].strip("│").split("│")]


def test_without_results_of_a_side_nothing_was_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty comparison is no success."""
    assert 1 == compare(tmp_path, "p=p", {**OLD, "result": "pass"})
    assert "no results of new p, nothing was compared" in capsys.readouterr().out


def test_a_flag_of_another_form_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the forms that there are."""
    assert 0 != compare(tmp_path, "p", {**OLD, "result": "pass"})
    assert "expected OLD=NEW or OLD=NEW+NEW" in capsys.readouterr().err
