"""The places where people pick pyverno up: the GitHub Action, hooks of pre-commit, the plug-in of kubectl."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: shop, namespace: shop}
spec:
  hostPID: %s
  containers: [{name: main, image: "registry.example/app:1"}]
"""


def document(name: str) -> Any:
    """Return a YAML file of the repository."""
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def run_action(folder: Path, **inputs: str) -> tuple[int, str, dict[str, str], str]:
    """Run the last step of the action as a runner does; return exit code, log, outputs and summary."""
    action = document("action.yml")
    step = action["runs"]["steps"][-1]
    given = {name: each.get("default", "") for name, each in action["inputs"].items()} | inputs
    variables = {
        name: given[text.removeprefix("${{ inputs.").removesuffix(" }}")] for name, text in step["env"].items()
    }
    program = folder / "bin" / "pyverno"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pyverno "$@"\n')
    program.chmod(0o755)
    output, summary = folder / "output", folder / "summary"
    paths = {"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary)}
    environment = {**os.environ, **variables, **paths, "PATH": f"{program.parent}:{os.environ['PATH']}"}
    command = ["bash", "-e", "-o", "pipefail", "-c", step["run"]]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    outputs = dict(line.split("=", 1) for line in output.read_text().splitlines())
    return ran.returncode, ran.stdout + ran.stderr, outputs, summary.read_text()


@pytest.mark.parametrize(
    ("host_pid", "code", "summary"), [("true", 1, "Rules failed"), ("false", 0, "Nothing failed.")]
)
def test_the_action_passes_the_exit_code_on(tmp_path: Path, host_pid: str, code: int, summary: str) -> None:
    """As exit code of the step, as an output, and in the summary of the job."""
    (tmp_path / "pod.yaml").write_text(POD % host_pid)
    found = run_action(tmp_path, policies="@pod-security/baseline", resources="pod.yaml")
    assert (code, {"exit-code": str(code), "file": ""}) == (found[0], found[2])
    assert summary in found[3]
    assert (code == 1) == ("::error" in found[1])


def test_the_action_writes_a_file_for_code_scanning(tmp_path: Path) -> None:
    """With the name in the outputs, for the step that uploads it."""
    (tmp_path / "pod.yaml").write_text(POD % "true")
    code, _, outputs, _ = run_action(
        tmp_path, policies="@pod-security/baseline", resources="pod.yaml", format="sarif", output="found.sarif"
    )
    assert (1, "found.sarif") == (code, outputs["file"])
    assert "2.1.0" == json.loads((tmp_path / "found.sarif").read_text())["version"]


def test_hooks_name_commands_that_exist() -> None:
    """Each hook of pre-commit starts a program of the wheel and a command of it."""
    from pyverno.cli.root import root

    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    words = [hook["entry"].split() for hook in document(".pre-commit-hooks.yaml")]
    assert {"pyverno"} == {program for program, _ in words}
    assert {"apply", "lint", "test"} == {command for _, command in words}
    assert scripts["pyverno"] == scripts["kubectl-pyverno"]
    assert {command for _, command in words} <= set(root.list_commands(click.Context(root)))
