"""Suggestions for misspelt words."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["did_you_mean", "nearest", "same_but_for_case"]

_SIMILAR = 0.6
_SAME = 0.85
_MIN_CERTAIN = 4  # most words of three letters are one letter away from another
_MAX_LENGTH = 80  # the comparison is quadratic


def nearest(word: str, known: Iterable[str], *, is_certain: bool = False) -> str:
    """Return the known word that a misspelt one may mean, the empty text where none is near.

    Upper and lower case and the dashes before flags do not count. With `is_certain` the words are almost equal.

    >>> nearest("CronTab", ["CronJob"]), nearest("CronTab", ["CronJob"], is_certain=True)
    ('CronJob', '')
    """
    if not (_MIN_CERTAIN if is_certain else 1) <= len(word) <= _MAX_LENGTH:
        return ""
    import difflib  # imported only for misspelt words

    by_fold = {_fold(each): each for each in sorted(known)}
    found = difflib.get_close_matches(_fold(word), by_fold, n=1, cutoff=_SAME if is_certain else _SIMILAR)
    return by_fold[found[0]] if found else ""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the end of a message that names the nearest known word, the empty text where none is near.

    >>> did_you_mean("ruels", ["rules", "admission"])
    ': did you mean `rules`?'
    """
    found = nearest(word, known)
    return f": did you mean `{found}`?" if found else ""


def same_but_for_case(word: str, other: str) -> bool:
    """Return whether two words differ in upper and lower case only.

    >>> same_but_for_case("deployment", "Deployment")
    True
    """
    return word.casefold() == other.casefold()


def _fold(word: str) -> str:
    return word.lstrip("-").casefold()
