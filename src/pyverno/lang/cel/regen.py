"""Random text that matches a regular expression, for Kyverno's `random`.

Understands what such patterns use: literals, classes, groups, alternatives and counted repetition; unbounded
repetition stops at a small count. This module must never read randomness by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyverno.errors import EvaluationError
from pyverno.kube.meter import UNMETERED, Meter
from pyverno.lang.cel.regex import compile_pattern

__all__ = ["MAX_TEXT", "generate"]

MAX_TEXT: Final = 64 * 1024
UNBOUNDED: Final = 4
PER_ATOM: Final = 8
_PRINTABLE: Final = "".join(chr(code) for code in range(32, 127))
_DIGITS: Final = "0123456789"
_WORD: Final = _DIGITS + "ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
_SPACE: Final = "\t\n\f\r "
_CLASSES: Final = {"d": _DIGITS, "w": _WORD, "s": _SPACE}
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
_NAMED: Final = {
    "alpha": _WORD[10:36] + _WORD[37:], "digit": _DIGITS, "alnum": _WORD.replace("_", ""), "word": _WORD,
    "upper": _WORD[10:36], "lower": _WORD[37:], "space": _SPACE, "xdigit": _DIGITS + "ABCDEFabcdef",
    "punct": "".join(char for char in _PRINTABLE if not char.isalnum() and char != " "),
}  # fmt: skip
_Choose = Callable[[int], int]


def generate(pattern: str, choose: _Choose, meter: Meter = UNMETERED) -> str:
    """Return a text that matches a pattern; `choose(n)` gives an integer from 0 to below n.

    Raises EvaluationError for patterns that do not compile or could make more than 64 KiB.

    >>> generate("[ab]{3}-x", lambda n: 0)
    'aaa-x'
    """
    compile_pattern(pattern, meter)
    text = _Generator(pattern, choose, meter).alternatives()
    if len(text) > MAX_TEXT:
        raise EvaluationError(f"random text exceeds {MAX_TEXT} characters")
    return text


class _Generator:
    """Walks over a pattern that is known to be well formed, and makes text on the way."""

    def __init__(self, pattern: str, choose: _Choose, meter: Meter) -> None:
        self._meter = meter
        self._pattern = pattern
        self._at = 0
        self._choose = choose
        self._made = 0

    def alternatives(self) -> str:
        branches = [self._sequence()]
        while self._at < len(self._pattern) and self._pattern[self._at] == "|":
            self._at += 1
            branches.append(self._sequence())
        return branches[self._choose(len(branches))]

    def _sequence(self) -> str:
        parts: list[str] = []
        while self._at < len(self._pattern) and self._pattern[self._at] not in "|)":
            start = self._at
            piece = self._atom()
            count = self._repetition()
            for turn in range(count):
                if turn:
                    after, self._at = self._at, start
                    piece = self._atom()
                    self._at = after
                parts.append(piece)
                self._made += len(piece) + 1
                if self._made > MAX_TEXT:
                    raise EvaluationError(f"random text exceeds {MAX_TEXT} characters")
        return "".join(parts)

    def _repetition(self) -> int:
        mark = self._pattern[self._at : self._at + 1]
        low, high = 1, 1
        if mark and mark in "*+?":
            self._at += 1
            low, high = {"*": (0, UNBOUNDED), "+": (1, UNBOUNDED), "?": (0, 1)}[mark]
        elif mark == "{":
            close = self._pattern.find("}", self._at)
            low_text, comma, high_text = self._pattern[self._at + 1 : max(close, 0)].partition(",")
            if not low_text.isdigit() or (high_text and not high_text.isdigit()):
                return 1
            self._at = close + 1
            low = int(low_text)
            high = int(high_text) if high_text else low + (UNBOUNDED if comma else 0)
        else:
            return 1
        if self._pattern[self._at : self._at + 1] == "?":
            self._at += 1
        return low + self._choose(high - low + 1)

    def _atom(self) -> str:
        self._meter.charge_steps(PER_ATOM)
        char = self._pattern[self._at]
        self._at += 1
        if char == "(":
            return self._group()
        if char == "[":
            return self._pick(self._members())
        if char == ".":
            return self._pick(_PRINTABLE)
        if char == "\\":
            return self._pick(self._escape())
        return "" if char in "^$" else char

    def _pick(self, members: str) -> str:
        if not members:
            return ""
        return members[self._choose(len(members))]

    def _group(self) -> str:
        if self._pattern[self._at : self._at + 1] == "?":
            while self._pattern[self._at] not in ":>)":
                self._at += 1
            if self._pattern[self._at] != ")":
                self._at += 1
        text = self.alternatives()
        self._at += 1
        return text

    def _escape(self) -> str:
        char = self._pattern[self._at]
        self._at += 1
        if char.lower() in _CLASSES:
            members = _CLASSES[char.lower()]
            return members if char.islower() else "".join(one for one in _PRINTABLE if one not in members)
        if char in "bBAz":
            return ""
        if char == "x":
            digits = self._pattern[self._at : self._at + 2]
            self._at += 2
            return chr(int(digits, 16)) if digits.isalnum() else ""
        return _ESCAPES.get(char, char)

    def _members(self) -> str:
        negated = self._pattern[self._at] == "^"
        self._at += negated
        members: list[str] = []
        first = True
        while first or self._pattern[self._at] != "]":
            first = False
            members.append(self._member())
        self._at += 1
        found = "".join(members)
        return "".join(char for char in _PRINTABLE if char not in found) if negated else found

    def _member(self) -> str:
        if self._pattern.startswith("[:", self._at):
            close = self._pattern.index(":]", self._at)
            name = self._pattern[self._at + 2 : close]
            self._at = close + 2
            return _NAMED.get(name, "")
        low = self._single()
        if len(low) != 1 or self._pattern[self._at] != "-" or self._pattern[self._at + 1] == "]":
            return low
        self._at += 1
        high = self._single()
        if ord(high) - ord(low) > MAX_TEXT:
            raise EvaluationError("random text from so wide a range is not supported")
        return "".join(chr(code) for code in range(ord(low), ord(high) + 1))

    def _single(self) -> str:
        char = self._pattern[self._at]
        self._at += 1
        return self._escape() if char == "\\" else char
