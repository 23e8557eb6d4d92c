"""The guards of I16: what lies in a judged tree, or beside it, commands nothing."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import Guard

__all__ = ["JUDGED_TREE"]

JUDGED_TREE: Final[tuple[Guard, ...]] = ()
