"""Flags as plain rows, and the reading of command lines that need nothing but them.

click reads every command line; loading it takes longer than judging a resource. Words that are names of flags, their
values and arguments, and nothing else, are read here. Law: where `read_plainly` answers, click answers the same; at the
first sign of anything else (`=`, joined or unknown flags, wrong values, `--help`) it declines, and click decides. This
module must never import click, nor report an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from pyverno.errors import PyvernoError
from pyverno.value import dataclass

__all__ = ["Flag", "list_flag", "read_plainly", "switch", "value_flag"]


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag: what it is called, what it takes, and its line in the help.

    `read` makes the value of a text and raises ValueError or PyvernoError for a wrong one; `choices` are all texts that
    it may be. `default` is as the help shows it.
    """

    names: tuple[str, ...]
    kind: Literal["list", "switch", "value"]
    help: str
    default: Any = ""
    read: Callable[[str], Any] = str
    choices: tuple[str, ...] = ()
    metavar: str | None = None
    hidden: bool = False

    @property
    def field(self) -> str:
        """The name that the value has in the program, made of the first long name."""
        long = next(name for name in self.names if name.startswith("--"))
        return long.removeprefix("--").replace("-", "_")

    @property
    def default_value(self) -> Any:
        """The value when the flag is not given."""
        return self.read(self.default) if self.kind == "value" and isinstance(self.default, str) else self.default


def list_flag(*names: str, help: str, hidden: bool = False) -> Flag:
    """Return a flag that holds a list of texts, repeated or parted by commas."""
    return Flag(names, "list", help, (), hidden=hidden)


def switch(*names: str, help: str, default: bool = False) -> Flag:
    """Return a flag without value."""
    return Flag(names, "switch", help, default)


def value_flag(
    *names: str,
    help: str,
    default: Any = "",
    read: Callable[[str], Any] = str,
    choices: Sequence[str] = (),
    metavar: str | None = None,
) -> Flag:
    """Return a flag with one value; the last one given wins."""
    return Flag(names, "value", help, default, read, tuple(choices), metavar)


def read_plainly(flags: Sequence[Flag], words: Iterable[str]) -> tuple[tuple[str, ...], dict[str, Any]] | None:
    """Return the arguments and the values of all flags by field, None when click must look at the words.

    >>> read_plainly([list_flag("-r", "--resource", help="")], ["a.yaml", "-r", "b,c"])
    (('a.yaml',), {'resource': ('b', 'c')})
    >>> read_plainly([list_flag("-r", "--resource", help="")], ["--resource=b"])
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
        if flag is None:
            return None
        if flag.kind == "switch":
            values[flag.field] = True
            continue
        text = next(rest, "-")
        # a value in quotes may hold commas
        if text.startswith("-") or '"' in text or "\n" in text or "\r" in text:
            return None
        if flag.kind == "list":
            values[flag.field] += tuple(text.split(",")) if text else ()
        elif flag.choices and text not in flag.choices:
            return None
        else:
            try:
                values[flag.field] = flag.read(text)
            except (ValueError, PyvernoError):
                return None
    return tuple(arguments), values
