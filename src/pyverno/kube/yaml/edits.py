"""Edits of a text by positions: everything around an edit stays as it is, comments and quotes included.

This module must never write YAML of its own: an edit that does not fit the text is left out.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyverno.value import dataclass

__all__ = ["TextEdit", "apply_edits"]


@dataclass(frozen=True, slots=True, order=True)
class TextEdit:
    """At index `start` of a text is `old`, which becomes `new`."""

    start: int
    old: str
    new: str


def apply_edits(text: str, edits: Iterable[TextEdit]) -> tuple[str, int]:
    """Return the edited text and how many edits were made; of edits that overlap the first one is made.

    >>> apply_edits("kinds: [deployment]  # all", [TextEdit(8, "deployment", "Deployment"), TextEdit(0, "x", "y")])
    ('kinds: [Deployment]  # all', 1)
    """
    pieces: list[str] = []
    position = made = 0
    for edit in sorted(edits):
        if edit.start < position or not text.startswith(edit.old, edit.start):
            continue
        pieces += (text[position : edit.start], edit.new)
        position = edit.start + len(edit.old)
        made += 1
    return "".join((*pieces, text[position:])), made
