"""Regular expressions of pyverno's own code, compiled at their first use.

Compiling one takes Python up to a few milliseconds, and a run uses few of them. Expressions from policies or resources
must never come here: they run on RE2 within limits (`lang/regex`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, AnyStr, cast

__all__ = ["go_regex", "regex"]

_METHODS = ("findall", "finditer", "fullmatch", "match", "pattern", "search", "split", "sub", "subn")


class _Regex:
    """A pattern that fills its slots with the methods of the compiled pattern at the first use of one."""

    __slots__ = (*_METHODS, "_compile")

    def __init__(self, compile: Callable[[], Any]) -> None:
        self._compile = compile

    # Python calls this only while the slot is empty
    def __getattr__(self, name: str) -> Any:
        if name not in _METHODS:
            raise AttributeError(name)
        compiled = self._compile()
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


def regex(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a stand-in for the compiled expression; its first use raises `re.error` for an invalid expression.

    >>> regex("[a-z]+").fullmatch("abc")
    <re.Match object; span=(0, 3), match='abc'>
    """
    return cast("re.Pattern[AnyStr]", _Regex(lambda: re.compile(text, flags)))


def go_regex(text: str) -> Any:
    """Return a stand-in for an expression compiled by RE2, for expressions of Kyverno's code that run on any text.

    >>> go_regex("[a-z]+").search("1abc2").group(0)
    'abc'
    """

    def compile() -> Any:
        import re2

        return re2.compile(text)

    return _Regex(compile)
