"""Fixes of findings as edits of the text that a document was read from."""

from __future__ import annotations

from collections.abc import Iterable

from pyverno.compiler.lints.lint import Diagnostic
from pyverno.kube.yaml.edits import TextEdit, apply_edits

__all__ = ["fix_text"]

_QUOTES = ("'", '"')


def fix_text(text: str, found: Iterable[Diagnostic]) -> tuple[str, int]:
    """Return a text with the fixes of its findings, and their number."""
    edits = (_text_edit(text, each) for each in found)
    return apply_edits(text, [edit for edit in edits if edit is not None])


def _text_edit(text: str, found: Diagnostic) -> TextEdit | None:
    document, edit = found.document, found.edit
    if document is None or edit is None or document.text is None:
        return None
    if edit.key:
        start = document.text_index(edit.path, key=True)
        return TextEdit(start + (text[start : start + 1] in _QUOTES) + edit.offset, edit.old, edit.new)
    start, first = document.text_index(edit.path, edit.offset), document.text_index(edit.path)
    is_plain = text[first : first + 1] not in (*_QUOTES, "|", ">")
    # a plain text cannot begin with a brace
    new = f'"{edit.new}"' if is_plain and edit.new.startswith("{") and start == first else edit.new
    return TextEdit(start, edit.old, new)
