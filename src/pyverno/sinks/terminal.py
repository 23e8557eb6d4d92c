"""Text for a terminal, or for the log that a CI system makes of it."""

from __future__ import annotations

from pyverno.lazyregex import regex
from pyverno.sinks.characters import visible
from pyverno.sinks.runners import COMMAND_FORMS, without_commands

__all__ = ["PALETTE", "terminal_text"]

PALETTE = ("\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[90m", "\x1b[40;32m")
"""The escapes that our own output uses, on a terminal only."""

_COLOUR = regex("(" + "|".join(each.replace("[", r"\[") for each in PALETTE) + ")")


def terminal_text(text: str, form: str = "", *, is_coloured: bool = False) -> str:
    r"""Return a text as a terminal or a CI system may read it: visible escapes, and no command of a runner.

    `form` is the name of the format: in some, lines are commands of ours whose writers have encoded every value, and
    lines of CSV end as its standard says. `is_coloured` leaves the colours of our own palette.

    >>> terminal_text("a\x07\n::error::b")
    'a\\x07\n\\::error::b'
    """
    if is_coloured and "\x1b" in text:
        text = "".join(each if number % 2 else visible(each) for number, each in enumerate(_COLOUR.split(text)))
    else:
        end = "\r\n" if form == "csv" else "\n"
        text = end.join(map(visible, text.split(end)))  # guard: a terminal gets visible escapes
    return text if form in COMMAND_FORMS else without_commands(text)
