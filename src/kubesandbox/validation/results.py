"""Results of expressions of admission policies."""

from __future__ import annotations

from enum import Enum, auto

__all__ = ["Result"]


class Result(Enum):
    """The kinds of results: true or false, a text, a text or nothing, an object to apply, a list of patches."""

    CONDITION = auto()
    MESSAGE = auto()
    ANNOTATION = auto()
    CONFIGURATION = auto()
    PATCH = auto()
