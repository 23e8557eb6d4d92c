"""`Warning` headers: which texts get into an answer, and how much of them.

The rules are the API server's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from unicodedata import category

__all__ = ["warning_headers"]

_MOST: Final = 4 * 1024
_MAX_EACH: Final = 256
"""How many characters all texts may have together, and each where they have more."""


def warning_headers(texts: Sequence[str]) -> list[str]:
    """Return the headers; texts that are empty or hold control characters are left out, long ones may be cut.

    >>> warning_headers(["say \\"hi\\"", "two\\nlines", ""])
    ['299 - "say \\\\"hi\\\\""']
    """
    told = [text for text in dict.fromkeys(texts) if text and not any(category(each) == "Cc" for each in text)]
    if sum(map(len, told)) > _MOST:
        told = _cut(told)
    return [_header(text) for text in told]


def _cut(texts: Sequence[str]) -> list[str]:
    """Cut every text, and leave out those that come after too much."""
    found: list[str] = []
    written = 0
    for text in texts:
        if written >= _MOST:
            break
        found.append(text[:_MAX_EACH])
        written += len(found[-1])
    return found


def _header(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'
