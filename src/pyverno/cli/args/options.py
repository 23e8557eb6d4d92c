"""Flags as click's options, read as Kyverno's command line reads them.

Lists are repeated or have commas (with quotes as in CSV), flags without value also take `=true` and `=false`, a short
flag also takes `=value`, and two names of a flag fill one list.
"""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Sequence
from typing import Any

import click

from pyverno.cli.args.flags import Flag, switch, value
from pyverno.errors import UsageError, ValueSyntaxError
from pyverno.lazyregex import regex
from pyverno.spelling import did_you_mean

__all__ = ["Command", "inherited_options", "option", "pflag_words", "split_list", "with_verbosity"]

_BOOLEANS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
_LOG_LEVEL = regex(r"^--?v(?:=(?P<level>.*)|(?P<digits>\d+))?$", re.DOTALL)
_LEVEL = regex(r"\d+", re.ASCII)
_SHORT_VALUE = regex(r"^-(?P<name>[A-Za-z])=(?P<value>.*)$", re.DOTALL)


class Command(click.Command):
    """A command whose flags are read as Go's pflag reads them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Rewrite the forms that click does not know, then parse; a wrong number of arguments is the first error."""
        words = pflag_words(self.params, args)
        try:
            return super().parse_args(ctx, list(words))
        except click.UsageError:
            self._check_argument_count(ctx, words)
            raise

    def _check_argument_count(self, ctx: click.Context, words: Sequence[str]) -> None:
        """Raise UsageError, with cobra's text, if a command gets another number of arguments than it takes."""
        arguments = [each for each in self.params if isinstance(each, click.Argument)]
        if not arguments or any(each.nargs != 1 or not each.required for each in arguments):
            return
        values, rest, _ = self.make_parser(ctx).parse_args(list(words))
        count = sum(isinstance(values.get(each.name or ""), str) for each in arguments) + len(rest)
        if count != len(arguments):
            raise UsageError(f"accepts {len(arguments)} arg(s), received {count}")


def pflag_words(parameters: Sequence[click.Parameter], arguments: Sequence[str]) -> list[str]:
    """Return arguments in forms that click knows; raises UsageError for a switch that is neither true nor false."""
    switches = {
        name: [*parameter.secondary_opts][:1]
        for parameter in parameters
        if isinstance(parameter, click.Option) and parameter.is_flag
        for name in parameter.opts
    }
    words: list[str] = []
    plain = with_verbosity(arguments)
    for position, word in enumerate(plain):
        if word == "--":
            return [*words, *plain[position:]]
        name, has_value, value = word.partition("=")
        short = _SHORT_VALUE.match(word)
        if has_value and name in switches:
            given = _BOOLEANS.get(value.lower())
            if given is None:
                raise UsageError(f'invalid argument "{value}" for "{name}" flag: expected true or false')
            words += [name] if given else switches[name]
        elif short:
            words += [f"-{short['name']}", short["value"]]
        else:
            words.append(word)
    return words


def with_verbosity(arguments: Sequence[str]) -> list[str]:
    """Write the verbosity in one form: `-v 4`, `-v4` and `-v=4` mean 4, and a bare `-v` means level 2.

    >>> with_verbosity(["-v", "p.yaml", "-v=4", "--v", "3"])
    ['--v=2', 'p.yaml', '--v=4', '--v=3']
    """
    words: list[str] = []
    rest = deque(arguments)
    while rest:
        word = rest.popleft()
        if word == "--":
            return [*words, word, *rest]
        found = _LOG_LEVEL.match(word)
        if found and found["level"] is None:
            is_next = not found["digits"] and bool(rest) and _LEVEL.fullmatch(rest[0])
            word = f"--v={rest.popleft() if is_next else found['digits'] or '2'}"
        elif found:
            word = f"--v={found['level']}"
        words.append(word)
    return words


def split_list(value: str) -> list[str]:
    """Split one value of a list flag at its commas; double quotes keep commas together.

    >>> split_list('a.yaml,"b,c.yaml"')
    ['a.yaml', 'b,c.yaml']
    """
    try:
        return next(csv.reader([value]), []) if value else []
    except csv.Error:
        raise UsageError(f"`{value}` is no list: its items are separated by commas, in one line") from None


