"""Flags of a controller as fields of records: each is written once; command, help and typed values are made of it.

A record is one group of flags and a field is one flag. Words are read as Go's package `flag` reads them, because
Kyverno's controllers use it. This module must never know any single flag.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar, cast

import click

from pyverno.cli.args.options import LOGGING_OPTIONS, Duration, flag, value
from pyverno.cli.args.sections import SectionedCommand
from pyverno.errors import UsageError, ValueSyntaxError

__all__ = [
    "command_of",
    "environment_of",
    "group_of",
    "ineffective",
    "listed",
    "number",
    "packed",
    "seconds",
    "switch",
    "text",
    "unpacked",
]

_FLAG = "flag"
_TITLE = "title"
_NANOSECONDS = 1_000_000_000
_NO_EFFECT = " Accepted for compatibility: it has no effect."
_TRUTH: Mapping[str, bool] = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
_Number = TypeVar("_Number", int, float)
_Record = TypeVar("_Record")


@dataclasses.dataclass(frozen=True, slots=True)
class _Row:
    """What one field says of its flag; `env` is the variable that speaks where the flag is not given."""

    name: str
    help: str
    kind: Literal["list", "number", "seconds", "switch", "text"]
    default: Any
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    env: str = ""
    is_toggle: bool = False
    has_effect: bool = True

    @property
    def parameter(self) -> str:
        """The name that click gives to the value."""
        return self.name.removeprefix("--").lower()

    @property
    def shown(self) -> str:
        """The line of the help."""
        text = self.help if self.has_effect else self.help + _NO_EFFECT
        return f"{text} Also by {self.env}." if self.env else text


def switch(
    name: str, help: str, *, default: bool = False, env: str = "", is_toggle: bool = False, has_effect: bool = True
) -> bool:
    """Return the field of a flag that is true or false; a toggle also takes its value as the next word."""
    row = _Row(name, help, "switch", default, env=env, is_toggle=is_toggle, has_effect=has_effect)
    return cast("bool", _field(row))


def text(
    name: str,
    help: str,
    *,
    default: str = "",
    metavar: str | None = None,
    choices: Sequence[str] = (),
    has_effect: bool = True,
) -> str:
    """Return the field of a flag that holds a text, one of `choices` if there are any."""
    row = _Row(name, help, "text", default, metavar, tuple(choices), has_effect=has_effect)
    return cast("str", _field(row))


def number(name: str, help: str, *, default: _Number, metavar: str | None = None, has_effect: bool = True) -> _Number:
    """Return the field of a flag that holds a number of the type of its default."""
    return cast("_Number", _field(_Row(name, help, "number", default, metavar, has_effect=has_effect)))


def seconds(name: str, help: str, *, default: str, has_effect: bool = True) -> float:
    """Return the field of a flag that holds a duration in Go's form (`1h30m`), which the program has in seconds."""
    return cast("float", _field(_Row(name, help, "seconds", default, has_effect=has_effect)))


def listed(name: str, help: str, *, default: str = "", metavar: str = "LIST", env: str = "") -> tuple[str, ...]:
    """Return the field of a flag that holds texts with commas between them, blanks around them and empty ones cut."""
    return cast("tuple[str, ...]", _field(_Row(name, help, "list", default, metavar, env=env)))


def group_of(title: str, record: type[_Record]) -> _Record:
    """Return the field of a group of flags, with its title in the help."""
    made: _Record = dataclasses.field(default_factory=record, metadata={_TITLE: title})
    return made


