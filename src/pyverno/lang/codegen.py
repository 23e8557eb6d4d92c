"""The only place that turns generated source into a function, and the writer that makes such source safe.

Source is written as templates of ours plus integers: variables are `v0 v1 ...`, everything that came from a policy is a
constant `c0 c1 ...` handed over as a value. No text of a policy or of a resource ever enters the source, not even
quoted: `Source.line` takes nothing but integers, and `Source.build` refuses source that holds a quote, a backslash or
any other character that templates do not need. Functions of equal source share one code object: what distinguishes them
are their constants.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from types import CellType, CodeType, FunctionType
from typing import Any, Final

from pyverno.kube.json import JSON
from pyverno.lazyregex import regex

__all__ = ["MAX_INDENT", "MAX_LINES", "Source"]

MAX_INDENT = 60
"""Deepest indentation that a generator may ask for; CPython's own limit is 100 levels."""

MAX_LINES = 20_000
"""Longest function that is worth compiling; a generator gives up beyond it."""

_ALLOWED = regex(r"[A-Za-z0-9_ \n()\[\].,:=<>!+*-]*")
_BUILTINS: dict[str, Any] = {
    builtin.__name__: builtin
    for builtin in (
        *(bool, dict, float, int, len, list, str, type),
        *(AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError),
    )
}


class Source:
    """A function under construction: its lines and its constants.

    The function takes the arguments `v0 ... v(n-1)`; a generated name of variables never clashes with them.

    >>> source = Source(arguments=1)
    >>> key = source.constant("spec")
    >>> source.line(0, "return c{} in v{}", key, 0)
    >>> source.build()({"spec": {}})
    True
    """

    __slots__ = ("_constants", "_indexes", "_lines", "_variables", "arguments")

    def __init__(self, *, arguments: int) -> None:
        self.arguments = arguments
        self._variables = arguments
        self._lines: list[str] = []
        self._constants: list[JSON] = []
        self._indexes: dict[str, int] = {}

    @property
    def size(self) -> int:
        """The number of lines so far."""
        return len(self._lines)

    def constant(self, value: JSON) -> int:
        """Keep a value and return its index; equal texts share one."""
        known = self._indexes.get(value) if type(value) is str else None
        if known is not None:
            return known
        self._constants.append(value)
        index = len(self._constants) - 1
        if type(value) is str:
            self._indexes[value] = index
        return index

    def settle(self, index: int, value: int) -> None:
        """Give a constant that was kept as None its value, a number that was not known before."""
        self._constants[index] = value

    def variable(self) -> int:
        """Return the number of a fresh variable."""
        self._variables += 1
        return self._variables - 1

    def line(self, indent: int, template: str, *numbers: int) -> None:
        """Append one line; each `{}` of the template becomes one of the integers.

        Raises TypeError when a number is anything but an int, so that text cannot slip in, and ValueError when
        the function grows past `MAX_INDENT` or `MAX_LINES`.
        """
        for number in numbers:
            if type(number) is not int:
                raise TypeError("generated source is made of templates and integers only")
        if indent > MAX_INDENT or len(self._lines) >= MAX_LINES:
            raise ValueError("the generated function grows too large")
        self._lines.append("    " * (indent + 2) + template.format(*numbers))

    def first(self, template: str, *numbers: int) -> None:
        """Put one line before all others: what must have a value wherever the function goes."""
        self.line(0, template, *numbers)
        self._lines.insert(0, self._lines.pop())

    def build(self) -> Callable[..., Any]:
        """Make the lines a function whose constants are closure cells; equal lines are compiled once."""
        names = "".join(f"c{index}, " for index in range(len(self._constants)))
        arguments = ", ".join(f"v{index}" for index in range(self.arguments))
        head = ["def bind(constants):"]
        if names:
            head.append(f"    {names}= constants")
        text = "\n".join([*head, f"    def generated({arguments}):", *self._lines, ""])
        code = _shared_code(text) if len(text) <= _SHARED_LENGTH else _code(text)
        constants = self._constants
        cells = tuple([_cell(constants[int(name[1:])]) for name in code.co_freevars])
        return FunctionType(code, _GLOBALS, closure=cells)


_SHARED_CODES: Final = 512
_SHARED_LENGTH: Final = 16_384
"""How many code objects are kept for sources to come, and how long a source may be that is kept with them."""

_SHARED_TEXTS: Final = 4096
_SHARED_TEXT_LENGTH: Final = 64
"""The same for constants that are short texts; most are keys of resources, which all policies ask for."""

_GLOBALS: Final[dict[str, Any]] = {"__builtins__": _BUILTINS}


def _code(text: str) -> CodeType:
    """Return the code of the inner function of a source; nothing of the source is run."""
    if _ALLOWED.fullmatch(text) is None:
        raise ValueError("generated source holds a character that no template needs")
    module = compile(text, "<generated>", "exec")  # the one site that security.md S4 permits
    bind = next(item for item in module.co_consts if isinstance(item, CodeType))
    code = next(item for item in bind.co_consts if isinstance(item, CodeType))
    return code.replace(co_linetable=_one_line(len(code.co_code)))


_shared_code = lru_cache(maxsize=_SHARED_CODES)(_code)


def _one_line(size: int) -> bytes:
    """Return a table of lines in which all code is on the first line, a quarter of the size of the one it replaces.

    An entry is two bytes: its kind (no columns) with the number of code units less one, and the difference of lines.
    """
    whole, rest = divmod(size // 2, 8)
    return b"\xef\x00" * whole + (bytes((0xE8 + rest - 1, 0)) if rest else b"")


def _cell(value: JSON) -> CellType:
    return _text_cell(value) if type(value) is str and len(value) <= _SHARED_TEXT_LENGTH else CellType(value)


@lru_cache(maxsize=_SHARED_TEXTS)
def _text_cell(text: str) -> CellType:
    return CellType(text)
