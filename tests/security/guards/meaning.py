"""The guards of I20 and I21: all of many are judged, by what they mean."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import Guard

__all__ = ["MEANING"]

MEANING: Final[tuple[Guard, ...]] = ()
