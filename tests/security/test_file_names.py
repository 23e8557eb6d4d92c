"""Folders of others: no name of a file becomes a line or a command of the output, and no depth ends a command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyverno.cli.root import run

_POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"
_COMMANDS = {
    "policies": ("apply", "{folder}", "--resource", "{folder}/pod.yaml"),
    "resources": ("apply", "@pod-security/baseline", "--resource", "{folder}"),
    "test": ("test", "{folder}"),
    "lint": ("lint", "{folder}"),
    "analyze": ("analyze", "{folder}"),
    "migrate": ("migrate", "{folder}"),
    "fix": ("fix", "policy", "{folder}"),
    "fix test": ("fix", "test", "{folder}"),
}
_NAMES = ("a\n::error file=x::y.yaml", "a\r::error::y.yaml", "a\x1b]0;y\x07.yaml", "a\x9b31my.yaml")


def _run(command: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = run([word.format(folder=folder) for word in _COMMANDS[command]])
    printed = capsys.readouterr()
    return code, printed.out + printed.err


@pytest.mark.parametrize("name", _NAMES, ids=["newline", "return", "escape", "other-escape"])
@pytest.mark.parametrize("command", _COMMANDS)
@pytest.mark.parametrize("is_folder", [False, True], ids=["file", "folder"])
def test_no_name_of_a_file_is_a_line_of_its_own(
    tmp_path: Path, command: str, name: str, is_folder: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """CI systems take lines of logs as commands, and terminals take characters as such."""
    (tmp_path / "pod.yaml").write_text(_POD)
    if is_folder:
        (tmp_path / name).mkdir()
    place = tmp_path / name / "kyverno-test.yaml" if is_folder else tmp_path / name
    place.write_text("a: [\n")
    _, output = _run(command, tmp_path, capsys)
    assert not [each for each in output.splitlines() if each.startswith("::")]
    assert not set("\r\x1b\x07\x9b") & set(output)


@pytest.mark.parametrize("command", _COMMANDS)
def test_a_deep_folder_is_one_error(tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A change in a repository may hold one; the search for files goes through it."""
    place = tmp_path
    for _ in range(150):
        place /= "d"
        place.mkdir()
    (place / "kyverno-test.yaml").write_text(_POD)
    code, output = _run(command, tmp_path, capsys)
    assert (True, True) == (code in (1, 2), "more than 100 folders in each other" in output)


_SPECIAL = "a pipe, a socket or a device"
_SUITE = """\
apiVersion: cli.kyverno.io/v1alpha1
kind: Test
metadata: {name: suite}
policies: [special/policy.yaml]
resources: [pod.yaml]
results: [{policy: a, rule: b, resources: [a], kind: Pod, result: pass}]
"""
_FINDING = {
    **{name: line for name, line in _COMMANDS.items() if name != "fix test"},
    "glob": ("apply", "@pod-security/baseline", "--resource", "{folder}/*.yaml"),
    "exceptions": ("apply", "@pod-security/baseline", "--resource", "{folder}/pod.yaml", "-e", "{folder}"),
    "kyverno": ("apply", "{folder}", "--resource", "{folder}/pod.yaml", "--compat", "kyverno"),
    "report": ("report", "{folder}"),
    "equivalent": ("equivalent", "{folder}", "{folder}"),
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such files")
@pytest.mark.parametrize("command", _FINDING)
def test_no_file_without_an_end_is_read(tmp_path: Path, command: str) -> None:
    """A change in a repository may add a link to a device, and a folder of others a pipe that nobody writes into."""
    (tmp_path / "pod.yaml").write_text(_POD)
    special = tmp_path / "special"
    special.mkdir()
    os.mkfifo(special / "kyverno-test.yaml")
    os.mkfifo(special / "policy.yaml")
    for name, target in (("zero.yaml", "/dev/zero"), ("link.yaml", special / "policy.yaml")):
        (tmp_path / name).symlink_to(target)
    (tmp_path / "kyverno-test.yaml").write_text(_SUITE)
    words = [word.format(folder=tmp_path) for word in _FINDING[command]]
    done = subprocess.run(
        [sys.executable, "-m", "pyverno", *words],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    if command != "lint":  # it lints what is there
        assert _SPECIAL in done.stdout + done.stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such files")
def test_a_pipe_that_a_command_line_names_is_read(tmp_path: Path) -> None:
    """As shells make them of `<(kustomize build .)`."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(
        [sys.executable, "-m", "pyverno", "apply", "@pod-security/baseline", "--resource", str(pipe)],
        stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        pipe.write_text(_POD)
        assert process.stdout is not None
        assert "to 1 resource(s)" in process.stdout.read()
