"""The type of a guard: the text in a module that forms it, the text that removes it, and the tests that must then fail.

Tests that check that a guard lets harmless requests pass ("twins") are proven by a guard that lets nothing pass.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Edit", "Guard", "guard"]


@dataclass(frozen=True, slots=True)
class Edit:
    """Replaces one text by another in a module (below `src/pyverno`); the text must occur there exactly once."""

    module: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Guard:
    """One guard: the edits that remove it, its row of the register, and the tests (node ids) that must then fail.

    With `may_hang`, a test that never ends counts as failed, because the guard is there to prevent hangs.
    """

    row: str
    name: str
    tests: tuple[str, ...]
    edits: tuple[Edit, ...]
    may_hang: bool = False


def guard(row: str, name: str, tests: str, *edits: tuple[str, str, str], may_hang: bool = False) -> Guard:
    """Make a guard of tests as `file::test` below tests/security, or as whole paths, separated by spaces."""
    found = tuple(each if each.startswith("tests/") else f"tests/security/test_{each}" for each in tests.split())
    nodes = tuple(each.replace("::", ".py::", 1) if ".py" not in each else each for each in found)
    return Guard(row, name, nodes, tuple(Edit(*edit) for edit in edits), may_hang)
