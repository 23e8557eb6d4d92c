r"""Characters that a reader cannot see, or that a terminal obeys, written as visible escapes.

These are C0 and C1 controls, line and paragraph separators, marks of direction, characters without width, tags, byte
order marks, noncharacters and halves of surrogate pairs. Joiners stay within other scripts and emoji. All other text
stays as it is. An escape of a character beyond ASCII is one that JSON has, so that documents in JSON stay JSON.
"""

from __future__ import annotations

from re import Match
from typing import Final

from pyverno.lazyregex import regex

__all__ = ["SPECIAL", "block", "one_line", "visible"]

SPECIAL: Final = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff"
    "\ufff9-\ufffb\ufdd0-\ufdef\ufffe\uffff\U000e0000-\U000e007f"
)
"""The characters, but for line feed, tab and joiners, as the inside of a class of a regular expression."""

_JOINERS: Final = "(?<![^\x00-\x7f])[\u200c\u200d]"
_HIDDEN = regex(f"[{SPECIAL}]|{_JOINERS}")
_HIDDEN_IN_LINE = regex(f"[\t\n{SPECIAL}]|{_JOINERS}")
_SHORT: Final = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def visible(text: str) -> str:
    r"""Return a text whose only control characters are line feeds and tabs; others are escapes.

    >>> visible("a\x1b[31m\u202eb\r\nc ü 日本")
    'a\\x1b[31m\\u202eb\nc ü 日本'
    """
    if text.replace("\n", "").isprintable():
        return text
    return _HIDDEN.sub(_escape, text.replace("\r\n", "\n"))  # guard: control characters are visible escapes


def one_line(text: str) -> str:
    r"""Return a name, a path or a place as one line.

    >>> one_line("a\n::error::b")
    'a\\n::error::b'
    """
    return text if text.isprintable() else _HIDDEN_IN_LINE.sub(_escape, text)  # guard: a name is one line


def block(text: str, indent: str) -> str:
    r"""Return a message whose lines after the first are indented.

    >>> block("no tag\nuse one\n", "  ")
    'no tag\n  use one'
    """
    return ("\n" + indent).join(visible(text).rstrip("\n").split("\n")) if "\n" in text else visible(text)


def _escape(found: Match[str]) -> str:
    character = found[0]
    code = ord(character)
    if character in _SHORT:
        return _SHORT[character]
    if code < 0x20:
        return f"\\x{code:02x}"
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    units = character.encode("utf-16-be").hex()
    return f"\\u{units[:4]}\\u{units[4:]}"
