"""The git program within bounds: time, memory, and what it writes into a folder; it never outlives its call.

Servers and repositories choose what git reads, and git itself has no such limits. Both of its outputs are files in the
folder, so that they are counted with the rest.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from pyverno.errors import UsageError
from pyverno.value import dataclass

__all__ = ["LIMITS", "GitLimits", "run_git"]

MAX_CLONE_SECONDS: Final = 300.0
MAX_CLONE_BYTES: Final = 512 * 1024 * 1024
MAX_CLONE_FILES: Final = 50_000
MAX_CLONE_DEPTH: Final = 64
MAX_GIT_MEMORY: Final = 2 * 1024 * 1024 * 1024

_OUTPUT: Final = "output"
_LISTED_BYTES: Final = 1024
"""Bytes of the output for each file: git lists a commit with the paths of its files."""
_WORDS: Final = "words"
_MOST_WORDS: Final = 4096
_LOOK_SECONDS: Final = 0.1
_END_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class GitLimits:
    """Bounds of all runs for one clone: seconds, bytes and files of its folder, and bytes of memory of each process.

    `depth` is that of folders. `memory` holds on Linux alone.
    """

    seconds: float = MAX_CLONE_SECONDS
    bytes: int = MAX_CLONE_BYTES
    files: int = MAX_CLONE_FILES
    depth: int = MAX_CLONE_DEPTH
    memory: int = MAX_GIT_MEMORY


LIMITS: Final = GitLimits()


def run_git(
    words: Sequence[str], *, folder: Path, environment: Mapping[str, str], deadline: float, limits: GitLimits = LIMITS
) -> tuple[int, Path, str]:
    """Run git until it ends; return its exit code, the file of its output, and its last words for people as one line.

    `deadline` is a time of `time.monotonic`. Raises UsageError when git is not installed, or goes beyond its bounds.
    """
    output, told = folder / _OUTPUT, folder / _WORDS
    with output.open("wb") as stdout, told.open("wb") as stderr:
        try:
            running = subprocess.Popen(  # noqa: S603 - a fixed program; addresses stand behind `--`
                ["git", *words],  # noqa: S607
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        except FileNotFoundError as error:
            raise UsageError("failed to clone repository (the program `git` is not installed)") from error
        try:
            _limit_memory(running, limits.memory)
            _wait(running, folder, deadline, limits)
        finally:
            _end(running)
    return running.returncode, output, _last_words(told)


def _limit_memory(running: subprocess.Popen[bytes], most: int) -> None:
    """Bound the memory of a program and of those that it starts."""
    if sys.platform == "linux":
        import resource

        with suppress(OSError, ValueError):
            resource.prlimit(running.pid, resource.RLIMIT_AS, (most, most))


def _wait(running: subprocess.Popen[bytes], folder: Path, deadline: float, limits: GitLimits) -> None:
    while True:
        with suppress(subprocess.TimeoutExpired):
            running.wait(timeout=_LOOK_SECONDS)
            return
        if time.monotonic() > deadline:
            raise UsageError(f"failed to clone repository (no answer within {limits.seconds:g} seconds)")
        _check_size(folder, limits)


def _check_size(folder: Path, limits: GitLimits) -> None:
    # a clone has about as many files of git's own as of the repository
    size = files = 0
    listed = (folder / _OUTPUT).stat().st_size
    for parent, _, names in os.walk(folder):
        files += len(names)
        for name in names:
            with suppress(OSError):  # git has just removed it
                size += os.lstat(f"{parent}{os.sep}{name}").st_size
    if size > 2 * limits.bytes or files > 3 * limits.files or listed > _LISTED_BYTES * limits.files:
        raise UsageError(
            f"failed to clone repository (it is larger than {limits.bytes} bytes, or {limits.files} files)"
        )


def _end(running: subprocess.Popen[bytes]) -> None:
    """End a program with all that it started: they would write into the folder while it is removed."""
    if running.returncode is not None:
        return
    if os.name != "posix":
        running.kill()
        running.wait()
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        limit = time.monotonic() + _END_SECONDS
        while time.monotonic() < limit:
            os.killpg(running.pid, 0)  # raises when the last one is gone
            time.sleep(0.01)
    running.wait()


def _last_words(path: Path) -> str:
    """Return the end of what git says, where it says why it failed; a server may have said much before."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _MOST_WORDS))
        text = file.read().decode("utf-8", "replace")
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())
