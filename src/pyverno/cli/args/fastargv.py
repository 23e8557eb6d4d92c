"""Command lines that need no click: a command of the table and words that its flags explain (see `flags`).

This module must never import click.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module

from pyverno.cli.errors import closed_pipe, guarded

__all__ = ["PLAIN", "run_plainly"]

PLAIN: Mapping[str, str] = {"apply": "pyverno.cli.apply.flags"}
"""Commands that can do without click, and the module whose `plain` answers for each of them."""


def run_plainly(words: Sequence[str]) -> int | None:
    """Run the command and return its exit code; None when click must read the words.

    On Windows click expands wildcards, and shells ask for completions by environment variables.
    """
    if not words or words[0] not in PLAIN or os.name == "nt" or any(name.startswith("_PYVERNO") for name in os.environ):
        return None
    plain: Callable[[Sequence[str]], Callable[[], int] | None] = import_module(PLAIN[words[0]]).plain
    run = plain(words[1:])
    return None if run is None else guarded(lambda: _as_click_runs(run))


def _as_click_runs(run: Callable[[], int]) -> int:
    """Run a command; a reader that went away and an interruption end it as they do under click."""
    try:
        return run()
    except BrokenPipeError:
        closed_pipe()
        return 1
    except (EOFError, KeyboardInterrupt):
        sys.stderr.write("\n")
        raise KeyboardInterrupt from None
