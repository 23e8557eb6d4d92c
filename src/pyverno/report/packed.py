"""Texts in the order in which they were added, compressed: a run keeps the lines of all its results until its end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

__all__ = ["Packed", "packed"]

_BLOCK: Final = 16 * 1024
"""Characters that are compressed at once. A report has a `Packed` for each rule, so a block is small."""


class Packed:
    """An append-only list of texts; lines of results are alike and take a tenth of their length.

    >>> texts = Packed()
    >>> texts.add("a")
    >>> texts.add("b")
    >>> len(texts), [*texts]
    (2, ['a', 'b'])
    """

    __slots__ = ("_blocks", "_count", "_open", "_size")

    def __init__(self) -> None:
        self._blocks: list[tuple[bytes, bytes]] = []
        self._open: list[str] = []
        self._size = self._count = 0

    def add(self, text: str) -> None:
        """Append one text."""
        self._open.append(text)
        self._count += 1
        self._size += len(text)
        if self._size > _BLOCK:
            self._blocks.append(_compress(self._open))
            self._open, self._size = [], 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        for block in self._blocks:
            yield from _texts(*block)
        yield from self._open


def packed(texts: Iterable[str]) -> Packed:
    """Take all texts, which may depend on what is done meanwhile, before the first of them is read."""
    kept = Packed()
    for text in texts:
        kept.add(text)
    return kept


def _compress(texts: list[str]) -> tuple[bytes, bytes]:
    """Return the lengths of texts, and the texts, compressed."""
    import zlib  # small runs compress nothing
    from array import array

    joined = "".join(texts).encode("utf-8", "surrogatepass")
    return zlib.compress(array("L", map(len, texts)).tobytes(), 1), zlib.compress(joined, 1)


def _texts(lengths: bytes, joined: bytes) -> Iterator[str]:
    import zlib
    from array import array

    text, at = zlib.decompress(joined).decode("utf-8", "surrogatepass"), 0
    for length in array("L", zlib.decompress(lengths)):
        yield text[at : at + length]
        at += length
