"""The integrations through which people get pyverno: the GitHub Action, pre-commit hooks, the kubectl plug-in."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
BASELINE = "@pod-security/baseline/disallow-host-namespaces"
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


def run_action(folder: Path, base: str = "", **inputs: str) -> tuple[int, str, dict[str, str], str]:
    """Run the step `apply` of the action as a runner does; return exit code, log, outputs and summary.

    `base` is the commit that a pull request is for.
    """
    action = document("action.yml")
    [step] = [each for each in action["runs"]["steps"] if each.get("id") == "apply"]
    given = {name: each.get("default", "") for name, each in action["inputs"].items()} | inputs
    known = {f"inputs.{name}": value for name, value in given.items()}
    known["github.event.pull_request.base.sha || github.event.merge_group.base_sha"] = base
    variables = {name: known[text.removeprefix("${{ ").removesuffix(" }}")] for name, text in step["env"].items()}
    program = folder / "bin" / "pyverno"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pyverno "$@"\n')
    program.chmod(0o755)
    output, summary = folder / "output", folder / "summary"
    output.touch()
    summary.touch()
    paths = {"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary)}
    environment = {**os.environ, **variables, **paths, "PATH": f"{program.parent}:{os.environ['PATH']}"}
    command = ["bash", "-e", "-o", "pipefail", "-c", step["run"]]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    outputs = dict(line.split("=", 1) for line in output.read_text().splitlines())
    return ran.returncode, ran.stdout + ran.stderr, outputs, summary.read_text()


@pytest.mark.parametrize(
    ("host_pid", "code", "summary"),
    [("true", 1, "| fail | high | disallow-host-namespaces"), ("false", 0, "No problems")],
)
def test_the_action_passes_the_exit_code_on(tmp_path: Path, host_pid: str, code: int, summary: str) -> None:
    """As exit code of the step, as an output, and in the summary of the job."""
    (tmp_path / "pod.yaml").write_text(POD % host_pid)
    found = run_action(tmp_path, policies=BASELINE, resources="pod.yaml")
    assert (code, {"exit-code": str(code), "file": ""}) == (found[0], found[2])
    assert summary in found[3]
    assert (code == 1) == ("::error" in found[1])


def test_the_action_writes_a_file_for_code_scanning(tmp_path: Path) -> None:
    """With the name in the outputs, for the step that uploads it."""
    (tmp_path / "pod.yaml").write_text(POD % "true")
    code, _, outputs, _ = run_action(
        tmp_path, policies=BASELINE, resources="pod.yaml", format="sarif", output="found.sarif"
    )
    assert (1, "found.sarif") == (code, outputs["file"])
    assert "2.1.0" == json.loads((tmp_path / "found.sarif").read_text())["version"]


@pytest.mark.parametrize("output", ["found.sarif", "./found.sarif", "linked/found.sarif", ""])
def test_the_action_writes_through_no_link_of_the_tree(tmp_path: Path, output: str) -> None:
    """The pull request may hold links in the places where the action writes."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/file").write_text("mine")
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "pod.yaml").write_text(POD % "true")
    for name in ("found.sarif", "found.sarif.summary", "pyverno.sarif", "pyverno.sarif.summary"):
        (folder / name).symlink_to("../outside/file")
    (folder / "linked").symlink_to("../outside")
    given = {"format": "sarif", "upload-sarif": "true", "output": output}
    code, log, outputs, _ = run_action(folder, policies=BASELINE, resources="pod.yaml", **given)
    assert (2, {}) == (code, outputs)
    assert log.startswith("::error::output: the checked out tree has a link")
    assert [("file", "mine")] == [(each.name, each.read_text()) for each in (tmp_path / "outside").iterdir()]


def test_the_summary_of_the_action_goes_through_no_link(tmp_path: Path) -> None:
    """It is made in the runner's temporary folder, not beside the results."""
    (tmp_path / "mine").write_text("mine")
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "pod.yaml").write_text(POD % "true")
    (folder / "found.sarif.summary").symlink_to("../mine")
    code, *_ = run_action(folder, policies=BASELINE, resources="pod.yaml", format="sarif", output="found.sarif")
    assert (1, "mine") == (code, (tmp_path / "mine").read_text())


