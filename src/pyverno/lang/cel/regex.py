"""Regular expressions that policy authors write, by RE2 with Go's limits.

Patterns are compiled once and kept; RE2 never backtracks. This module must never use Python's own engine for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final, Protocol

import re2

from pyverno.errors import EvaluationError
from pyverno.lang.regexperrors import go_reason

__all__ = ["Match", "Pattern", "check_pattern", "compile_pattern"]

MAX_PATTERN: Final = 1_024
_SPECIAL: Final = frozenset(".+*?()|[]{}^$")
_PUNCTUATION: Final = frozenset(".+*?()|[]{}^$\\/-")


class Match(Protocol):
    """One match of a pattern; positions are code points."""

    def group(self, number: int) -> str | None:
        """Return the text of a group, or None when it took no part."""
        ...

    def start(self) -> int:
        """Return where the match begins."""
        ...

    def end(self) -> int:
        """Return where the match ends."""
        ...


class Pattern:
    """One compiled pattern."""

    __slots__ = ("_compiled", "found", "groups", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._compiled: Any = _compile(text)
        self.groups: int = self._compiled.groups
        self.found: Callable[[str], bool] = _literal_test(text) or self._found

    def _found(self, text: str) -> bool:
        return self._compiled.search(text) is not None

    def search(self, text: str) -> Match | None:
        """Return the first match, or None."""
        found: Match | None = self._compiled.search(text)
        return found

    def matches(self, text: str) -> Iterator[Match]:
        """Yield the matches that do not overlap; as in Go, none that is empty right after another."""
        last = -1
        for match in self._compiled.finditer(text):
            if match.start() == match.end() == last:
                continue
            last = match.end()
            yield match


def _literal_test(pattern: str) -> Callable[[str], bool] | None:
    """Return a text test for a pattern that is only a text, perhaps anchored; RE2 is slow for those."""
    starts, ends = pattern.startswith("^"), pattern.endswith("$") and not pattern.endswith("\\$")
    literal: list[str] = []
    body = iter(pattern[starts : len(pattern) - ends])
    for char in body:
        following = next(body, "") if char == "\\" else ""
        if (char == "\\" and (not following or following not in _PUNCTUATION)) or char in _SPECIAL:
            return None
        literal.append(following or char)
    text = "".join(literal)
    if starts and ends:
        return lambda subject: subject == text
    if starts:
        return lambda subject: subject.startswith(text)
    return (lambda subject: subject.endswith(text)) if ends else lambda subject: text in subject


def _compile(text: str) -> Any:  # the package has no types
    if len(text) > MAX_PATTERN:
        raise EvaluationError(f"regex pattern of {len(text)} characters exceeds the limit of {MAX_PATTERN}")
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(text, options)
    except re2.error as error:
        raise EvaluationError(f"error parsing regexp: {go_reason(error, text)}") from None


@lru_cache(maxsize=1024)
def compile_pattern(text: str) -> Pattern:
    """Return a compiled pattern; raises EvaluationError for what RE2 refuses.

    >>> compile_pattern("^a+$").search("aaa") is not None
    True
    """
    return Pattern(text)


def check_pattern(text: str) -> None:
    """Raise EvaluationError when a pattern does not compile."""
    compile_pattern(text)
