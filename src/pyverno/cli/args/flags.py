"""Flags as values: click, the help, the reference and the fast start-up path are made from one row per flag.

click reads every command line, but loading it takes longer than reviewing a resource. `parse_fast` reads the words
that are only names of flags, their values and arguments. Law: what it accepts, click reads in the same way; at anything
else (`=`, joined or unknown flags, wrong values, `--help`) it declines, and click decides. This module must never
import click, nor report an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from pyverno.errors import PyvernoError
from pyverno.value import dataclass

__all__ = [
    "CONFIG",
    "Flag",
    "Kind",
    "Role",
    "comma_list",
    "duration",
    "number",
    "parse_fast",
    "repeated",
    "switch",
    "value",
]

Kind = Literal["commas", "duration", "list", "number", "repeated", "switch", "text"]
"""`commas` is one text with commas in it, `list` and `repeated` may be given several times."""

Role = Literal[
    "",
    "selection",
    "form",
    "strictness",
    "leniency",
    "facts",
    "network",
    "cluster",
    "programs",
    "writes",
    "secret",
    "once",
]
"""What a flag decides about a run: `pyverno.cli.config.roles` says which files may set it; without a role none may."""

_NO_EFFECT = " Accepted for compatibility: it has no effect."


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag: its names, the type of its value, and its line in the help.

    `default` is as the help shows it; durations are texts. `choices` are all texts that the value may be, `least` and
    `most` the bounds of a number. `env` is the environment variable that sets the flag where it is not given.
    `is_toggle` marks a switch that also takes its value as the next word. `key` names the value in the program. Flags
    of commands that read configuration files have a `role`.
    """

    names: tuple[str, ...]
    kind: Kind
    help: str
    default: Any = ""
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None
    is_required: bool = False
    is_hidden: bool = False
    env: str = ""
    is_toggle: bool = False
    has_effect: bool = True
    key: str = ""
    role: Role = ""

    @property
    def field(self) -> str:
        """The name of the value in the program: `key`, or the first long name.

        >>> switch("-t", "--no-table", help="").field
        'no_table'
        """
        if self.key:
            return self.key
        long = next(name for name in self.names if name.startswith("--"))
        return long.removeprefix("--").replace("-", "_").lower()

    @property
    def default_value(self) -> Any:
        """The value when the flag is not given."""
        return self.read(self.default) if self.kind == "duration" else self.default

    @property
    def description(self) -> str:
        """The line of the help."""
        effect = "" if self.has_effect else _NO_EFFECT
        env = f" Environment variable: {self.env}." if self.env else ""
        return f"{self.help}{effect}{env}"

    def read(self, word: str) -> Any:
        """Return the value of a word in its plainest form; raises ValueError or PyvernoError for any other word."""
        if self.choices and word not in self.choices:
            raise ValueError(word)
        match self.kind:
            case "number":
                if not (word.isascii() and word.isdigit() and isinstance(self.default, int)):
                    raise ValueError(word)
                number = int(word)
                if (self.least is not None and number < self.least) or (self.most is not None and number > self.most):
                    raise ValueError(word)
                return number
            case "duration":
                from pyverno.kube.time.duration import parse_duration

                return parse_duration(word)
        return word


def comma_list(*names: str, help: str, key: str = "", is_hidden: bool = False, role: Role = "") -> Flag:
    """Return a flag that holds a list of texts: given several times, or with commas."""
    return Flag(names, "list", help, (), key=key, is_hidden=is_hidden, role=role)


def repeated(
    *names: str, help: str, metavar: str, default: tuple[str, ...] = (), is_required: bool = False, key: str = ""
) -> Flag:
    """Return a flag that may be given several times; commas belong to its values."""
    return Flag(names, "repeated", help, default, metavar, is_required=is_required, key=key)


def switch(
    *names: str,
    help: str,
    default: bool = False,
    is_hidden: bool = False,
    has_effect: bool = True,
    key: str = "",
    role: Role = "",
) -> Flag:
    """Return a flag without value; `--name=false` switches it off."""
    return Flag(names, "switch", help, default, is_hidden=is_hidden, has_effect=has_effect, key=key, role=role)


def value(
    *names: str,
    help: str,
    default: str = "",
    metavar: str | None = None,
    choices: Sequence[str] = (),
    is_required: bool = False,
    is_hidden: bool = False,
    has_effect: bool = True,
    key: str = "",
    role: Role = "",
) -> Flag:
    """Return a flag with one text, one of `choices` if there are any; the last one given wins."""
    return Flag(
        names,
        "text",
        help,
        default,
        metavar,
        tuple(choices),
        is_required=is_required,
        is_hidden=is_hidden,
        has_effect=has_effect,
        key=key,
        role=role,
    )


def number(
    *names: str,
    help: str,
    default: int,
    least: int | None = None,
    most: int | None = None,
    metavar: str | None = None,
    has_effect: bool = True,
    role: Role = "",
) -> Flag:
    """Return a flag with one whole number."""
    return Flag(names, "number", help, default, metavar, least=least, most=most, has_effect=has_effect, role=role)


def duration(*names: str, help: str, default: str, key: str = "", role: Role = "") -> Flag:
    """Return a flag with a duration in Go's form (`1h30m`); its value is in nanoseconds."""
    return Flag(names, "duration", help, default, "DURATION", key=key, role=role)


CONFIG = (
    value(
        "--config",
        help="Configuration file, or `none`; else .pyverno.yaml or pyproject.toml, which may only select and format.",
        metavar="FILE",
        role="once",
    ),
    value(
        "--config-revision",
        help="Take the file that is found from this revision of git, not from the working tree.",
        metavar="REV",
        role="once",
    ),
)
"""For commands whose flags a file may set."""


def parse_fast(flags: Sequence[Flag], words: Iterable[str]) -> tuple[tuple[str, ...], dict[str, Any]] | None:
    """Return the arguments and the values of all flags by field, None when click must read the words.

    >>> parse_fast([comma_list("-r", "--resource", help="")], ["a.yaml", "-r", "b,c"])
    (('a.yaml',), {'resource': ('b', 'c')})
    >>> parse_fast([comma_list("-r", "--resource", help="")], ["--resource=b"])
    """
    named = {name: each for each in flags for name in each.names}
    values = {each.field: each.default_value for each in flags}
    arguments: list[str] = []
    rest = iter(words)
    for word in rest:
        if not word.startswith("-"):
            arguments.append(word)
            continue
        flag = named.get(word)
        # the verbosity may be without its value
        if flag is None or word == "--v":
            return None
        if flag.kind == "switch":
            values[flag.field] = True
            continue
        given = next(rest, "-")
        # a value in quotes may hold commas
        if given.startswith("-") or '"' in given or "\n" in given or "\r" in given:
            return None
        if flag.kind == "list":
            values[flag.field] += tuple(given.split(",")) if given else ()
        else:
            try:
                values[flag.field] = flag.read(given)
            except (ValueError, PyvernoError):
                return None
    return tuple(arguments), values
