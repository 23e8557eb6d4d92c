"""Joins the errors that validation and lowering find in one policy: an error of both is reported once.

Validation writes what it was doing in front of the words that both have. A policy may have thousands of errors, so they
are looked up by these words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyverno.errors import Location, PolicyError

__all__ = ["join_errors"]

_SYNTAX = "expression-syntax"
_MOST_HEADS = 16
"""How often a text may be cut where a head can end; a name that holds colons and blanks is no reason for more."""


def join_errors(problems: Sequence[PolicyError], more: Sequence[PolicyError]) -> list[PolicyError]:
    """Merge the errors of lowering into those of validation; one of both is reported once, at the more exact place.

    >>> found = [PolicyError("variables: bad query", path="spec", code="variable")]
    >>> more = [PolicyError("bad query", path="spec", code="expression-syntax")]
    >>> [error.message for error in join_errors(found, more)]
    ['variables: bad query']
    """
    found = _Found(problems)
    known = {(error.path, error.location) for error in problems}
    once = {(error.path, error.location, error.message): error for error in more}  # the copies of a rule repeat it
    for error in once.values():
        at = found.find(error) if error.code == _SYNTAX else None
        if at is not None:
            found.move(at, error)
            # the autogen copies of a rule have the same error at the same place
            known.add((error.path, error.location))
        elif (error.path, error.location) not in known:
            found.append(error)
    return found.errors


class _Found:
    """The errors found so far, with the first index of each by its words and by its place."""

    def __init__(self, problems: Sequence[PolicyError]) -> None:
        self.errors: list[PolicyError] = []
        self._by_words: dict[str, int] = {}
        self._by_place: dict[Location, int] = {}
        self._around: dict[str, dict[str, int]] = {}
        for error in problems:
            self.append(error)

    def append(self, error: PolicyError) -> None:
        at = len(self.errors)
        self.errors.append(error)
        for words in _endings(error.message):
            self._by_words.setdefault(words, at)
        if "$(" in error.message:
            for words in _endings(_without_path(error.message)):
                self._around.setdefault(words, {}).setdefault(error.path, at)
        self._place(at)

    def move(self, at: int, error: PolicyError) -> None:
        """Give an error the place of the same error of lowering."""
        known = self.errors[at]
        if known.location is not None and self._by_place.get(known.location) == at:
            del self._by_place[known.location]
        self.errors[at] = PolicyError(known.message, location=error.location, path=error.path, code=known.code)
        self._place(at)

    def _place(self, at: int) -> None:
        error = self.errors[at]
        if error.code == "variable" and error.location is not None and error.location.column > 1:
            self._by_place.setdefault(error.location, at)

    def find(self, error: PolicyError) -> int | None:
        """Return the index of the first error that is the same as one of lowering."""
        fitting = [self._by_words.get(error.message)]
        if error.location is not None:
            fitting.append(self._by_place.get(error.location))
        if "$(" in error.message:
            # a reference is resolved in the rule, in its pattern and in the copies by autogen: only the paths differ
            around = self._around.get(_without_path(error.message), {})
            lengths = {len(path) for path in around}
            fitting += [around.get(error.path[:length]) for length in lengths if length <= len(error.path)]
        return min((at for at in fitting if at is not None), default=None)


def _endings(message: str) -> Iterator[str]:
    """Yield a text and what is left of it after each of its first heads."""
    yield message
    for _ in range(_MOST_HEADS):
        _, colon, message = message.partition(": ")
        if not colon:
            return
        yield message


def _without_path(message: str) -> str:
    head, found, rest = message.partition(" at path ")
    return head + rest.partition(" ")[2] if found else message
