"""Braces do not enclose a variable.

`{{ request.object.metadata.name }` is text like any other: a comparison with it never holds, and a message shows it as
it is. Reported are `{{` without `}}`, and a single brace before the name of a variable that `}}` closes. Text that is
meant to hold braces is written `\\{{`.

Example::

    message: "{{ request.object.metadata.name } must have an owner"

Write instead::

    message: "{{ request.object.metadata.name }} must have an owner"
"""

from __future__ import annotations

from collections.abc import Iterator

from pyverno.compiler.lints.expressions import template_texts
from pyverno.compiler.lints.lint import Problem, Subject, Workspace
from pyverno.lang.template.syntax import VARIABLE
from pyverno.lazyregex import regex

__all__ = ["check"]

_HALF_OPEN = regex(r"(?<![{\\])\{\s*(?:request|element|images|target|serviceAccountName)\b[^{}]*\}\}")


def check(subject: Subject, _workspace: Workspace) -> Iterator[Problem]:
    """Yield the braces that enclose nothing."""
    for text, path in template_texts(subject):
        if "{{" not in text and "}}" not in text:
            continue
        rest = _without_variables(text)
        at = _unescape(rest)
        if at >= 0:
            yield Problem(path, "`{{` is never closed by `}}`, so this is text and no variable", at)
            continue
        half = _HALF_OPEN.search(rest)
        if half is not None:
            yield Problem(path, "one `{` is missing before this variable, so it is text", half.start())


def _without_variables(text: str) -> str:
    """Replace variables, inner ones first, by as many blanks."""
    for _ in range(16):
        replaced = VARIABLE.sub(lambda found: found[1] + " " * len(found[2]), text)
        if replaced == text:
            break
        text = replaced
    return text


def _unescape(text: str) -> int:
    """Return the index of the first `{{` that no backslash protects and that begins no JSON, -1 where there is none."""
    at = text.find("{{")
    while at > 0 and text[at - 1] == "\\":
        at = text.find("{{", at + 2)
    return at