def command_of(
    name: str, help: str, record: type[_Record], run: Callable[[_Record], object], *, epilog: str = ""
) -> SectionedCommand:
    """Return the command whose flags are the fields of the records in `record`; `run` is called with their values."""
    groups = tuple(_groups(record))
    rows = {row.parameter: row for _, _, inner in groups for _, row in inner}

    def call(**given: object) -> object:
        made = {
            field: kind(**{each: _value(row, given[row.parameter]) for each, row in inner})
            for field, kind, inner in groups
        }
        return run(record(**made))

    sections = {
        str(field.metadata[_TITLE]): [_option(row) for _, row in inner]
        for field, (_, _, inner) in zip(dataclasses.fields(cast("Any", record)), groups, strict=True)
    }
    own = [option for options in sections.values() for option in options]
    inherited = [
        option for make in LOGGING_OPTIONS if (option := make()).opts[0] not in {row.name for row in rows.values()}
    ]
    command = _GoCommand(
        name=name,
        help=help,
        epilog=epilog,
        callback=call,
        params=[*own, *inherited],
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    command.sections = sections
    command.rows = {row.name: row for row in rows.values()}
    return command


def environment_of(record: type) -> Mapping[str, str]:
    """Return the flags that have a twin in the environment: the name of the flag and that of its variable."""
    return {row.name: row.env for _, _, inner in _groups(record) for _, row in inner if row.env}


def ineffective(flags: object) -> tuple[str, ...]:
    """Return the flags that were given a value of their own and have no effect."""
    return tuple(
        row.name
        for group, kind, inner in _groups(type(flags))
        for field, row in inner
        if not row.has_effect and getattr(getattr(flags, group), field) != getattr(kind(), field)
    )


def packed(flags: object) -> dict[str, Any]:
    """Return the values of all flags as JSON values, for another process."""
    return {group: dataclasses.asdict(getattr(flags, group)) for group, _, _ in _groups(type(flags))}


def unpacked(record: type[_Record], values: Mapping[str, Mapping[str, Any]]) -> _Record:
    """Return the flags that `packed` was given."""
    return record(
        **{
            group: kind(
                **{name: tuple(each) if isinstance(each, list) else each for name, each in values[group].items()}
            )
            for group, kind, _ in _groups(record)
        }
    )


class _GoCommand(SectionedCommand):
    """A command that also takes its flags with one hyphen, the verbosity and toggles with the value as a word."""

    rows: Mapping[str, _Row]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Write the words in the forms that pflag knows, then parse."""
        return super().parse_args(ctx, list(_in_long_form(self.rows, args)))


def _in_long_form(rows: Mapping[str, _Row], words: Sequence[str]) -> Iterator[str]:
    """Yield words as pflag writes them.

    >>> rows = {"--v": _Row("--v", "", "number", 2), "--on": _Row("--on", "", "switch", False, is_toggle=True)}
    >>> list(_in_long_form(rows, ["-v", "4", "-on", "false", "--on=", "-h"]))
    ['--v=4', '--on=false', '-h']
    """
    rest = list(reversed(words))
    while rest:
        word = rest.pop()
        name, has_value, given = f"--{word.lstrip('-')}".partition("=")
        row = rows.get(name) if word.startswith("-") and not word.startswith("---") else None
        if row is None:
            yield word
        elif has_value:
            if given or not row.is_toggle:
                yield f"{name}={given}"
        elif rest and ((row.is_toggle and rest[-1].lower() in _TRUTH) or (name == "--v" and rest[-1].isdigit())):
            yield f"{name}={rest.pop()}"
        else:
            yield name


def _field(row: _Row) -> object:
    return dataclasses.field(default=_read(row, row.default), metadata={_FLAG: row})


def _groups(record: type) -> Iterator[tuple[str, type, tuple[tuple[str, _Row], ...]]]:
    """Yield for each group the field that holds it, its record, and that one's fields with their flags."""
    for field in dataclasses.fields(record):
        kind = cast("type", field.default_factory)
        yield field.name, kind, tuple((each.name, each.metadata[_FLAG]) for each in dataclasses.fields(kind))


def _option(row: _Row) -> click.Option:
    if row.kind == "switch":
        option = flag(row.name, help=_with_default(row) if row.default else row.shown, default=row.default)
    elif row.kind == "list":
        option = value(row.name, help=_with_default(row) if row.default else row.shown, metavar=row.metavar)
    else:
        types = {"number": click.types.convert_type(None, row.default), "seconds": Duration()}
        type = types.get(row.kind, click.STRING)
        option = value(row.name, help=row.shown, default=row.default, type=type, metavar=row.metavar)
    if row.kind in ("switch", "list"):  # None says that it was not given, and then the environment is asked
        option.default = None
    return option


def _with_default(row: _Row) -> str:
    default = "true" if row.default is True else row.default
    return f"{row.shown}  [default: {default}]"


def _value(row: _Row, given: object) -> object:
    if given is not None:
        return _read(row, given)
    found = os.environ.get(row.env) if row.env else None
    if found is None or (not found and row.kind == "switch"):
        return _read(row, row.default)
    try:
        return _read(row, found)
    except ValueSyntaxError as error:
        raise UsageError(f"environment variable {row.env}: {error}") from None


def _read(row: _Row, given: object) -> object:
    match row.kind:
        case "list":
            return tuple(part.strip() for part in str(given).split(",") if part.strip())
        case "seconds":
            return _nanoseconds(given) / _NANOSECONDS
        case "switch" if isinstance(given, str):
            truth = _TRUTH.get(given.lower())
            if truth is None:
                raise ValueSyntaxError(f"`{given}` is neither true nor false")
            return truth
        case "text" if row.choices and given not in row.choices:
            *first, last = row.choices
            expected = f"{', '.join(first)} or {last}" if first else last
            raise UsageError(f'invalid argument "{given}" for "{row.name}" flag: expected {expected}')
    return given


def _nanoseconds(given: object) -> int:
    from pyverno.kube.time.duration import parse_duration

    return given if isinstance(given, int) else parse_duration(str(given))
