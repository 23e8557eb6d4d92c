"""Kyverno's wildcards: `*` is any run of characters, `?` exactly one; nothing else is special.

A pattern is cut at its stars; the first and last piece are anchored and each piece between them is taken where it
first fits, which is enough because a star can always match more. No recursion, no backtracking, no regular expression.
Pieces without `?` are found in linear time. A piece with `?` is tried at the places of its longest literal part; where
too many of them fail, all places of a block are tried at once by the bits of an integer, and a match that takes too
long even so ends with an error.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from pyverno.errors import BudgetExceededError
from pyverno.kube.names import MAX_NAME

__all__ = [
    "compile_wildcard",
    "count_wildcards",
    "has_wildcard",
    "match",
    "match_price",
]

_TRIES: Final = 64
"""Literal parts that are compared one by one, for each piece and for each character that this skips."""
_BLOCK: Final = 4096
_BITS_PER_STEP: Final = 1 << 15
_CHARACTERS_PER_STEP: Final = 1 << 9
_MAX_STEPS: Final = 250_000
_PRICED_FROM: Final = 256
_PRODUCT_PER_STEP: Final = 1 << 15


def has_wildcard(text: str) -> bool:
    """Return whether a text holds `*` or `?`.

    >>> has_wildcard("a*"), has_wildcard("a")
    (True, False)
    """
    return "*" in text or "?" in text


def count_wildcards(text: str) -> int:
    """Return how many `*` and `?` a text holds.

    >>> count_wildcards("a*-??")
    3
    """
    return text.count("*") + text.count("?")


def match(pattern: str, text: str) -> bool:
    """Return whether the whole text fits the pattern; the empty pattern fits only the empty text.

    >>> match("a*b", "a/x/b"), match("a?", "a")
    (True, False)
    """
    if pattern == "*":
        return True
    if "?" not in pattern and "*" not in pattern:
        return pattern == text
    return _compile(pattern)(text) if len(pattern) <= MAX_NAME else compile_wildcard(pattern)(text)


def match_price(left: str, right: str) -> int:
    """Return the steps that matching one of two texts against the other may take, for callers with a budget.

    Zero for short texts, and for texts without `?`, which take linear time.

    >>> match_price("nginx-?", "nginx-1"), match_price("?" * 4096, "a" * 4096)
    (0, 512)
    """
    if len(left) < _PRICED_FROM or len(right) < _PRICED_FROM or not ("?" in left or "?" in right):
        return 0
    return len(left) * len(right) // _PRODUCT_PER_STEP


def compile_wildcard(pattern: str) -> Callable[[str], bool]:
    """Return the test for one pattern, specialised for its shape.

    >>> compile_wildcard("nginx:*")("nginx:1.27")
    True
    """
    if "?" in pattern:
        return _with_single(pattern)
    if "*" not in pattern:
        return lambda text: text == pattern
    pieces = pattern.split("*")
    prefix, suffix = pieces[0], pieces[-1]
    middle = tuple(piece for piece in pieces[1:-1] if piece)
    if not middle:
        return _outer(prefix, suffix)
    if len(middle) == 1 and not prefix and not suffix:
        inner = middle[0]
        return lambda text: inner in text
    least = len(prefix) + len(suffix) + sum(map(len, middle))

    def ordered(text: str) -> bool:
        if len(text) < least or not text.startswith(prefix) or not text.endswith(suffix):
            return False
        position, end = len(prefix), len(text) - len(suffix)
        for piece in middle:
            position = text.find(piece, position, end)
            if position < 0:
                return False
            position += len(piece)
        return True

    return ordered


def _outer(prefix: str, suffix: str) -> Callable[[str], bool]:
    """Return the test for `prefix*suffix`, either of them possibly empty."""
    if not prefix and not suffix:
        return lambda _text: True
    if not suffix:
        return lambda text: text.startswith(prefix)
    if not prefix:
        return lambda text: text.endswith(suffix)
    least = len(prefix) + len(suffix)
    return lambda text: len(text) >= least and text.startswith(prefix) and text.endswith(suffix)


@lru_cache(maxsize=4096)  # of patterns no longer than a name
def _compile(pattern: str) -> Callable[[str], bool]:
    return compile_wildcard(pattern)


class _Piece:
    """A run between stars that may hold `?`: its literal fragments, each with its offset."""

    __slots__ = ("anchor", "anchor_offset", "fragments", "length", "others")

    def __init__(self, text: str) -> None:
        self.length = len(text)
        fragments: list[tuple[int, str]] = []
        offset = 0
        for fragment in text.split("?"):
            if fragment:
                fragments.append((offset, fragment))
            offset += len(fragment) + 1
        # The longest fragment is searched for, the others are checked around it.
        self.anchor_offset, self.anchor = max(fragments, key=lambda pair: len(pair[1]), default=(0, ""))
        self.others = tuple(pair for pair in fragments if pair[0] != self.anchor_offset)
        self.fragments = tuple(fragments)

    def fits(self, text: str, position: int) -> bool:
        """Return whether the piece matches at this position."""
        return (
            position >= 0
            and position + self.length <= len(text)
            and text.startswith(self.anchor, position + self.anchor_offset)
            and all(text.startswith(fragment, position + offset) for offset, fragment in self.others)
        )

    def find(self, text: str, position: int, end: int) -> int:
        """Return the first position where the piece fits wholly before `end`, or -1."""
        last, start, tries = end - self.length, position, _TRIES
        while position <= last:
            found = text.find(self.anchor, position + self.anchor_offset, last + self.anchor_offset + len(self.anchor))
            if found < 0:
                return -1
            position = found - self.anchor_offset
            for offset, fragment in self.others:
                tries -= 1
                if not text.startswith(fragment, position + offset):
                    break
            else:
                return position
            position += 1
            if tries + (position - start) < 0:
                return self.find_by_blocks(text, position, last)
        return -1

    def find_by_blocks(self, text: str, position: int, last: int, block: int = _BLOCK) -> int:
        """Return the first position from here to `last` where the piece fits, or -1; many places at once.

        Takes about a nanosecond for each 64 characters of the text and character of the piece. Raises
        BudgetExceededError when a match takes more than a quarter of a second.
        """
        literals = [(offset + at, char) for offset, part in self.fragments for at, char in enumerate(part)]
        steps, block = 0, max(block, self.length)
        while position <= last:
            width = min(block, last + 1 - position)
            segment = text[position : position + width + self.length - 1]
            places: dict[str, int] = {}
            fits = (1 << width) - 1
            for offset, char in literals:
                if char not in places:
                    places[char] = _places(segment, char)
                    steps += 1 + len(segment) // _CHARACTERS_PER_STEP
                fits &= places[char] >> offset
                steps += 1 + width // _BITS_PER_STEP
                if steps > _MAX_STEPS:
                    raise BudgetExceededError("a wildcard pattern takes too long to match", resource="steps")
                if not fits:
                    break
            if fits:
                return position + (fits & -fits).bit_length() - 1
            position += width
            block *= 2
        return -1


def _places(text: str, char: str) -> int:
    """Return the positions of a character as the bits of an integer."""
    marks = bytearray(b"0") * len(text)
    at = text.find(char)
    while at >= 0:
        marks[~at] = 49  # "1", the first character in the lowest bit
        at = text.find(char, at + 1)
    return int(marks, 2)


def _with_single(pattern: str) -> Callable[[str], bool]:
    """Return the test for a pattern with `?`."""
    pieces = tuple(map(_Piece, pattern.split("*")))
    first, last = pieces[0], pieces[-1]
    if len(pieces) == 1:
        return lambda text: len(text) == first.length and first.fits(text, 0)
    middle = tuple(piece for piece in pieces[1:-1] if piece.length)
    least = sum(piece.length for piece in pieces)

    def ordered(text: str) -> bool:
        end = len(text) - last.length
        if len(text) < least or not first.fits(text, 0) or not last.fits(text, end):
            return False
        position = first.length
        for piece in middle:
            position = piece.find(text, position, end)
            if position < 0:
                return False
            position += piece.length
        return True

    return ordered
