"""The guards of I22: names are data in every sink."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import Guard

__all__ = ["SINKS"]

SINKS: Final[tuple[Guard, ...]] = ()