def _split_all(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> tuple[str, ...]:
    return tuple(item for value in values for item in split_list(value))


def option(flag: Flag) -> click.Option:
    """Return the option of a flag."""
    named = [flag.field, *flag.names]
    shared: dict[str, Any] = {"help": flag.description, "hidden": flag.is_hidden, "required": flag.is_required}
    match flag.kind:
        case "list":
            return click.Option(named, multiple=True, callback=_split_all, metavar="LIST", **shared)
        case "repeated":
            default: dict[str, Any] = {"default": [*flag.default], "show_default": True} if flag.default else {}
            return click.Option(named, multiple=True, metavar=flag.metavar, **default, **shared)
        case "switch":
            return _switch(flag, shared)
    if not flag.is_required:
        shared |= {"default": flag.default, "show_default": bool(flag.default)}
    return click.Option(named, type=_type(flag), metavar=_metavar(flag), **shared)


def _type(flag: Flag) -> click.ParamType:  # type: ignore[type-arg]  # generic in the stubs of click only
    if flag.kind == "duration":
        return _Duration()
    if flag.least is not None or flag.most is not None:
        return _Range(flag.least, flag.most)
    if flag.choices:
        return _Choice(flag)
    return click.types.convert_type(None, flag.default) if flag.kind == "number" else click.STRING


def _metavar(flag: Flag) -> str | None:
    # the empty value is a choice that the help does not show
    return f"[{'|'.join(flag.choices)}]" if flag.choices and not flag.metavar else flag.metavar


def _switch(flag: Flag, shared: dict[str, Any]) -> click.Option:
    long = next(name for name in flag.names if name.startswith("--"))
    *others, last = flag.names
    if flag.default:
        shared["help"] += "  [default: true]"
    return _Switch(
        [flag.field, *others, f"{last}/--not{long.removeprefix('--')}"],
        default=flag.default,
        **{**shared, "required": False},
    )


class _Switch(click.Option):
    """A flag whose negative form exists for `=false` only and is never shown."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        if self.hidden:
            return None
        shown = ", ".join(sorted(self.opts, key=len))
        return shown, self.help or ""


class _Range(click.IntRange):
    """A whole number within bounds; the error names them."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number of a text."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            if "range" not in error.message:
                raise
            if self.max is None:
                self.fail(f"must be at least {self.min}, got {value}", param, ctx)
            self.fail(f"must be from {self.min} to {self.max}, got {value}", param, ctx)


class _Choice(click.Choice):  # type: ignore[type-arg]  # generic in the stubs of click only
    """One of the words of a flag, or the text of its default; the error has a suggestion."""

    def __init__(self, flag: Flag) -> None:
        super().__init__(list(dict.fromkeys((*flag.choices, flag.default))))
        self._shown = flag.choices

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the word."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            listed = ", ".join(self._shown)
            self.fail(f"`{value}` is not one of {listed}{did_you_mean(str(value), self._shown)}", param, ctx)


class _Duration(click.ParamType):  # type: ignore[type-arg]  # generic in the stubs of click only
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


_IGNORED = "Accepted for compatibility."
_INHERITED = (
    value("--v", help="Verbosity of the log.", is_hidden=True, key="log_level"),
    value("--vmodule", help=_IGNORED, is_hidden=True),
    value("--stderrthreshold", help=_IGNORED, default="2", is_hidden=True),
    value("--alsologtostderrthreshold", help=_IGNORED, is_hidden=True),
    value("--log_dir", help=_IGNORED, is_hidden=True),
    value("--log_file", help=_IGNORED, is_hidden=True),
    value("--log_file_max_size", help=_IGNORED, default="1800", is_hidden=True),
    value("--log_backtrace_at", help=_IGNORED, is_hidden=True),
    switch("--logtostderr", help=_IGNORED, default=True, is_hidden=True),
    switch("--alsologtostderr", help=_IGNORED, is_hidden=True),
    switch("--legacy_stderr_threshold_behavior", help=_IGNORED, default=True, is_hidden=True),
    switch("--add_dir_header", help=_IGNORED, is_hidden=True),
    switch("--one_output", help=_IGNORED, is_hidden=True),
    switch("--skip_headers", help=_IGNORED, is_hidden=True),
    switch("--skip_log_headers", help=_IGNORED, is_hidden=True),
)
"""Flags that every command inherits; pyverno writes no log files, so only the verbosity is checked."""


def inherited_options(own: Sequence[Flag] = ()) -> list[click.Option]:
    """Return the options that a command inherits, without those that it has itself."""
    names = {name for flag in own for name in flag.names}
    inherited = [option(flag) for flag in _INHERITED if names.isdisjoint(flag.names)]
    for each in inherited:
        each.expose_value = False
        if each.name == "log_level":
            each.callback = _check_log_level
    return inherited


def _check_log_level(ctx: click.Context, param: click.Parameter, value: str) -> None:
    if value and not value.lstrip("-").isdigit():
        raise UsageError(f'Failed to setup logging (invalid log level "{value}")')
