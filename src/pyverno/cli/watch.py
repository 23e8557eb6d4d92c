"""The flag `--watch`: a run that is repeated whenever a file of its inputs changes, until it is interrupted."""

from __future__ import annotations

import glob
import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NoReturn

from pyverno.cli.errors import report_error, report_note
from pyverno.cli.terminal import STDOUT
from pyverno.errors import PyvernoError, UsageError

# trust rows: judged-file

__all__ = ["watch"]

POLL_SECONDS = 0.5

Snapshot = dict[str, tuple[int, int]]


def watch(
    run: Callable[[], object],
    inputs: Callable[[], Iterable[str]],
    *,
    output: str = "",
    wait: Callable[[float], None] = time.sleep,
) -> NoReturn:
    """Call `run` now and after every change; ends with KeyboardInterrupt.

    `inputs` returns the files, folders and globs to watch; it is called before each run. `output` is a file or folder
    that a run writes: its changes start no run. An error of a run is reported, and the next change starts another run.
    Without any file to wait for, the error is raised.
    """
    while True:
        paths = tuple(inputs())
        before = _snapshot(paths, output)
        error: PyvernoError | None = None
        try:
            run()
        except PyvernoError as caught:
            error = caught
        STDOUT.flush()
        if not before and not _snapshot(paths, output):
            raise error or UsageError("--watch finds no file that could change")
        if error is not None:
            report_error(error)
        report_note("waiting for changes, interrupt to stop")
        while _snapshot(paths, output) == before:
            wait(POLL_SECONDS)


def _snapshot(paths: Iterable[str], output: str) -> Snapshot:
    """Return time and size of every file that a run may read."""
    found: Snapshot = {}
    written = Path(output).resolve() if output else None
    for path in _files(paths):
        if written is not None and path.resolve().is_relative_to(written):
            continue
        try:
            stat = path.stat()
        except OSError:
            continue  # removed meanwhile
        found[str(path)] = (stat.st_mtime_ns, stat.st_size)
    return found


def _files(paths: Iterable[str]) -> Iterator[Path]:
    for text in paths:
        path = Path(text)
        if path.is_dir():
            for folder, folders, names in os.walk(path):
                folders[:] = sorted(name for name in folders if not name.startswith("."))
                yield from (Path(folder, name) for name in sorted(names) if not name.endswith("~"))
        elif path.is_file():
            yield path
        elif glob.has_magic(text):
            yield from _files(sorted(glob.glob(text, recursive=True)))  # noqa: PTH207 - patterns may be absolute
