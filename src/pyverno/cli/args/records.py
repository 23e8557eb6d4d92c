"""Flags as fields of records: a record is one group of flags, a field one flag with a typed value.

Words are read as Go's package `flag` reads them, because Kyverno's controllers use it.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

import click

from pyverno.cli.args.flags import Flag
from pyverno.cli.args.sections import SectionedCommand, command
from pyverno.errors import UsageError, ValueSyntaxError

# trust rows: environment

__all__ = [
    "command_of",
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
_TRUTH: Mapping[str, bool] = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
_Number = TypeVar("_Number", int, float)
_Record = TypeVar("_Record")


def switch(
    name: str, help: str, *, default: bool = False, env: str = "", is_toggle: bool = False, has_effect: bool = True
) -> bool:
    """Return the field of a flag that is true or false; a toggle also takes its value as the next word."""
    flag = Flag((name,), "switch", help, default, env=env, is_toggle=is_toggle, has_effect=has_effect)
    return cast("bool", _field(flag))


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
    return cast("str", _field(Flag((name,), "text", help, default, metavar, tuple(choices), has_effect=has_effect)))


def number(name: str, help: str, *, default: _Number, metavar: str | None = None, has_effect: bool = True) -> _Number:
    """Return the field of a flag that holds a number of the type of its default."""
    return cast("_Number", _field(Flag((name,), "number", help, default, metavar, has_effect=has_effect)))


def seconds(name: str, help: str, *, default: str, has_effect: bool = True) -> float:
    """Return the field of a flag with a duration in Go's form (`1h30m`); its value is in seconds."""
    return cast("float", _field(Flag((name,), "duration", help, default, has_effect=has_effect)))


def listed(name: str, help: str, *, default: str = "", metavar: str = "LIST", env: str = "") -> tuple[str, ...]:
    """Return the field of a flag that holds texts separated by commas; blanks around them and empty ones are cut."""
    return cast("tuple[str, ...]", _field(Flag((name,), "commas", help, default, metavar, env=env)))


def group_of(title: str, record: type[_Record]) -> _Record:
    """Return the field of a group of flags, with its title in the help."""
    made: _Record = dataclasses.field(default_factory=record, metadata={_TITLE: title})
    return made


def command_of(
    name: str, help: str, record: type[_Record], run: Callable[[_Record], object], *, examples: Sequence[str] = ()
) -> SectionedCommand:
    """Return the command whose flags are the fields of the records in `record`; `run` is called with their values."""
    groups = tuple(_groups(record))

    def call(**given: object) -> object:
        made = {
            field: kind(**{each: _value(flag, given[flag.field]) for each, flag in inner})
            for field, kind, inner in groups
        }
        return run(record(**made))

    sections = {
        # `_read` checks the choices, because they may also come from the environment
        str(field.metadata[_TITLE]): [dataclasses.replace(flag, choices=()) for _, flag in inner]
        for field, (_, _, inner) in zip(dataclasses.fields(cast("Any", record)), groups, strict=True)
    }
    made = cast("_GoCommand", command(name, help, call, sections, examples=examples, kind=_GoCommand))
    made.flags = {flag.names[0]: flag for _, _, inner in groups for _, flag in inner}
    unset = {flag.field for flag in made.flags.values() if flag.kind in ("switch", "commas")}
    for parameter in made.params:
        if parameter.name in unset:
            parameter.default = None  # not given: the environment variable decides
    return made


def ineffective(flags: object) -> tuple[str, ...]:
    """Return the flags without effect that the command line sets."""
    return tuple(
        flag.names[0]
        for group, kind, inner in _groups(type(flags))
        for field, flag in inner
        if not flag.has_effect and getattr(getattr(flags, group), field) != getattr(kind(), field)
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

    flags: Mapping[str, Flag]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Write the words in the forms that pflag knows, then parse."""
        return super().parse_args(ctx, list(_in_long_form(self.flags, args)))


def _in_long_form(flags: Mapping[str, Flag], words: Sequence[str]) -> Iterator[str]:
    """Yield words as pflag writes them.

    >>> flags = {"--v": Flag(("--v",), "number", "", 2), "--on": Flag(("--on",), "switch", "", False, is_toggle=True)}
    >>> list(_in_long_form(flags, ["-v", "4", "-on", "false", "--on=", "-h"]))
    ['--v=4', '--on=false', '-h']
    """
    rest = list(reversed(words))
    while rest:
        word = rest.pop()
        name, has_value, given = f"--{word.lstrip('-')}".partition("=")
        flag = flags.get(name) if word.startswith("-") and not word.startswith("---") else None
        if flag is None:
            yield word
        elif has_value:
            if given or not flag.is_toggle:
                yield f"{name}={given}"
        elif rest and ((flag.is_toggle and rest[-1].lower() in _TRUTH) or (name == "--v" and rest[-1].isdigit())):
            yield f"{name}={rest.pop()}"
        else:
            yield name


def _field(flag: Flag) -> object:
    return dataclasses.field(default=_read(flag, flag.default), metadata={_FLAG: flag})


def _groups(record: type) -> Iterator[tuple[str, type, tuple[tuple[str, Flag], ...]]]:
    """Yield for each group the field that holds it, its record, and that one's fields with their flags."""
    for field in dataclasses.fields(record):
        kind = cast("type", field.default_factory)
        yield field.name, kind, tuple((each.name, each.metadata[_FLAG]) for each in dataclasses.fields(kind))


def _value(flag: Flag, given: object) -> object:
    if given is not None:
        return _read(flag, given)
    found = os.environ.get(flag.env) if flag.env else None
    if found is None or (not found and flag.kind == "switch"):
        return _read(flag, flag.default)
    try:
        return _read(flag, found)
    except ValueSyntaxError as error:
        raise UsageError(f"environment variable {flag.env}: {error}") from None


def _read(flag: Flag, given: object) -> object:
    match flag.kind:
        case "commas":
            return tuple(part.strip() for part in str(given).split(",") if part.strip())
        case "duration":
            return (given if isinstance(given, int) else flag.read(str(given))) / _NANOSECONDS
        case "switch" if isinstance(given, str):
            truth = _TRUTH.get(given.lower())
            if truth is None:
                raise ValueSyntaxError(f"`{given}` is neither true nor false")
            return truth
        case "text" if flag.choices and given not in flag.choices:
            *first, last = flag.choices
            expected = f"{', '.join(first)} or {last}" if first else last
            raise UsageError(f'invalid argument "{given}" for "{flag.names[0]}" flag: expected {expected}')
    return given
