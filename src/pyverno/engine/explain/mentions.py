"""Names of variables that a text mentions: the text is read once, however many names there are."""

from __future__ import annotations

import re
from collections.abc import Iterable, KeysView
from typing import Final

__all__ = ["MentionedNames", "first_word", "words_of"]

_WORDS: Final = re.compile(r"\w+")


def words_of(text: str) -> KeysView[str]:
    """Return the different words of a text.

    >>> [*words_of("a.b || a")]
    ['a', 'b']
    """
    return dict.fromkeys(_WORDS.findall(text)).keys()


def first_word(name: str) -> str:
    """Return the first word of a name, "" for one of signs alone.

    >>> first_word("my-name"), first_word("-")
    ('my', '')
    """
    found = _WORDS.search(name)
    return found[0] if found else ""


class MentionedNames:
    """Names by their first word; most names are one word.

    >>> MentionedNames(["a", "b-c", "d"]).find("d + b-c.a1")
    ['b-c', 'd']
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        """Take the first names."""
        self._by_word: dict[str, list[tuple[int, str]]] = {}
        self._count = 0
        for each in names:
            self.add(each)

    def add(self, name: str) -> None:
        """Add a name."""
        self._by_word.setdefault(first_word(name), []).append((self._count, name))
        self._count += 1

    def find(self, text: str) -> list[str]:
        """Return the names that stand in a text as words, in the order in which they were added."""
        words = words_of(text)
        found = [
            (number, name)
            for word in ("", *words)
            for number, name in self._by_word.get(word, ())
            if name == word or _stands_in(name, words, text)
        ]
        return [name for _, name in sorted(found)]


def _stands_in(name: str, words: KeysView[str], text: str) -> bool:
    """Return whether a name of several words or signs is in a text, with no letter before or after it."""
    if not words_of(name) <= words:
        return False
    start = text.find(name)
    while start >= 0:
        around = text[start - 1 : start] if start else "", text[start + len(name) : start + len(name) + 1]
        if not any(map(_WORDS.match, around)):
            return True
        start = text.find(name, start + 1)
    return False
