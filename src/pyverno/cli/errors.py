"""Exceptions of the command line: one line `Error: ...` on stderr and exit code 1; tracebacks only for bugs.

This module must never import click, because plain command lines run without it (see `args.errors`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from pyverno.errors import PyvernoError, UsageError

__all__ = ["Exit", "closed_pipe", "guarded", "report_error", "report_note", "report_warning", "unknown_command"]


class Exit(Exception):  # noqa: N818 - not an error: the exit code of a command that has printed everything
    """Ends a command with an exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def report_error(error: PyvernoError | str) -> None:
    """Write one error to stderr."""
    sys.stderr.write(f"Error: {error}\n")


def report_warning(text: str) -> None:
    """Write one warning to stderr."""
    sys.stderr.write(f"warning: {text}\n")


def report_note(text: str) -> None:
    """Write one remark to stderr."""
    sys.stderr.write(f"note: {text}\n")


def unknown_command(name: str, path: str) -> UsageError:
    """Return the error of a command that does not exist.

    >>> print(unknown_command("x", "pyverno"))
    unknown command "x" for "pyverno"
    Run 'pyverno --help' for usage.
    """
    return UsageError(f'unknown command "{name}" for "{path}"\nRun \'{path} --help\' for usage.')


def guarded(command: Callable[[], object]) -> int:
    """Call a command and turn its outcome into an exit code."""
    try:
        result = command()
        sys.stdout.flush()
    except Exit as stop:
        return _flushed(stop.code)
    except PyvernoError as error:
        report_error(error)
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        return 130
    except BrokenPipeError:
        return closed_pipe()
    except SystemExit as stop:
        # click's way to end when the reader of stdout is gone
        return stop.code if isinstance(stop.code, int) else 1
    return _flushed(result if isinstance(result, int) else 0)


def _flushed(code: int) -> int:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return closed_pipe()
    return code


def closed_pipe() -> int:
    """Handle a closed pipe at stdout (`pyverno ... | head`): stop quietly, also in the final flush of Python."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 141
