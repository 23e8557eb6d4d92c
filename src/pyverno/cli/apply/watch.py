"""`pyverno apply --watch`: the run again whenever a file of its inputs changes, until it is interrupted."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

from pyverno.cli.apply.options import ApplyOptions, check_options
from pyverno.cli.errors import report_error, report_note
from pyverno.errors import UsageError
from pyverno.offline.files import DocumentCache

__all__ = ["watch"]

POLL_SECONDS = 0.5

Snapshot = dict[str, tuple[int, int]]


def watch(
    options: ApplyOptions,
    run: Callable[[ApplyOptions, DocumentCache], int],
    *,
    wait: Callable[[float], None] = time.sleep,
) -> NoReturn:
    """Run the command at every change; files that did not change are not read again. Ends with KeyboardInterrupt."""
    for text in check_options(options):
        report_note(text)  # wrong flags end it at once
    cache = DocumentCache()
    while True:
        before = _snapshot(options)
        try:
            run(options, cache)
        except UsageError as error:
            if before == _snapshot(options) and not before:
                raise  # there is no file to wait for
            report_error(error)
        sys.stdout.flush()
        report_note("waiting for changes, interrupt to stop")
        while _snapshot(options) == before:
            wait(POLL_SECONDS)


def _snapshot(options: ApplyOptions) -> Snapshot:
    """Return time and size of every file that the run may read."""
    found: Snapshot = {}
    for path in _files(options):
        try:
            stat = path.stat()
        except OSError:
            continue  # it went meanwhile
        found[str(path)] = (stat.st_mtime_ns, stat.st_size)
    return found


def _files(options: ApplyOptions) -> Iterator[Path]:
    companions = (options.values_file, options.user_info, options.context_file, options.baseline, options.trust_root)
    lists = (
        *(options.policies, options.resources, options.target_resources, options.parameter_resources),
        *(options.exceptions, options.crd_paths, options.json_payloads, options.helm, options.helm_values),
        options.kustomize,
    )
    for text in (*(each for group in lists for each in group), *filter(None, companions)):
        path = Path(text)
        if path.is_dir():
            for folder, folders, names in os.walk(path):
                folders[:] = sorted(name for name in folders if not name.startswith("."))
                yield from (Path(folder, name) for name in sorted(names) if not name.endswith("~"))
        elif path.is_file():
            yield path
        elif any(character in text for character in "*?["):
            yield from sorted(Path().glob(text) if not path.is_absolute() else ())
