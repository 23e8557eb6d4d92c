"""Reads a page of the guide: files that it shows, and commands with the output that it promises.

A yaml or python block whose first line is a comment with a file name is that file. In a `console` block, lines that
begin with `$ ` are commands and the lines below are their output; `$ echo $?` shows the exit code of the one before.
Blanks at the ends of lines and empty lines at the ends of outputs do not count.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Step", "page_files", "page_steps", "run"]

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"# ([\w./-]+\.(?:yaml|py))")


@dataclass(frozen=True, slots=True)
class Step:
    """One command and the output that the page promises."""

    command: str
    expected: str


def page_files(text: str) -> dict[str, str]:
    """Return the files of a page by name."""
    files = {}
    for language, body in _BLOCK.findall(text):
        found = _NAME.match(body) if language in ("yaml", "python") else None
        if found:
            files[found[1]] = body
    return files


def page_steps(text: str) -> list[Step]:
    """Return the commands of a page in order."""
    steps = []
    for language, body in _BLOCK.findall(text):
        if language == "console":
            for part in body.split("$ ")[1:]:
                command, _, expected = part.partition("\n")
                steps.append(Step(command, _trimmed(expected)))
    return steps


def run(steps: list[Step], folder: Path) -> list[Step]:
    """Run the commands in a folder and return them with what they really print."""
    done: list[Step] = []
    code = 0
    for step in steps:
        if step.command == "echo $?":
            done.append(Step(step.command, str(code)))
            continue
        program, *arguments = shlex.split(step.command)
        start = {"pyverno": [sys.executable, "-m", "pyverno"], "python": [sys.executable]}[program]
        result = subprocess.run(
            [*start, *arguments],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        code = result.returncode
        done.append(Step(step.command, _trimmed(result.stdout)))
    return done


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")
