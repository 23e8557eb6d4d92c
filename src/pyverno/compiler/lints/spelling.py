"""Suggestions for misspelt words."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["did_you_mean", "near", "same_but_for_case"]

_SURE = 0.85
_LIKELY = 0.6
_SHORTEST = 4


def near(word: str, known: Iterable[str], *, cutoff: float = _SURE) -> str:
    """Return the known word that a misspelt one certainly means, the empty text without one.

    >>> near("Deploymnet", ["Deployment", "DaemonSet"]), near("CronTab", ["CronJob"])
    ('Deployment', '')
    """
    if len(word) < _SHORTEST:
        return ""
    import difflib  # imported only for misspelt words

    by_fold = {each.casefold(): each for each in sorted(known)}
    found = difflib.get_close_matches(word.casefold(), list(by_fold), n=1, cutoff=cutoff)
    return by_fold[found[0]] if found else ""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the end of a message that names the nearest known word, the empty text where none is near.

    >>> did_you_mean("replica", ["replicas", "selector"])
    ': did you mean `replicas`?'
    """
    import difflib  # as above

    by_fold = {each.casefold(): each for each in sorted(known)}
    found = difflib.get_close_matches(word.casefold(), list(by_fold), n=1, cutoff=_LIKELY)
    return f": did you mean `{by_fold[found[0]]}`?" if found else ""


def same_but_for_case(word: str, other: str) -> bool:
    """Return whether two words differ in upper and lower case only.

    >>> same_but_for_case("deployment", "Deployment")
    True
    """
    return word.casefold() == other.casefold()
