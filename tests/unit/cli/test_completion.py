"""`pyverno completion`: scripts that ask the program for its own words."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.commandline import Run


@pytest.mark.parametrize(
    ("shell", "mark"),
    [
        ("bash", "complete -o nosort -F _pyverno_completion pyverno"),
        ("zsh", "#compdef pyverno"),
        ("fish", "complete --no-files --command pyverno"),
        ("powershell", "Register-ArgumentCompleter -Native -CommandName pyverno"),
    ],
)
def test_every_shell_has_a_script(cli: Run, shell: str, mark: str) -> None:
    """Printed on stdout."""
    ran = cli("completion", shell)
    assert (0, True) == (ran.code, mark in ran.out)
    assert "_PYVERNO_COMPLETE" in ran.out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_scripts_are_good_syntax(cli: Run, shell: str) -> None:
    """As far as the shell is installed here."""
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run([program, "-n"], input=cli("completion", shell).out, text=True, check=False)
    assert 0 == done.returncode


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("pyverno cre", "plain,create\n"),
        ("pyverno create te", "plain,test\n"),
        ("pyverno test --fail", "plain,--fail-under\nplain,--fail-only\n"),
    ],
)
def test_the_program_answers_the_scripts(words: str, expected: str) -> None:
    """Commands, commands of commands and flags."""
    count = len(words.split()) - 1
    environment = {**os.environ, "COMP_WORDS": words, "COMP_CWORD": str(count), "_PYVERNO_COMPLETE": "bash_complete"}
    command = [sys.executable, "-c", "import sys; sys.argv = ['pyverno']; from pyverno.__main__ import main; main()"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert expected == done.stdout, done.stderr


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((), "accepts 1 arg(s), received 0"),
        (("bash", "zsh"), "accepts 1 arg(s), received 2"),
        (("tcsh",), 'invalid argument "tcsh" for "pyverno completion"'),
    ],
)
def test_exactly_one_known_shell_is_needed(cli: Run, arguments: tuple[str, ...], error: str) -> None:
    """With Kyverno's texts."""
    assert f"Error: {error}\n" == cli("completion", *arguments).err
