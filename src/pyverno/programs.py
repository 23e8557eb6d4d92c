"""Programs of this machine, found and run within bounds: time, memory, and what they write; none outlives its call.

What a program reads may come from others, and git, helm and kustomize have no such limits. Both outputs are files in
the folder of the run, so that they are counted with the rest.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from pyverno.errors import UsageError

# trust rows: environment, program, program-output

__all__ = ["Bounds", "find_program", "run_program", "search_path"]

_OUTPUT: Final = "output"
_WORDS: Final = "words"
_MOST_WORDS: Final = 4096
_LOOK_SECONDS: Final = 0.1
_END_SECONDS: Final = 5.0
_WINDOWS_SUFFIXES: Final = (".com", ".exe")


class Bounds(Protocol):
    """Bounds of one run or several: seconds of all, and bytes of memory of each process (on Linux alone)."""

    @property
    def seconds(self) -> float:
        """How long all runs may take."""

    @property
    def memory(self) -> int:
        """How many bytes of memory each process may have."""


def search_path(path: str) -> str:
    """Return the absolute folders of a search path; the others are folders of whatever tree is judged.

    >>> search_path(os.pathsep.join(["/usr/bin", "", ".", "bin", "/bin"])).split(os.pathsep)
    ['/usr/bin', '/bin']
    """
    folders = path.split(os.pathsep)
    kept = [each for each in folders if Path(each).is_absolute()]  # guard: programs are in no relative folder
    return os.pathsep.join(kept)


def find_program(name: str, path: str | None = None) -> str | None:
    """Return the absolute path of a program in the search path, never one of the working folder; None if not there.

    `path` is a search path other than that of the environment.
    """
    folders = search_path(os.environ.get("PATH", os.defpath) if path is None else path)
    if os.name != "nt":
        return shutil.which(name, path=folders) if folders else None
    # `shutil.which` looks into the working folder first; a script would need a shell
    places = (Path(each, f"{name}{suffix}") for each in folders.split(os.pathsep) for suffix in _WINDOWS_SUFFIXES)
    return next((str(place) for place in places if place.is_file()), None)


def run_program(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    deadline: float,
    bounds: Bounds,
    check: Callable[[Path], None],
    task: str,
) -> tuple[int, Path, str]:
    """Run a program in a folder until it ends; return its exit code, the file of its output, and its last words.

    These are one line for people. `deadline` is a time of `time.monotonic`. `check` is called again and again with the
    file of the output, and raises when there is too much. Raises UsageError, which begins with `task`, when the program
    is not installed, or is late.
    """
    program = command[0] if Path(command[0]).is_absolute() else find_program(command[0])
    if program is None:
        raise UsageError(f"{task} (the program `{command[0]}` is not installed)")
    output, told = folder / _OUTPUT, folder / _WORDS
    with output.open("wb") as stdout, told.open("wb") as stderr:
        try:
            running = subprocess.Popen(  # noqa: S603 - callers place what others wrote behind `--`, or in absolute paths
                [program, *command[1:]],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        except OSError as error:
            raise UsageError(f"{task} (`{program}` cannot be run: {(error.strerror or str(error)).lower()})") from error
        try:
            _limit_memory(running, bounds.memory)
            _wait(running, lambda: check(output), deadline, f"{task} (no answer within {bounds.seconds:g} seconds)")
        finally:
            _end(running)
    return running.returncode, output, _last_words(told)


def _limit_memory(running: subprocess.Popen[bytes], most: int) -> None:
    """Bound the memory of a program and of those that it starts."""
    if sys.platform == "linux":
        import resource

        with suppress(OSError, ValueError):
            resource.prlimit(running.pid, resource.RLIMIT_AS, (most, most))


def _wait(running: subprocess.Popen[bytes], check: Callable[[], None], deadline: float, late: str) -> None:
    while True:
        with suppress(subprocess.TimeoutExpired):
            running.wait(timeout=_LOOK_SECONDS)
            return
        if time.monotonic() > deadline:
            raise UsageError(late)
        check()


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
    """Return the end of what a program says, where it says why it failed; a server may have said much before."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _MOST_WORDS))
        text = file.read().decode("utf-8", "replace")
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())