def test_the_action_uploads_results_only_of_the_format_for_it(tmp_path: Path) -> None:
    """The upload takes the file that the step before names; another format ends with what to set."""
    (tmp_path / "pod.yaml").write_text(POD % "true")
    code, log, _, _ = run_action(tmp_path, policies="x", resources="pod.yaml", **{"upload-sarif": "true"})
    assert (2, "::error::upload-sarif needs format: sarif\n") == (code, log)
    (tmp_path / "bin" / "pyverno").unlink()
    (tmp_path / "bin").rmdir()
    given = {"format": "sarif", "upload-sarif": "true"}
    code, _, outputs, _ = run_action(tmp_path, policies=BASELINE, resources="pod.yaml", **given)
    assert (1, {"exit-code": "1", "file": "pyverno.sarif"}) == (code, outputs)
    assert "2.1.0" == json.loads((tmp_path / "pyverno.sarif").read_text())["version"]
    last = document("action.yml")["runs"]["steps"][-1]
    assert "${{ steps.apply.outputs.file }}" == last["with"]["sarif_file"]
    assert "always()" in last["if"]


@pytest.mark.parametrize(("name", "value"), [("baseline", "known.yaml"), ("fail-on", "critical")])
def test_the_action_fails_for_what_is_new_and_severe_enough(tmp_path: Path, name: str, value: str) -> None:
    """A baseline holds what is known, and the lowest severity that counts can be raised."""
    (tmp_path / "pod.yaml").write_text(POD % "true")
    rule = "disallow-host-namespaces/host-namespaces"
    known = {"field": "/spec/hostPID", "kind": "Pod", "name": "shop", "namespace": "shop", "rule": rule}
    (tmp_path / "known.yaml").write_text(json.dumps({"version": 1, "findings": [known]}))
    assert 0 == run_action(tmp_path, policies=BASELINE, resources="pod.yaml", **{name: value})[0]


_HOSTILE = "apply:\n  exclude: ['*']\n"


