"""Runs of the command line in this process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Ran", "Run"]


@dataclass(frozen=True)
class Ran:
    """The output and the exit code of one run."""

    code: int
    out: str
    err: str


Run = Callable[..., Ran]
"""Runs the command line with arguments, and text for its standard input."""
