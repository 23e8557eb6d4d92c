"""What the command line does with an exception: one line `Error: ...` on stderr and exit code 1.

Texts of wrong arguments are those of Kyverno's command line, so that scripts that look at them keep working. A
traceback is shown only for a bug. This module must never print to stdout.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable

import click

from pyverno.errors import PyvernoError, UsageError

__all__ = ["Exit", "argument_error", "guarded", "report_error", "report_warning", "unknown_command"]

_TOO_MANY = re.compile(r"^Got unexpected extra arguments?")


class Exit(Exception):  # noqa: N818 - not an error: the code that a command ends with after it said everything
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


def unknown_command(name: str, path: str) -> UsageError:
    """Return the error of a command that does not exist.

    >>> print(unknown_command("x", "pyverno"))
    unknown command "x" for "pyverno"
    Run 'pyverno --help' for usage.
    """
    return UsageError(f'unknown command "{name}" for "{path}"\nRun \'{path} --help\' for usage.')


def argument_error(error: click.ClickException) -> str:
    """Return Kyverno's text for wrong arguments."""
    match error:
        case click.NoSuchOption():
            name = error.option_name
            return f"unknown flag: {name}" if name.startswith("--") else f"unknown shorthand flag: {_shorthand(name)}"
        case click.BadOptionUsage() if "requires an argument" in error.message:
            name = error.option_name
            return f"flag needs an argument: {name if name.startswith('--') else _shorthand(name)}"
        case click.MissingParameter() if isinstance(error.param, click.Argument):
            least = max(error.param.nargs, 1)
            if error.param.nargs == -1:
                return f"requires at least {least} arg(s), only received 0"
            return f"accepts {least} arg(s), received 0"
        case click.MissingParameter() if error.param is not None:
            return f'required flag(s) "{_long_name(error.param)}" not set'
        case click.BadParameter() if error.param is not None:
            flags = ", ".join(sorted(error.param.opts, key=len))
            return f"invalid argument for `{flags}`: {error.message.rstrip('.').lower()}"
    if _TOO_MANY.match(error.message):
        _, _, words = error.message.partition("(")
        first = words.rstrip(")").split(" ")[0]
        path = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "pyverno"
        return f'unknown command "{first}" for "{path}"'
    return error.message


def _shorthand(name: str) -> str:
    return f"'{name[1:2]}' in {name}"


def _long_name(parameter: click.Parameter) -> str:
    return max(parameter.opts, key=len).lstrip("-")


def guarded(command: Callable[[], object]) -> int:
    """Call a command and turn whatever happens into an exit code."""
    try:
        result = command()
        sys.stdout.flush()
    except Exit as stop:
        return _flushed(stop.code)
    except click.exceptions.Exit as stop:
        return _flushed(stop.exit_code)
    except click.ClickException as error:
        report_error(argument_error(error))
        return 1
    except PyvernoError as error:
        report_error(error)
        return 1
    except (KeyboardInterrupt, click.exceptions.Abort):
        sys.stderr.write("\n")
        return 130
    except BrokenPipeError:
        return _closed_pipe()
    except SystemExit as stop:
        # click's own way to end when the reader of stdout is gone
        return stop.code if isinstance(stop.code, int) else 1
    return _flushed(result if isinstance(result, int) else 0)


def _flushed(code: int) -> int:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return _closed_pipe()
    return code


def _closed_pipe() -> int:
    """The reader of stdout went away (`pyverno ... | head`): stop quietly, also when Python flushes at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 141
