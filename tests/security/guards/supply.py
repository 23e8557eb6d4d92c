"""The guards of what an install step fetches is known before."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import Guard

__all__ = ["SUPPLY"]

SUPPLY: Final[tuple[Guard, ...]] = ()
