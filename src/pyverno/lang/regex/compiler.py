"""Compiles the regular expressions of policies and of data with RE2, under one limit of length.

RE2 never backtracks, so that a search takes time in proportion to the text. Python's own engine does backtrack: this
module and its callers must never use it for an expression that comes from a policy or from data.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, TypeVar

import re2

from pyverno.errors import EvaluationError
from pyverno.lang.regex.errors import go_reason

__all__ = ["MAX_PATTERN", "compile_re2", "recent_patterns"]

_T = TypeVar("_T")

MAX_PATTERN: Final = 1024
"""Longest accepted pattern, in bytes."""

_USUAL_MEMORY: Final = 1024 * 1024
_MOST_MEMORY: Final = 8 * 1024 * 1024
"""Memory of one pattern with the states of its searches; the second is RE2's own limit, for large patterns."""


def compile_re2(pattern: str) -> Any:  # the package has no types
    """Return a compiled pattern for texts and UTF-8 bytes.

    Raises EvaluationError with Go's text, whose `detailed` form quotes the pattern.

    >>> compile_re2("a+").search(b"caab").span()
    (1, 3)
    """
    if len(pattern.encode("utf-8", "replace")) > MAX_PATTERN:
        raise EvaluationError(f"error parsing regexp: pattern is longer than {MAX_PATTERN} bytes")
    try:
        try:
            return _compile(pattern, _USUAL_MEMORY)
        except re2.error:
            return _compile(pattern, _MOST_MEMORY)
    except re2.error as error:
        reason = f"error parsing regexp: {go_reason(error, pattern)}"
        raise EvaluationError(reason.partition(": `")[0], detailed=reason) from None
    except UnicodeEncodeError:
        raise EvaluationError("error parsing regexp: invalid UTF-8") from None


def _compile(pattern: str, memory: int) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = memory
    try:
        return re2.compile(pattern, options)
    finally:
        re2.purge()  # the package keeps the 128 patterns that it compiled last, up to a gigabyte


class _TooLargeToKeep(Exception):  # noqa: N818 - carries a pattern past the cache
    """A pattern that is made each time."""


def recent_patterns(make: Callable[[str], _T], compiled: Callable[[_T], Any], most: int) -> Callable[[str], _T]:
    r"""Return a function that remembers the patterns that `make` made last, `most` of them and no large one.

    `compiled` returns what `compile_re2` made for a pattern.

    >>> find = recent_patterns(compile_re2, lambda made: made, 8)
    >>> find("a+") is find("a+"), find(r"\pL{100}") is find(r"\pL{100}")
    (True, False)
    """

    @lru_cache(maxsize=most)
    def keep(text: str) -> _T:
        made = make(text)
        if compiled(made).options.max_mem > _USUAL_MEMORY:
            raise _TooLargeToKeep(made)
        return made

    def find(text: str) -> _T:
        try:
            return keep(text)
        except _TooLargeToKeep as large:
            made: _T = large.args[0]
            return made

    return find