def _git(folder: Path, *words: str) -> str:
    settings = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "protocol.file.allow=always")
    done = subprocess.run(["git", *settings, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _pull_request(folder: Path, base: str, head: str) -> str:
    """Make a repository in a folder with a configuration at the base and another at the head; return the base."""
    (folder / "manifests").mkdir()
    (folder / "manifests" / "pod.yaml").write_text(POD % "true")
    _git(folder, "init", "--quiet")
    for text in (base, head):
        (folder / ".pyverno.yaml").write_text(text)
        _git(folder, "add", "-A")
        _git(folder, "commit", "--quiet", "-m", "a")
    return _git(folder, "rev-parse", "HEAD~1")


@pytest.mark.parametrize(("head", "code"), [(_HOSTILE, 1), ("apply: [\n", 1), ("apply:\n  cluster: true\n", 1)])
def test_a_pull_request_does_not_configure_the_action(tmp_path: Path, head: str, code: int) -> None:
    """The file of the base counts alone, whatever the proposed one holds."""
    base = _pull_request(tmp_path, "apply:\n  max-results: 7\n", head)
    found = run_action(tmp_path, base, policies=BASELINE, resources="manifests")
    assert (code, True, False) == (found[0], "::error file=manifests/pod.yaml" in found[1], "configuration" in found[1])


def test_a_base_with_a_configuration_is_heeded(tmp_path: Path) -> None:
    """The twin: what the project has decided holds for every pull request."""
    base = _pull_request(tmp_path, _HOSTILE, "apply: {}\n")
    found = run_action(tmp_path, base, policies=BASELINE, resources="manifests")
    assert (1, True) == (found[0], "left out 1 file: 1 by --exclude" in found[1])


def test_the_action_fetches_a_base_that_the_checkout_lacks(tmp_path: Path) -> None:
    """A checkout has the proposed commit only; without the base no configuration is read."""
    origin, clone = tmp_path / "origin", tmp_path / "clone"
    origin.mkdir()
    base = _pull_request(origin, _HOSTILE, "apply: {}\n")
    _git(origin, "config", "uploadpack.allowAnySHA1InWant", "true")
    _git(tmp_path, "clone", "--quiet", "--depth=1", origin.as_uri(), "clone")
    assert "left out 1 file" in run_action(clone, base, policies=BASELINE, resources="manifests")[1]
    shutil.rmtree(clone / "bin")
    missing = run_action(clone, "0" * 40, policies=BASELINE, resources="manifests")
    assert (1, True) == (missing[0], "::warning::no configuration file is read" in missing[1])
    assert "::error file=manifests/pod.yaml" in missing[1]


def test_hooks_name_commands_that_exist() -> None:
    """Each hook of pre-commit starts a program of the wheel and a command of it."""
    from pyverno.cli.root import root

    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    words = [hook["entry"].split() for hook in document(".pre-commit-hooks.yaml")]
    assert {"pyverno"} == {program for program, *_ in words}
    assert {"apply", "lint", "test"} == {command for _, command, *_ in words}
    assert scripts["pyverno"] == scripts["kubectl-pyverno"]
    assert {command for _, command, *_ in words} <= set(root.list_commands(click.Context(root)))


@pytest.mark.parametrize(
    ("hook", "arguments", "code"),
    [
        ("pyverno-apply", ["policies", "--resource", "manifests"], 1),
        ("pyverno-lint", ["policies"], 0),
        ("pyverno-lint", ["manifests"], 2),
        ("pyverno-test", ["policies"], 0),
        ("pyverno-test", ["manifests"], 1),
    ],
)
def test_a_hook_judges_the_folders_of_its_arguments(tmp_path: Path, hook: str, arguments: list[str], code: int) -> None:
    """A hook ignores other YAML files of a commit, and fails without any file to check."""
    library = ROOT / "policies" / "pod-security" / "baseline" / "disallow-host-namespaces"
    shutil.copytree(library, tmp_path / "policies" / "host")
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "pod.yaml").write_text(POD % "true")
    (tmp_path / ".pre-commit-config.yaml").write_text("repos: []\n")
    [found] = [each for each in document(".pre-commit-hooks.yaml") if each["id"] == hook]
    files = [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.yaml") if found.get("pass_filenames", True)]
    command = [sys.executable, "-m", found["entry"].split()[0], *found["entry"].split()[1:], *arguments, *files]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert code == ran.returncode, ran.stdout + ran.stderr


def test_the_template_of_gitlab_installs_only_what_it_is_given(tmp_path: Path) -> None:
    """Without a place of pyverno the job ends with what to set: the package index has no pyverno of this project."""
    job = document("deploy/ci/gitlab.yml")[".pyverno"]
    for name in ("pip", "pyverno"):
        (tmp_path / name).write_text(f'#!/bin/sh\necho {name} "$@" >> "$CALLED"\n')
        (tmp_path / name).chmod(0o755)

    def run(**variables: str) -> tuple[int, str]:
        environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "CALLED": str(tmp_path / "called")}
        environment |= job["variables"] | variables
        command = ["bash", "-e", "-o", "pipefail", "-c", "\n".join(job["script"])]
        ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        return ran.returncode, ran.stderr

    code, error = run()
    assert (True, True) == (code != 0, "set it to the place of pyverno" in error)
    assert (0, "") == run(PYVERNO="./.pyverno")
    assert [
        "pip install --quiet --require-hashes -r ./.pyverno/requirements-build.lock -r ./.pyverno/requirements.lock",
        "pip install --quiet --no-deps --no-build-isolation ./.pyverno",
        "pyverno apply policies/ --resource manifests/ --format gitlab",
    ] == (tmp_path / "called").read_text().splitlines()
    assert (0, "") == run(PYVERNO="./.pyverno", CI_MERGE_REQUEST_DIFF_BASE_SHA="0a1b")
    last = (tmp_path / "called").read_text().splitlines()[-1]
    assert "pyverno apply policies/ --resource manifests/ --config-revision 0a1b --format gitlab" == last


def test_no_page_names_a_package_index_or_a_repository_without_pyverno() -> None:
    """Until something is published, texts install from a clone or a file."""
    texts = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "policies").rglob("*.md")]
    texts += [*(ROOT / "deploy").rglob("*.y*ml"), *(ROOT / "src").rglob("*.py"), ROOT / "action.yml"]
    wrong = re.compile(
        r"(?:pip|pipx|tool) install +['\"]?pyverno\b(?!/)|uvx +pyverno|\bOWNER/pyverno|github\.com/pyverno"
    )
    assert {} == {str(path.relative_to(ROOT)): found for path in texts if (found := wrong.findall(path.read_text()))}
