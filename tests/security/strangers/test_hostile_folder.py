"""A stranger who owns the folder in which a command runs, and puts modules of Python there."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyverno.ui.playground.workers import PlaygroundWorkers

_NAMES = ("multiprocessing", "concurrent", "encodings", "orjson", "click", "yaml", "re2", "aiohttp", "json", "pyverno")
_PROGRAM = "from pyverno.__main__ import main\nmain()\n"
_POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p%d}\nspec: {containers: [{name: a, image: 'x:1'}]}\n"
_SUITE = """\
apiVersion: cli.kyverno.io/v1alpha1
kind: Test
metadata: {name: suite}
policies: [policy.yaml]
resources: [pods.yaml]
results: [{policy: labels, rule: team, kind: Pod, resources: [p1], result: fail}]
"""
_POLICY = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: labels}
spec:
  rules:
  - name: team
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {failureAction: Enforce, message: team, pattern: {metadata: {labels: {team: "?*"}}}}
"""
_COMMANDS = {
    "apply": ("apply", "policy.yaml", "--resource", "pods.yaml", "--workers", "2"),
    "test": ("test", ".", "--workers", "2"),
    "migrate": ("migrate", "policy.yaml", "--verify", "--workers", "2"),
}


def _plant(folder: Path) -> Path:
    """Write the modules, and return the file that they write to when Python loads one of them."""
    canary = folder / "canary"
    for name in _NAMES:
        (folder / f"{name}.py").write_text(f"open({str(canary)!r}, 'a').write({name!r})\n")
    return canary


@pytest.mark.parametrize("command", _COMMANDS)
def test_no_process_of_a_command_takes_a_module_of_the_working_folder(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, command: str
) -> None:
    """The processes of `--workers` find modules where the command itself does, and the command works."""
    canary = _plant(tmp_path)
    program = tmp_path_factory.mktemp("bin") / "pyverno"  # as pip installs it: its own folder comes first on the path
    program.write_text(_PROGRAM)
    (tmp_path / "policy.yaml").write_text(_POLICY)
    (tmp_path / "pods.yaml").write_text("---\n".join(_POD % number for number in range(1, 9)))
    suite = tmp_path / "suite"
    suite.mkdir()
    for name, text in (("kyverno-test.yaml", _SUITE), ("policy.yaml", _POLICY), ("pods.yaml", _POD % 1)):
        (suite / name).write_text(text)
    ran = subprocess.run(
        [sys.executable, str(program), *_COMMANDS[command]],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode in (0, 1), ran.stdout + ran.stderr
    assert "" == (canary.read_text() if canary.exists() else "")


def test_the_playground_takes_no_module_of_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`pyverno ui` may run in a stranger's folder as well; reviews are answered."""
    canary = _plant(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)

    async def run() -> None:
        async with PlaygroundWorkers(workers=1) as workers:
            await workers.review({"policies": _POLICY, "resources": _POD % 1})

    asyncio.run(run())
    assert "" == (canary.read_text() if canary.exists() else "")
