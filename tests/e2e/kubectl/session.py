"""Sessions: commands and their output, as text files that read like a terminal.

A line that begins with `$ ` is a shell command; the lines below are its output, followed by its error messages;
`[exit 1]` is the exit code of a failure. `$NAMESPACE` is a fresh namespace. Values that differ from run to
run are replaced by `<age>`, `<uid>`, `<time>` and the like, and runs of blanks are collapsed.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Step", "printed", "read_session", "written"]

_VARYING: tuple[tuple[str, str], ...] = (
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<uid>"),
    (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
    (r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "<time>"),
    (r"resourceVersion: \"\d+\"", 'resourceVersion: "<version>"'),
    (r"(?<=[ (])\d+[smhd](\d+[smhd])?(?=$|[ )])", "<age>"),
    (r"\b10\.\d+\.\d+\.\d+\b", "<ip>"),
    (r"https://[\w.]+:\d+", "<server>"),
    (r"pod-template-hash=\w+", "pod-template-hash=<hash>"),
    (r"(?<= )annotate$", "annotated"),
    (r"(?<= deleted) from \S+ namespace$", ""),
    (r"(?<=-)[bcdf0-9ghjklmnpqrstvwxz]{8,10}-[bcdfghjklmnpqrstvwxz2456789]{5}\b", "<hash>-<id>"),
    (r"(?<=[a-z]-)[bcdf0-9ghjklmnpqrstvwxz]{9,10}\b", "<hash>"),
)
_NOISE = re.compile(r"^(WARNING: version difference|---\s|\+\+\+\s|diff -)")


@dataclass(frozen=True, slots=True)
class Step:
    """A command and what it is to print."""

    command: str
    expected: str


def read_session(path: Path) -> tuple[Step, ...]:
    """Read the steps of a file."""
    steps: list[Step] = []
    for part in re.split(r"^\$ ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        steps.append(Step(command, expected.strip()))
    return tuple(steps)


def written(steps: Iterable[Step]) -> str:
    """Write steps as a file."""
    return "".join(
        f"$ {step.command}\n{step.expected}\n\n" if step.expected else f"$ {step.command}\n\n" for step in steps
    )


def printed(command: str, environment: Mapping[str, str], folder: Path) -> str:
    """Run a command and return what it prints, with what varies replaced."""
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        capture_output=True,
        env=dict(environment),
        cwd=folder,
        timeout=300,
        check=False,
    )
    text = (done.stdout + done.stderr).decode("utf-8", "replace").replace(environment["NAMESPACE"], "$NAMESPACE")
    lines = [_tidy(line) for line in text.splitlines() if not _NOISE.match(line)]
    if done.returncode:
        lines.append(f"[exit {done.returncode}]")
    return "\n".join(line for line in lines if line)


def _tidy(line: str) -> str:
    for pattern, word in _VARYING:
        line = re.sub(pattern, word, line)
    return " ".join(line.split())
