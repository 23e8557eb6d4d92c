"""Simple uses of commands run without click, and mean the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyverno.cli.args.fastargv import PLAIN, run_fast_path
from pyverno.cli.root import COMMANDS, run


def test_plain_commands_are_commands() -> None:
    """Every one of them is in the table of commands, and reads an empty line."""
    assert PLAIN.keys() <= COMMANDS.keys()
    assert all(callable(read([])) for read in PLAIN.values())


@pytest.mark.parametrize(
    "words",
    [
        ["apply", "latest.yaml", "-r", "good.yaml"],
        ["apply", "latest.yaml", "-r", "good.yaml,bad.yaml", "--table", "--detailed-results"],
        ["apply", "latest.yaml", "-r", "bad.yaml", "--format", "json"],
        ["apply", "missing.yaml", "-r", "bad.yaml"],
        ["apply", "latest.yaml"],
        ["apply"],
    ],
)
def test_both_ways_give_the_same(folder: Path, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    """Exit code, stdout and stderr are those of the way through click."""
    expected = run(words), capsys.readouterr()
    assert expected == (run_fast_path(words), capsys.readouterr())


@pytest.mark.parametrize("words", [[], ["test", "."], ["--help"], ["apply", "--help"], ["apply", "-r=good.yaml"]])
def test_other_words_are_declined(folder: Path, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    """Nothing is run and nothing is printed."""
    assert run_fast_path(words) is None
    assert ("", "") == capsys.readouterr()


def test_shells_that_complete_are_left_to_click(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They ask by an environment variable."""
    monkeypatch.setenv("_PYVERNO_APPLY_COMPLETE", "bash_complete")
    assert run_fast_path(["apply", "latest.yaml", "-r", "good.yaml"]) is None
