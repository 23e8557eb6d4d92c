"""The outcome of one case: a claim of the corpus compared with the product's answer.

This module must never run a case.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

__all__ = ["NO_ASSERTION", "Case", "Claim", "NotRun", "Outcome", "State", "content_id", "distinct"]

NO_ASSERTION = "no assertion in the row"
"""The reason that rows without an assertion are left out."""


class State(StrEnum):
    """Outcome of a case."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


class NotRun(Exception):  # noqa: N818 - not an error: the case is left out, and the text says why
    """Raised by a case that cannot be run; its text is the reason."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case: the bucket and part (a table, a file) that it belongs to, its id, and its data."""

    bucket: str
    part: str
    id: str
    data: Any


@dataclass(frozen=True, slots=True)
class Claim:
    """The expectation of a case and the product's answer.

    `vacuous` names what passed without saying anything, `replaced` what of the case's files was replaced by ours.
    """

    expected: Any
    got: Any
    vacuous: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Return whether both are the same value; numbers compare by value, truth values are not numbers."""
        return same(self.expected, self.got)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a case; `reason` holds why it was skipped."""

    bucket: str
    part: str
    id: str
    state: State
    reason: str = ""
    expected: Any = None
    got: Any = None
    vacuous: tuple[str, ...] = field(default=())
    replaced: tuple[str, ...] = field(default=())


def same(one: Any, other: Any) -> bool:
    """Compare JSON-like values: 1 equals 1.0, True does not equal 1, tuples are lists.

    >>> same([1, {"a": True}], (1.0, {"a": True})), same(True, 1)
    (True, False)
    """
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def content_id(prefix: str, data: Any) -> str:
    """Name data without a name by its content, so that the name stays when other rows come or go."""
    text = json.dumps(data, sort_keys=True, ensure_ascii=True)
    return f"{prefix}@{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def distinct(cases: Iterable[Case]) -> Iterator[Case]:
    """Yield cases with distinct ids: the second of equal ones gets `~2`."""
    seen: dict[str, int] = {}
    for case in cases:
        number = seen[case.id] = seen.get(case.id, 0) + 1
        yield case if number == 1 else Case(case.bucket, case.part, f"{case.id}~{number}", case.data)
