"""Stdout and stderr: whatever a command prints goes through the sink of a terminal here.

This module must never import click, because plain command lines run without it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Final, Literal, Protocol, TextIO

# trust rows: output-name

__all__ = ["STDERR", "STDOUT", "Stream", "Terminal", "last_words", "terminal_of"]


class Stream(Protocol):
    """What output is written to: a terminal, or a file."""

    def write(self, text: str, /) -> object:
        """Write a text."""
        ...

    def writelines(self, texts: Iterable[str], /) -> None:
        """Write texts, one after the other."""
        ...

    def isatty(self) -> bool:
        """Return whether a person sees the output."""
        ...


class Terminal:
    """One of the streams of the process, as it is at the time of a call."""

    __slots__ = ("_form", "_name")

    def __init__(self, name: Literal["stdout", "stderr"], form: str = "") -> None:
        """Take the name of the stream, and that of the format of what is written."""
        self._name = name
        self._form = form

    @property
    def raw(self) -> TextIO:
        """Return the stream itself, for bytes and for settings."""
        stream: TextIO = getattr(sys, self._name)
        return stream

    @property
    def encoding(self) -> str:
        """Return the name of the encoding."""
        return self.raw.encoding

    def write(self, text: str) -> int:
        """Write a text with visible escapes, and without commands of others."""
        raw = self.raw
        if not (text.replace("\n", "").isprintable() and "::" not in text and "##" not in text):
            from pyverno.sinks.terminal import terminal_text  # most output needs nothing of it

            is_coloured = "\x1b" in text and raw.isatty()
            text = terminal_text(text, self._form, is_coloured=is_coloured)  # guard: output goes through its sink
        return raw.write(text)

    def writelines(self, texts: Iterable[str]) -> None:
        """Write texts, one after the other."""
        for text in texts:
            self.write(text)

    def flush(self) -> None:
        """Write what is held back."""
        self.raw.flush()

    def isatty(self) -> bool:
        """Return whether a person sees the output."""
        return self.raw.isatty()

    def of(self, form: str) -> Terminal:
        """Return the stream for a format: in some, lines are commands of ours."""
        return Terminal(self._name, form)


STDOUT: Final = Terminal("stdout")
STDERR: Final = Terminal("stderr")


def last_words() -> None:
    """Write that an error cannot be shown: the last resort where `STDERR` itself fails."""
    sys.stderr.write("Error: internal error, which cannot be shown\n")


def terminal_of(stream: Stream, form: str) -> Stream:
    """Return a stream for a format."""
    return stream.of(form) if isinstance(stream, Terminal) else stream
