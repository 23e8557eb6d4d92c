"""The root of the command line: help, unknown words, pipes that close, and what start-up imports."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner

from pyverno.cli.root import COMMANDS, root
from pyverno.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.commandline import Run

PYVERNO = [sys.executable, "-m", "pyverno"]


def test_without_arguments_it_prints_its_help(cli: Run) -> None:
    """On stdout, and ends with 0."""
    ran = cli()
    assert (0, True, "") == (ran.code, "Commands:\n  apply " in ran.out, ran.err)


def test_help_lists_every_command() -> None:
    """In the order of the table."""
    _, _, shown = CliRunner().invoke(root, ["--help"]).output.partition("Commands:\n")
    assert list(COMMANDS) == [line.split()[0] for line in shown.splitlines() if line[:3].strip()]


def commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    """Yield a command and those below it with their paths."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands(found, f"{path} {name}")


def test_every_command_shows_examples_of_itself() -> None:
    """Each of its examples holds the command as one would type it."""
    wrong = [
        path
        for path, command in commands(root, "pyverno")
        if command is not root and not re.search(rf"^  .*{path}( |$)", command.epilog or "", re.MULTILINE)
    ]
    assert [] == wrong


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["nonsense"], 'unknown command "nonsense" for "pyverno"\nRun \'pyverno --help\' for usage.'),
        (["--nonsense"], "unknown flag: --nonsense"),
        (["-x"], "unknown shorthand flag: 'x' in -x"),
    ],
)
def test_unknown_words_end_with_1(cli: Run, arguments: list[str], error: str) -> None:
    """With the text of upstream on stderr."""
    ran = cli(*arguments)
    assert (1, "", f"Error: {error}\n") == (ran.code, ran.out, ran.err)


def test_flags_of_the_root_may_stand_before_the_command(cli: Run) -> None:
    """Verbosity and the like are inherited."""
    assert 0 == cli("-v", "--logtostderr=true", "apply", "latest.yaml", "-r", "good.yaml").code


@pytest.mark.parametrize("arguments", [["--version"], ["-v=2", "--version"]])
def test_version_is_printed(arguments: list[str]) -> None:
    """By the quick way and by the slow one."""
    ran = subprocess.run([*PYVERNO, *arguments], capture_output=True, text=True, check=True)
    assert f"pyverno {__version__}\n" == ran.stdout


def _imported(*arguments: str) -> set[str]:
    code = (
        "import sys; sys.argv = ['pyverno', *sys.argv[1:]]\n"
        "from pyverno.__main__ import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    return set(ran.stderr.split())


def test_version_imports_nothing_heavy() -> None:
    """Start-up stays that of Python itself."""
    assert set() == _imported("--version") & {"click", "typing", "re", "dataclasses", "pyverno.cli", "pyverno.errors"}


def test_apply_imports_neither_network_nor_terminal_libraries(folder: Path) -> None:
    """They are imported when they are used."""
    loaded = _imported("apply", "latest.yaml", "-r", "good.yaml")
    assert "pyverno.engine.engine" in loaded
    assert set() == loaded & {"aiohttp", "asyncio", "rich", "subprocess", "multiprocessing", "pyverno.cli.test.check"}


def test_a_closed_pipe_ends_quietly(folder: Path) -> None:
    """`pyverno ... | head` prints no traceback."""
    (folder / "many.yaml").write_text("---\n".join((folder / "bad.yaml").read_text() for _ in range(3000)))
    running = subprocess.Popen(
        [*PYVERNO, "apply", "latest.yaml", "-r", "many.yaml"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert running.stdout is not None
    assert running.stderr is not None
    running.stdout.read(10)
    running.stdout.close()
    errors = running.stderr.read()
    running.stderr.close()
    assert (1, b"") == (running.wait(), errors)


def test_a_working_folder_that_was_removed_is_no_fault(cli: Run, folder: Path) -> None:
    """Files are read by their absolute paths; what needs the folder ends with an error."""
    gone = folder / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    words = ("apply", str(folder / "latest.yaml"), "-r", str(folder / "good.yaml"))
    assert (0, "") == ((ran := cli(*words)).code, ran.err)
    ran = cli(*words, "--changed-since", "HEAD")
    assert (1, "Error: the working folder does not exist any more\n") == (ran.code, ran.err)


def test_the_dashes_of_flags_are_no_likeness(cli: Run) -> None:
    """A suggestion for a flag is near it in its letters."""
    assert "Error: unknown flag: --count\n" == cli("equivalent", "--count", "a", "b").err
    assert "Error: unknown flag: --resorce: did you mean `--resource`?\n" == cli("apply", "--resorce", "a").err
