"""Translation of click's errors into this command line's own exceptions.

Texts about wrong arguments are those of Kyverno's command line, so that scripts that parse them keep working.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from pyverno.cli.errors import Exit
from pyverno.errors import UsageError
from pyverno.lazyregex import regex
from pyverno.spelling import did_you_mean

__all__ = ["argument_error", "run_command"]

_TOO_MANY = regex(r"^Got unexpected extra arguments?")


def run_command(
    command: click.Command, words: Sequence[str], name: str, defaults: Mapping[str, Any] | None = None
) -> object:
    """Run a command of click's, with other defaults of its flags.

    Raises UsageError for wrong arguments, Exit and KeyboardInterrupt as click would.
    """
    try:
        return command.main(args=list(words), prog_name=name, standalone_mode=False, default_map=defaults)
    except click.exceptions.Exit as stop:
        raise Exit(stop.exit_code) from None
    except click.ClickException as error:
        raise UsageError(argument_error(error)) from error
    except click.exceptions.Abort:
        raise KeyboardInterrupt from None


def argument_error(error: click.ClickException) -> str:
    """Return Kyverno's text for wrong arguments."""
    match error:
        case click.NoSuchOption():
            name = error.option_name
            if name.startswith("--"):
                return f"unknown flag: {name}{did_you_mean(name, _flag_names(error.ctx))}"
            return f"unknown shorthand flag: {_shorthand(name)}"
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
            return f"invalid argument for `{flags}`: {_lower_first(error.message.rstrip('.'))}"
    if _TOO_MANY.match(error.message):
        _, _, words = error.message.partition("(")
        first = words.rstrip(")").split(" ")[0]
        path = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "pyverno"
        return f'unknown command "{first}" for "{path}"'
    return error.message


def _flag_names(context: click.Context | None) -> list[str]:
    """Return the flags of a command that its help shows."""
    options = context.command.params if context is not None else ()
    shown = [each for each in options if isinstance(each, click.Option) and not each.hidden]
    return [name for each in shown for name in each.opts if name.startswith("--")]


def _shorthand(name: str) -> str:
    return f"'{name[1:2]}' in {name}"


def _long_name(parameter: click.Parameter) -> str:
    return max(parameter.opts, key=len).lstrip("-")


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]
