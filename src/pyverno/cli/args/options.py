"""Flags as Kyverno's command line reads them, on top of click.

Lists are repeated or parted by commas (with quotes as in CSV), flags without value also take `=true` and `=false`, a
short flag also takes `=value`, and two names of a flag fill one list. This module must not know any single command.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from typing import Any

import click

from pyverno.cli.args.flags import Flag
from pyverno.errors import UsageError, ValueSyntaxError
from pyverno.lazyregex import regex

__all__ = [
    "LOGGING_OPTIONS",
    "Command",
    "Duration",
    "comma_list",
    "flag",
    "items",
    "logging_arguments",
    "option",
    "rewritten",
    "value",
]

_BOOLEANS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
_LOG_LEVEL = regex(r"^--?v(?:=(?P<level>.*)|(?P<digits>\d+))?$", re.DOTALL)
_SHORT_VALUE = regex(r"^-(?P<name>[A-Za-z])=(?P<value>.*)$", re.DOTALL)


class Command(click.Command):
    """A command whose flags are read as Go's pflag reads them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Rewrite the forms that click does not know, then parse."""
        return super().parse_args(ctx, rewritten(self.params, args))


def rewritten(parameters: Sequence[click.Parameter], arguments: Sequence[str]) -> list[str]:
    """Return arguments in forms that click knows; raises UsageError for a switch that is neither true nor false."""
    switches = {
        name: [*parameter.secondary_opts][:1]
        for parameter in parameters
        if isinstance(parameter, click.Option) and parameter.is_flag
        for name in parameter.opts
    }
    words: list[str] = []
    for position, word in enumerate(logging_arguments(arguments)):
        if word == "--":
            return [*words, *arguments[position:]]
        name, has_value, text = word.partition("=")
        short = _SHORT_VALUE.match(word)
        if has_value and name in switches:
            given = _BOOLEANS.get(text.lower())
            if given is None:
                raise UsageError(f'invalid argument "{text}" for "{name}" flag: expected true or false')
            words += [name] if given else switches[name]
        elif short:
            words += [f"-{short['name']}", short["value"]]
        else:
            words.append(word)
    return words


def logging_arguments(arguments: Sequence[str]) -> list[str]:
    """Write the verbosity in one form: a bare `-v` means level 2, `-v4` and `-v=4` mean 4.

    >>> logging_arguments(["-v", "p.yaml", "-v=4"])
    ['--v=2', 'p.yaml', '--v=4']
    """
    rewritten = []
    for word in arguments:
        found = _LOG_LEVEL.match(word)
        if found:
            level = found["level"] if found["level"] is not None else found["digits"] or "2"
            rewritten.append(f"--v={level}")
        else:
            rewritten.append(word)
    return rewritten


def items(value: str) -> list[str]:
    """Split one value of a list flag at its commas; double quotes keep commas together.

    >>> items('a.yaml,"b,c.yaml"')
    ['a.yaml', 'b,c.yaml']
    """
    return next(csv.reader([value]), []) if value else []


def _all_items(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> tuple[str, ...]:
    return tuple(item for value in values for item in items(value))


def comma_list(*names: str, help: str, hidden: bool = False) -> click.Option:
    """Return a flag that holds a list of texts."""
    return click.Option(list(names), multiple=True, callback=_all_items, help=help, hidden=hidden, metavar="LIST")


def flag(*names: str, help: str, default: bool = False, hidden: bool = False) -> click.Option:
    """Return a flag without value; `--name=false` switches it off."""
    long = next(name for name in names if name.startswith("--"))
    field = long.removeprefix("--").replace("-", "_").lower()
    off = f"--not{long.removeprefix('--')}"
    written = [field, *names[:-1], f"{names[-1]}/{off}"]
    return _Switch(written, default=default, help=help, hidden=hidden)


class _Switch(click.Option):
    """A flag whose negative form exists for `=false` only and is never shown."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        if self.hidden:
            return None
        shown = ", ".join(sorted(self.opts, key=len))
        return shown, self.help or ""


def value(
    *names: str,
    help: str,
    default: Any = "",
    type: Any = str,
    metavar: str | None = None,
    hidden: bool = False,
) -> click.Option:
    """Return a flag with one value; the last one given wins."""
    return click.Option(
        list(names), default=default, type=type, help=help, metavar=metavar, hidden=hidden, show_default=bool(default)
    )


def option(row: Flag) -> click.Option:
    """Return click's form of a row."""
    if row.kind == "list":
        return comma_list(*row.names, help=row.help, hidden=row.hidden)
    if row.kind == "switch":
        return flag(*row.names, help=row.help, default=row.default, hidden=row.hidden)
    # what is no text is a number or, when even its default is written as a text, a duration
    kind = int if isinstance(row.default, int) else str if row.read is str else Duration()
    type = click.Choice(row.choices) if row.choices else kind
    return value(*row.names, help=row.help, default=row.default, type=type, metavar=row.metavar, hidden=row.hidden)


class Duration(click.ParamType):  # type: ignore[type-arg]  # generic in the stubs of click only
    """A duration in Go's form (`720h`, `1h30m`), in nanoseconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse a text; an int is taken as it is."""
        from pyverno.kube.time.duration import parse_duration

        if isinstance(value, int):
            return value
        try:
            return parse_duration(value)
        except ValueSyntaxError as error:
            self.fail(str(error), param, ctx)


def _log_level(ctx: click.Context, param: click.Parameter, value: str) -> None:
    if value and not value.lstrip("-").isdigit():
        raise UsageError(f'Failed to setup logging (invalid log level "{value}")')


def _logging(names: list[str], help_text: str, **more: Any) -> Callable[[], click.Option]:
    return lambda: click.Option(names, help=help_text, expose_value=False, hidden=True, **more)


def _logging_switch(name: str, default: bool) -> Callable[[], click.Option]:
    def make() -> click.Option:
        option = flag(f"--{name}", help="Accepted for compatibility.", default=default, hidden=True)
        option.expose_value = False
        return option

    return make


LOGGING_OPTIONS: tuple[Callable[[], click.Option], ...] = (
    _logging(["--v", "log_level"], "Verbosity of the log.", default="", callback=_log_level),
    _logging(["--vmodule"], "Accepted for compatibility.", default=""),
    _logging(["--stderrthreshold"], "Accepted for compatibility.", default="2"),
    _logging(["--alsologtostderrthreshold"], "Accepted for compatibility.", default=""),
    _logging(["--log_dir"], "Accepted for compatibility.", default=""),
    _logging(["--log_file"], "Accepted for compatibility.", default=""),
    _logging(["--log_file_max_size"], "Accepted for compatibility.", default="1800"),
    _logging(["--log_backtrace_at"], "Accepted for compatibility.", default=""),
    _logging_switch("logtostderr", True),
    _logging_switch("alsologtostderr", False),
    _logging_switch("legacy_stderr_threshold_behavior", True),
    _logging_switch("add_dir_header", False),
    _logging_switch("one_output", False),
    _logging_switch("skip_headers", False),
    _logging_switch("skip_log_headers", False),
)
"""Flags that every command inherits; pyverno writes no log files, so only the verbosity has a meaning."""
