"""Checked CEL trees to closures, and what closures do at run time: access, arithmetic, calls, loops, cost."""

from __future__ import annotations
