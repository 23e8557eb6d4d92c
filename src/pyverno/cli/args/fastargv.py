"""Command lines that need no click: a command of the table below and words that `flags.parse_fast` can read.

This module must never import click.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from pyverno.cli.args.configpath import has_settings
from pyverno.cli.errors import closed_pipe, guarded
from pyverno.cli.terminal import STDERR

# trust rows: environment

__all__ = ["PLAIN", "run_fast_path"]

_Reader = Callable[[Sequence[str]], Callable[[], int] | None]


def _read_apply(words: Sequence[str]) -> Callable[[], int] | None:
    from pyverno.cli.apply.flags import read_plain_words

    return read_plain_words(words)


PLAIN: Mapping[str, _Reader] = {"apply": _read_apply}
"""The readers of commands that run without click; a reader returns None for words that click must read."""


def run_fast_path(words: Sequence[str]) -> int | None:
    """Run the command and return its exit code; None when click must read the words.

    On Windows click expands wildcards, settings of a configuration file are defaults of click's, and shells ask for
    completions by environment variables.
    """
    try:
        run = _read_plain_words(words)
    except Exception:  # click reads the words then, and finds what is wrong
        return None
    return None if run is None else guarded(lambda: _as_click_runs(run))


def _read_plain_words(words: Sequence[str]) -> Callable[[], int] | None:
    if not words or words[0] not in PLAIN or os.name == "nt" or any(name.startswith("_PYVERNO") for name in os.environ):
        return None
    return None if has_settings(words) else PLAIN[words[0]](words[1:])


def _as_click_runs(run: Callable[[], int]) -> int:
    """Run a command; a closed pipe and an interruption end it as they do under click."""
    try:
        return run()
    except BrokenPipeError:
        closed_pipe()
        return 1
    except (EOFError, KeyboardInterrupt):
        STDERR.write("\n")
        raise KeyboardInterrupt from None
