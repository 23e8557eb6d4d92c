"""`pyverno apply` warns about mistakes in policies that `pyverno lint` finds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.linting import policy, rule

if TYPE_CHECKING:
    from tests.support.commandline import Run

WARNING = "p.yaml:9:45: PV104 Pod has no field `hostPid` here: did you mean `hostPID`?"
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: b}]}\n"


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy with one finding, and two pods."""
    monkeypatch.chdir(tmp_path)
    Path("p.yaml").write_text(policy(rule("validate: {message: m, pattern: {spec: {=(hostPid): false}}}")))
    Path("pod.yaml").write_text(f"{POD}---\n{POD.replace('name: a}', 'name: b}', 1)}")


def test_a_finding_is_one_warning_however_many_objects_there_are(cli: Run) -> None:
    """On stderr, with its place; the exit code is that of the results."""
    ran = cli("apply", "p.yaml", "-r", "pod.yaml")
    assert (0, 1) == (ran.code, ran.err.count(f"warning: {WARNING}\n"))


@pytest.mark.parametrize("flags", [("--no-lint",), ("--compat", "kyverno")])
def test_lints_can_be_switched_off(cli: Run, flags: tuple[str, ...]) -> None:
    """Kyverno has no lints."""
    assert "PV104" not in cli("apply", "p.yaml", "-r", "pod.yaml", *flags).err


def test_code_scanning_shows_findings_in_policies(cli: Run) -> None:
    """Beside the results, as warnings at the place in the policy."""
    ran = cli("apply", "p.yaml", "-r", "pod.yaml", "--format", "sarif")
    [result] = json.loads(ran.out)["runs"][0]["results"]
    where = result["locations"][0]["physicalLocation"]
    assert ("PV104", "warning", "p.yaml", 9) == (
        result["ruleId"],
        result["level"],
        where["artifactLocation"]["uri"],
        where["region"]["startLine"],
    )
