"""The namespaces that queries to the store may read; set around each request, so that no handler can forget it."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

__all__ = ["SCOPE", "Scope"]

Scope = frozenset[str] | None
"""Names of namespaces (the empty name stands for objects without one); None is everything."""

SCOPE: Final[ContextVar[Scope]] = ContextVar("scope", default=None)
