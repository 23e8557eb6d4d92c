"""Regular expressions of our own code, compiled when they are first used.

Python takes up to some milliseconds to compile one, and a run uses few of those that its modules name. This module must
never see an expression that came from outside.
"""

from __future__ import annotations

import importlib
import re
from typing import Any, AnyStr, cast

__all__ = ["go_regex", "regex"]

_METHODS = ("findall", "finditer", "fullmatch", "match", "pattern", "search", "split", "sub", "subn")


class _Regex:
    """A pattern whose methods are put into its slots when the first of them is asked for."""

    __slots__ = (*_METHODS, "_engine", "_written")

    def __init__(self, engine: str, *written: object) -> None:
        self._engine = engine
        self._written = written

    # asked only while the slot is empty
    def __getattr__(self, name: str) -> Any:
        if name not in _METHODS:
            raise AttributeError(name)
        compiled = importlib.import_module(self._engine).compile(*self._written)
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


def regex(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return what acts as the compiled expression; raises `re.error` at its first use when it is none.

    >>> regex("[a-z]+").fullmatch("abc")
    <re.Match object; span=(0, 3), match='abc'>
    """
    return cast("re.Pattern[AnyStr]", _Regex("re", text, flags))


def go_regex(text: str) -> Any:
    """Return what acts as the expression compiled by RE2, for those that Kyverno has in Go and runs on any text.

    >>> go_regex("[a-z]+").search("1abc2").group(0)
    'abc'
    """
    return _Regex("re2", text)
