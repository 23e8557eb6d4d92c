"""Parses an RE2 expression into the tree from which a matching text is generated.

RE2 has accepted the expression before, so this reader reports no syntax errors of its own.
"""

from __future__ import annotations

import re
import string
from functools import lru_cache
from typing import Final, TypeAlias

from pyverno.errors import EvaluationError
from pyverno.lang.regex.compiler import compile_re2
from pyverno.lazyregex import regex
from pyverno.value import dataclass

__all__ = ["MAX_REPEAT", "Choice", "Class", "Piece", "Repeat", "Sequence", "parse_pieces"]

MAX_REPEAT: Final = 4096
"""How often `*`, `+` and `{n,}` repeat at most."""

Ranges: TypeAlias = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Class:
    """One character out of ranges of code points."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Sequence:
    """Pieces one after the other."""

    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several pieces."""

    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A piece, several times."""

    piece: Piece
    least: int
    most: int


Piece: TypeAlias = Class | Sequence | Choice | Repeat

_PRINTABLE: Final[Ranges] = ((0x20, 0x7E),)
_EMPTY: Final = Sequence(())
_COUNT: Final = regex(r"\{([0-9]+)(?:(,)([0-9]*))?\}")
_GROUP: Final = regex(r"\?P?<[^>]*>|\?[a-zA-Z-]*:")
_FLAGS: Final = regex(r"\?[a-zA-Z-]*\)")
_PERL: Final = regex(r"\\[dDsSwW]|\\[pP](?:\{[^}]*\}|.)|\[:\^?[a-z]+:\]", re.DOTALL)
_POSITION: Final = regex(r"[\^$]|\\[AzbB]")
_NUMBER: Final = regex(r"\\x\{([0-9A-Fa-f]+)\}|\\x([0-9A-Fa-f]{2})")
_OCTAL: Final = regex(r"\\([0-7]{1,3})")
_SIMPLE: Final = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
_MAX_DEPTH: Final = 64


@lru_cache(maxsize=256)
def parse_pieces(pattern: str) -> Piece:
    """Return the pieces of an expression that RE2 accepts.

    Raises EvaluationError when its groups nest too deeply.

    >>> parse_pieces("a{2}")
    Repeat(piece=Class(ranges=((97, 97),)), least=2, most=2)
    """
    return _Reader(pattern).choice(0)


class _Reader:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.position = 0

    def choice(self, depth: int) -> Piece:
        if depth > _MAX_DEPTH:
            raise EvaluationError("error parsing regexp: expression nests too deeply")
        branches: list[Piece] = []
        pieces: list[Piece] = []
        while self.position < len(self.pattern) and self.pattern[self.position] != ")":
            if self.take("|"):
                branches.append(Sequence(tuple(pieces)))
                pieces = []
            else:
                pieces.extend(self.piece(depth))
        branches.append(pieces[0] if len(pieces) == 1 else Sequence(tuple(pieces)))
        return branches[0] if len(branches) == 1 else Choice(tuple(branches))

    def piece(self, depth: int) -> list[Piece]:
        """Read one piece with its repetition; a quoted text gives several."""
        if self.take(r"\Q"):
            end = self.pattern.find(r"\E", self.position)
            text = self.pattern[self.position : end if end >= 0 else None]
            self.position = end + 2 if end >= 0 else len(self.pattern)
            literals: list[Piece] = [_literal(char) for char in text] or [_EMPTY]
            return [*literals[:-1], self.repeated(literals[-1])]
        return [self.repeated(self.atom(depth))]

    def atom(self, depth: int) -> Piece:
        if self.match(_POSITION):
            return _EMPTY
        if self.take("("):
            if self.match(_FLAGS):
                return _EMPTY
            self.match(_GROUP)
            inner = self.choice(depth + 1)
            self.take(")")
            return inner
        if self.take("."):
            return Class(_PRINTABLE)
        found = self.match(_PERL) if self.pattern[self.position] == "\\" else None
        if found:
            return Class(_members(found.group()))
        if self.pattern[self.position] == "[":
            return Class(_members(self.bracket()))
        return _literal(self.character())

    def repeated(self, piece: Piece) -> Piece:
        while self.position < len(self.pattern):
            if self.take("*"):
                least, most = 0, MAX_REPEAT
            elif self.take("+"):
                least, most = 1, MAX_REPEAT
            elif self.take("?"):
                least, most = 0, 1
            elif found := self.match(_COUNT):
                least = int(found[1])
                most = int(found[3]) if found[3] else MAX_REPEAT if found[2] else least
            else:
                break
            self.take("?")
            piece = Repeat(piece, least, max(most, least))
        return piece

    def bracket(self) -> str:
        """Return the text of a bracketed class; a `]` right behind the opening is a member."""
        start = self.position
        self.position += 1
        self.take("^")
        self.take("]")
        while self.pattern[self.position] != "]":
            if not self.match(_PERL):
                self.character()
        self.position += 1
        return self.pattern[start : self.position]

    def character(self) -> str:
        if number := self.match(_NUMBER):
            return chr(int(number[1] or number[2], 16))
        if octal := self.match(_OCTAL):
            return chr(int(octal[1], 8))
        if self.take("\\"):
            char = self.pattern[self.position]
            self.position += 1
            return _SIMPLE.get(char, char)
        self.position += 1
        return self.pattern[self.position - 1]

    def take(self, text: str) -> bool:
        if self.pattern.startswith(text, self.position):
            self.position += len(text)
            return True
        return False

    def match(self, expression: re.Pattern[str]) -> re.Match[str] | None:
        found = expression.match(self.pattern, self.position)
        if found:
            self.position = found.end()
        return found


def _literal(char: str) -> Class:
    return Class(((ord(char), ord(char)),))


@lru_cache(maxsize=256)
def _members(text: str) -> Ranges:
    """Return the members of a class: the printable ASCII ones if it has any, else those of the basic plane.

    RE2 itself decides what is a member.
    """
    if text.startswith("[:"):
        text = f"[{text}]"
    expression = compile_re2(text)
    ascii_members = [ord(char) for char in string.printable if expression.fullmatch(char.encode())]
    visible = sorted(code for code in ascii_members if 0x20 <= code < 0x7F)
    if visible:
        return _ranges(visible)
    if ascii_members:
        return _ranges(sorted(ascii_members))
    # whole runs: a class may have most of the plane as its members
    ranges: list[tuple[int, int]] = []
    for match in compile_re2(f"(?s:{text})+").finditer(_basic_plane()):
        run = match.group().decode()
        first, last = ord(run[0]), ord(run[-1])
        ranges += [(first, last)] if last - first < len(run) else [(first, 0xD7FF), (0xE000, last)]
    return tuple(ranges)


@lru_cache(maxsize=1)
def _basic_plane() -> bytes:
    return "".join(chr(code) for code in range(0x10000) if not 0xD800 <= code < 0xE000).encode()


def _ranges(codes: list[int]) -> Ranges:
    ranges: list[tuple[int, int]] = []
    for code in codes:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1] = (ranges[-1][0], code)
        else:
            ranges.append((code, code))
    return tuple(ranges)
