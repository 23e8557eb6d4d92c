"""`--config-revision`: the file that is found, as it was in a revision."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.commandline import Run

_WORDS = ("apply", "latest.yaml", "-r", "bad.yaml", "--config-revision", "HEAD")


def _commit(folder: Path) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@example.com")
    for words in (("init", "--quiet"), ("add", "-A"), ("commit", "--quiet", "-m", "a")):
        subprocess.run([*git, *words], cwd=folder, env=clean, check=True)


def test_the_file_of_the_revision_counts(cli: Run, folder: Path) -> None:
    """Whatever the working tree has: another file, a broken one, or none."""
    (folder / ".pyverno.yaml").write_text("apply: {format: json}\n")
    _commit(folder)
    for text in ("apply: {format: csv}\n", "apply: [", None):
        (folder / ".pyverno.yaml").unlink(missing_ok=True)
        if text is not None:
            (folder / ".pyverno.yaml").write_text(text)
        ran = cli(*_WORDS)
        assert (1, ["fail"]) == (ran.code, [each["status"] for each in json.loads(ran.out)["results"]])
    assert 'format: "json"  # .pyverno.yaml:1\n' in cli("config", "show", "--config-revision", "HEAD").out


def test_a_file_that_the_revision_lacks_does_not_count(cli: Run, folder: Path) -> None:
    """A pull request that adds one changes nothing."""
    _commit(folder)
    (folder / ".pyverno.yaml").write_text("apply: {format: json}\n")
    assert cli(*_WORDS).out.lstrip().startswith("Applying ")
    assert "# no configuration file\n" == cli("config", "show", "--config-revision", "HEAD").out


def test_the_folders_are_those_of_a_search(cli: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the working folder upwards, with paths relative to the file; `pyproject.toml` counts with its table only."""
    (folder / "pyproject.toml").write_text(
        "[tool.pyverno.apply]\npolicies = ['latest.yaml']\nresources = ['bad.yaml']\n"
    )
    below = folder / "a/b"
    below.mkdir(parents=True)
    (folder / "a/pyproject.toml").write_text("[project]\nname = 'a'\n")
    (below / "keep").write_text("")
    _commit(folder)
    monkeypatch.chdir(below)
    ran = cli("apply", "--config-revision", "HEAD", "--format", "github")
    assert (1, True) == (ran.code, ran.out.startswith("::error file=../../bad.yaml,"))


def test_the_same_rules_hold(cli: Run, folder: Path) -> None:
    """The file was found, in another revision: it selects and formats."""
    (folder / ".pyverno.yaml").write_text("apply:\n  cluster: true\n")
    _commit(folder)
    assert cli(*_WORDS).err.startswith("Error: .pyverno.yaml:2:3: `cluster` of `apply` reaches a cluster: ")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--config-revision", "none"), "--config-revision: git knows no revision `none`"),
        (("--config-revision=-x",), "--config-revision: `-x` is no revision of git"),
        (("--config-revision", "HEAD", "--config", "a.yaml"), "--config and --config-revision cannot be used together"),
    ],
)
def test_what_is_no_revision_is_an_error(cli: Run, folder: Path, words: tuple[str, ...], error: str) -> None:
    """And so is a second file."""
    _commit(folder)
    ran = cli("apply", "latest.yaml", "-r", "bad.yaml", *words)
    assert (1, True) == (ran.code, ran.err.startswith(f"Error: {error}")), ran.err


def test_a_folder_without_a_repository_has_no_revision(cli: Run) -> None:
    """An error, not a run without settings."""
    ran = cli(*_WORDS)
    assert (1, True) == (ran.code, "not a git repository" in ran.err)
