"""The only place that turns generated source into a function, and the writer that makes such source safe.

Source is written as templates of ours plus integers: variables are `v0 v1 ...`, everything that came from a policy is
a constant `c0 c1 ...` handed over as a value. No text of a policy or of a resource ever enters the source, not even
quoted: `Source.line` takes nothing but integers, and `Source.build` refuses source that holds a quote, a backslash or
any other character that templates do not need. This module must never learn what is being generated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyverno.kube.json import JSON
from pyverno.regex import regex

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

        Raises TypeError when a number is anything but an int, so that text can not slip in, and ValueError when
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
        """Compile the lines into a function whose constants are closure cells."""
        names = "".join(f"c{index}, " for index in range(len(self._constants)))
        arguments = ", ".join(f"v{index}" for index in range(self.arguments))
        head = ["def bind(constants):"]
        if names:
            head.append(f"    {names}= constants")
        text = "\n".join([*head, f"    def generated({arguments}):", *self._lines, "    return generated", ""])
        if _ALLOWED.fullmatch(text) is None:
            raise ValueError("generated source holds a character that no template needs")
        namespace: dict[str, Any] = {"__builtins__": _BUILTINS}
        exec(compile(text, "<generated>", "exec"), namespace)  # noqa: S102  # the one site that security.md S4 permits
        function: Callable[..., Any] = namespace["bind"](tuple(self._constants))
        return function
