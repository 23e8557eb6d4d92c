"""Regular expressions that policy authors write, by RE2 with Go's limits.

RE2 never backtracks, but where its automaton grows too large it goes through the text with the whole program: up to a
hundredth of a step for each byte and instruction. `search_work` is that bound; what would take too long is refused.
Patterns that a policy writes are kept with it, those that come out of data are not: a few short ones at most. This
module must never use Python's own engine for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol
from weakref import WeakValueDictionary

from pyverno.errors import EvaluationError
from pyverno.kube.meter import UNMETERED, Meter
from pyverno.lang.cel.faults import with_operands
from pyverno.lang.regex.compiler import compile_re2, recent_patterns

__all__ = ["Match", "Pattern", "check_pattern", "compile_pattern", "kept_pattern", "search_work"]

MAX_KEPT: Final = 32
"""Patterns out of data that are kept, none of them longer than `LONGEST_KEPT`."""

LONGEST_KEPT: Final = 256
PER_COMPILED: Final = 2
"""Instructions of a pattern whose compilation takes a step."""

PER_STEP: Final = 110
"""Bytes times instructions that RE2 goes through in a step where it has to go the long way; bytes otherwise."""

PER_MATCH: Final = 3
REST_PER_STEP: Final = 512
"""Characters behind a match of which each search for another one is charged a step: it may have to look at them all."""

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

    __slots__ = ("__weakref__", "compiled", "found", "groups", "size", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.compiled: Any = compile_re2(text)
        self.groups: int = self.compiled.groups
        self.size: int = 0 if _literal_test(text) else self.compiled.programsize
        self.found: Callable[[str], bool] = _literal_test(text) or self._search

    def _search(self, text: str) -> bool:
        return self.compiled.search(text) is not None

    def search(self, text: str) -> Match | None:
        """Return the first match, or None."""
        found: Match | None = self.compiled.search(text)
        return found

    def matches(self, text: str, meter: Meter = UNMETERED) -> Iterator[Match]:
        """Yield the matches that do not overlap; as in Go, none that is empty right after another."""
        last = -1
        size = len(text)
        for match in self.compiled.finditer(text):
            meter.charge_steps(PER_MATCH + (size - match.end()) // REST_PER_STEP)
            if match.start() == match.end() == last:
                continue
            last = match.end()
            yield match


def _literal_test(pattern: str) -> Callable[[str], bool] | None:
    """Return a text test for a pattern that is only a text, perhaps anchored; RE2 is slow for those."""
    if pattern.startswith(".*"):
        pattern = pattern.removeprefix(".*")
    if pattern.endswith(".*") and not pattern.endswith("\\.*"):
        pattern = pattern.removesuffix(".*")
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


_written: WeakValueDictionary[str, Pattern] = WeakValueDictionary()


_recent: Final = recent_patterns(Pattern, lambda pattern: pattern.compiled, MAX_KEPT)


def kept_pattern(text: str) -> Pattern:
    """Return the compiled pattern of a policy's literal; it is cached as long as a reference to it exists."""
    pattern = _written.get(text)
    if pattern is None:
        pattern = _written[text] = _recent(text) if len(text) <= LONGEST_KEPT else Pattern(text)
    return pattern


def compile_pattern(text: str, meter: Meter = UNMETERED) -> Pattern:
    """Return a compiled pattern; raises EvaluationError for what RE2 refuses.

    >>> compile_pattern("^a+$").search("aaa") is not None
    True
    """
    pattern = _written.get(text)
    if pattern is None:
        pattern = _recent(text) if len(text) <= LONGEST_KEPT else Pattern(text)
        meter.charge_steps(len(text) + pattern.size // PER_COMPILED)
    return pattern


def check_pattern(text: str) -> None:
    """Raise EvaluationError when a pattern that a policy writes does not compile."""
    try:
        compile_pattern(text)
    except EvaluationError as error:
        raise with_operands(error) from None


def search_work(pattern: Pattern, text: str) -> tuple[int, int]:
    """Return the steps that a search takes at most, and those that it is charged.

    The most is rare: it takes a pattern that needs many states, and a text that visits them.
    """
    size = len(text) if text.isascii() else 4 * len(text)
    return size * (pattern.size + 1) // PER_STEP, size // PER_STEP + size * pattern.size // (8 * PER_STEP)
