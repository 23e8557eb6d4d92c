"""Exceptions of the command line: one line `Error: ...` on stderr and exit code 1; bugs are errors that name no value.

This module must never import click, because plain command lines run without it (see `args.errors`).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Sequence

from pyverno.cli.terminal import STDERR, STDOUT, Stream, last_words
from pyverno.errors import CombinedError, PolicyError, PyvernoError, UsageError
from pyverno.spelling import did_you_mean

# trust rows: own-file

__all__ = [
    "Exit",
    "bug_text",
    "can_show",
    "closed_pipe",
    "guarded",
    "report_error",
    "report_note",
    "report_warning",
    "unknown_command",
    "write_as_utf8",
]


_PLACES = 8
"""The innermost functions and lines that the text of a bug shows."""


class Exit(Exception):  # noqa: N818 - not an error: the exit code of a command that has printed everything
    """Ends a command with an exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def report_error(error: PyvernoError | str) -> None:
    """Write an error to stderr; several at once are written one by one."""
    for each in error.parts if isinstance(error, CombinedError) else (error,):
        hint = each.hint if isinstance(each, PolicyError) else ""
        _tell(f"Error: {each}\n" + (f"  hint: {hint}\n" if hint else ""))


def report_warning(text: str) -> None:
    """Write one warning to stderr."""
    _tell(f"warning: {text}\n")


def report_note(text: str) -> None:
    """Write one remark to stderr."""
    _tell(f"note: {text}\n")


def _tell(text: str) -> None:
    STDERR.write(text)


def bug_text(error: BaseException) -> str:
    """Return what users read of a bug: its code and kind, and where it is; never a value.

    >>> bug_text(KeyError("hunter2"))
    'internal error (fault-missing): KeyError'
    """
    from pyverno.engine.faults import fault_of  # few runs meet a bug

    fault = fault_of(error)
    places = "".join(f"\n  at {place}" for place in fault.trace[-_PLACES:])
    return f"internal error ({fault.code}): {fault.error}{places}"


def unknown_command(name: str, path: str, known: Sequence[str] = ()) -> UsageError:
    """Return the error of a command that does not exist, with the nearest of those that do.

    >>> print(unknown_command("x", "pyverno"))
    unknown command "x" for "pyverno"
    Run 'pyverno --help' for usage.
    """
    hint = did_you_mean(name, known)
    return UsageError(f'unknown command "{name}" for "{path}"{hint}\nRun \'{path} --help\' for usage.')


def check_known(words: Iterable[str], known: Iterable[str], what: str) -> None:
    """Raise UsageError for words that name nothing, with what was probably meant.

    >>> check_known(["truncat"], ["truncate"], "function")
    Traceback (most recent call last):
    pyverno.errors.UsageError: unknown function `truncat`: did you mean `truncate`?
    """
    names = list(known)
    unknown = [word for word in words if word not in names]
    if not unknown:
        return
    raise UsageError(f"unknown {what} `{unknown[0]}`{did_you_mean(unknown[0], names)}")


def guarded(command: Callable[[], object]) -> int:
    """Call a command and turn its outcome into an exit code."""
    try:
        return _code_of(command)
    except Exception:  # the output of an error itself fails
        last_words()
        return 1


def _code_of(command: Callable[[], object]) -> int:
    try:
        result = command()
        STDOUT.flush()
    except Exit as stop:
        return _flush(stop.code)
    except PyvernoError as error:
        report_error(error)
        return 1
    except KeyboardInterrupt:
        STDERR.write("\n")
        return 130
    except BrokenPipeError:
        return closed_pipe()
    except OSError as error:
        return _report_os_error(error)
    except SystemExit as stop:
        # click ends so when the reader of stdout has closed the pipe
        return stop.code if isinstance(stop.code, int) else 1
    except Exception as error:
        report_error(bug_text(error))
        return _flush(1)
    return _flush(result if isinstance(result, int) else 0)


def _flush(code: int) -> int:
    try:
        STDOUT.flush()
    except BrokenPipeError:
        return closed_pipe()
    except OSError as error:
        return _report_os_error(error)
    return code


_UNWRITABLE = frozenset({errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EBADF})


def _report_os_error(error: OSError) -> int:
    """Report a full disk behind stdout and a working folder that was removed; any other error is a bug."""
    if isinstance(error, FileNotFoundError) and error.filename is None:
        report_error("the working folder does not exist any more")
        return 1
    if error.errno not in _UNWRITABLE or error.filename is not None:
        report_error(bug_text(error))
        return 1
    report_error(f"cannot write the output: {(error.strerror or 'unknown error').lower()}")
    closed_pipe()
    return 1


def write_as_utf8() -> None:
    """Let stdout be UTF-8 whatever the code page is: documents for machines have no other encoding."""
    reconfigure = getattr(STDOUT.raw, "reconfigure", None)
    if reconfigure is not None and STDOUT.raw.encoding.lower().replace("-", "") != "utf8":
        reconfigure(encoding="utf-8")


def can_show(stream: Stream, text: str) -> bool:
    """Return whether the encoding of a stream has these characters."""
    try:
        text.encode(getattr(stream, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def closed_pipe() -> int:
    """Handle a closed pipe at stdout (`pyverno ... | head`): stop quietly, also in the final flush of Python."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT.raw.fileno())
    return 141
