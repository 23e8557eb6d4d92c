"""The guards of I17: a request is a question; what lasts is read from the API server."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import Guard

__all__ = ["QUESTIONS"]

QUESTIONS: Final[tuple[Guard, ...]] = ()
