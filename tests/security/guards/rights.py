"""The guards of I19: everybody acts with their own rights."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import Guard

__all__ = ["RIGHTS"]

RIGHTS: Final[tuple[Guard, ...]] = ()
