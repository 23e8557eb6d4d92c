"""Folders of others: no name of a file becomes a line or a command of the output, and no depth ends a command."""

from __future__ import annotations

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
