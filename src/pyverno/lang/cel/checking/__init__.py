"""The type checker of CEL: names, overloads, unification, struct types, literals."""

from __future__ import annotations
