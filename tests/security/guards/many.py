"""The guards of I20: all of many are judged."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import Guard, guard

__all__ = ["MANY"]

_KEYS: Final = "all_of_many::test_a_wildcard_key_of_a_pattern_judges_every_key"

MANY: Final[tuple[Guard, ...]] = (
    guard(
        "I20",
        "a wildcard key stands for every key",
        f"{_KEYS}[=-labels] {_KEYS}[-annotations] all_of_many::test_a_second_annotation_does_not_hide_a_profile",
        ("lang/pattern/metadata.py", "min(filter(matches, labels), default=None) and [min(filter(matches, labels))]"),
    ),
    guard(
        "I20",
        "a condition holds by any of its keys",
        f"{_KEYS}[(-labels] {_KEYS}[<-labels]",
        ("lang/pattern/checks.py", "[anchored[0]]"),
    ),
)
