"""The guards of one claim names a user, and a library checks tokens."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import Guard

__all__ = ["LOGINS"]

LOGINS: Final[tuple[Guard, ...]] = ()
