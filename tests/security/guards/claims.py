"""The guards of I18: a claim that somebody stored is no proof."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import Guard

__all__ = ["CLAIMS"]

CLAIMS: Final[tuple[Guard, ...]] = ()
