"""The command line as tests run it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Ran", "Run"]


@dataclass(frozen=True)
class Ran:
    """What one run printed and returned."""

    code: int
    out: str
    err: str


Run = Callable[..., Ran]
"""Runs the command line with arguments, and text for its standard input."""
