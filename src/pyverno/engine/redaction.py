"""Redaction of error texts: a value of a variable is replaced by the variable as the policy spells it.

A rule may read Secrets and build paths, URLs, names and selectors of them; servers quote these in their errors, and
error texts appear in reports.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import Final, TypeVar
from urllib.parse import quote

from pyverno.errors import PyvernoError
from pyverno.kube.gofloat import float_verb_text
from pyverno.kube.json import JSON, encode, is_number
from pyverno.lang.template import Template
from pyverno.lazyregex import regex

__all__ = ["redact_errors", "redact_texts", "redact_values"]

T = TypeVar("T")

_SHORT: Final = 4
"""Values below this many characters are found only where no letter or digit is beside them."""

_START: Final = 16
"""Characters of a value that are enough to find it: some texts truncate what they quote."""

_MOST_TEXTS: Final = 64
_MOST_CHARACTERS: Final = 8192
_INDEX: Final = regex(r"[0-9]{0,4}|-")
"""Parts of a path that are a place in a list, or nothing."""

_CHUNK: Final = 256
"""Characters that are compared at a time."""


def redact_values(message: str, template: Template, rendered: JSON) -> str:
    """Return an error text with variables in place of their values.

    >>> from pyverno.lang.template import compile_template
    >>> redact_values('pods "s3cret" not found', compile_template("/pods/{{ x }}"), "/pods/s3cret")
    'pods "{{ x }}" not found'
    """
    if template.is_static:
        return message
    found = sorted(set(_values(template.document, rendered)), key=lambda pair: len(pair[1]), reverse=True)
    for variable, value in found:
        message = _without(message, _forms(value), variable)
    return message


def redact_texts(message: str, value: JSON, source: str) -> str:
    """Return an error text without texts and numbers of a value, except those in the source of its expression.

    Of paths only the parts count. What would take long to look through is not shown at all.

    >>> redact_texts("no path: /data/s3cret", [{"path": "/data/s3cret"}], "[JSONPatch{path: '/data/' + x}]")
    'no path: /data/(6 characters)'
    """
    if len(message) > _MOST_CHARACTERS:
        return _hidden(message)
    texts: set[str] = set()
    for scalar in _scalars(value):
        parts = scalar.split("/") if scalar.startswith("/") else [scalar]
        texts.update(part for part in parts if part not in source and not _INDEX.fullmatch(part))
        if len(texts) > _MOST_TEXTS:
            return _hidden(message)
    for text in sorted(texts, key=len, reverse=True):
        forms = [form for each in {text, text.replace("~1", "/").replace("~0", "~")} for form in _forms(each)]
        message = _without(message, forms, f"({len(text)} characters)")
    return message


def _hidden(message: str) -> str:
    return f"an error of {len(message)} characters that shows values"


def _scalars(value: JSON) -> Iterator[str]:
    """Yield keys, texts and numbers of a value, as error texts show them."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            yield from item
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
        elif is_number(item):
            yield encode(item)
            if isinstance(item, float):
                yield float_verb_text(item)


def _forms(value: str) -> list[str]:
    """Return a value as texts quote it: as it is, in JSON, and as part of a path or URL."""
    forms = {value, value.strip(), encode(value)[1:-1], quote(value), quote(value, safe="")}
    return sorted(forms - {""})


def _without(message: str, forms: list[str], variable: str) -> str:
    """Return a text with a variable in place of each occurrence of a value, in capitals or not, whole or cut off.

    Where several forms begin, the one that is equal to the most of the text counts: nothing of the value stays.
    """
    if not forms:
        return message
    pieces, position = [], 0
    for found in re.finditer("|".join(_start(form) for form in forms), message, re.IGNORECASE):
        if found.start() < position:
            continue
        pieces += [message[position : found.start()], variable]
        position = max(found.end(), *(_end(message, found.start(), form) for form in forms))
    return "".join((*pieces, message[position:]))


def _start(form: str) -> str:
    """Return the expression that finds the first characters of a form."""
    start = re.escape(form[:_START])
    return start if len(form) >= _SHORT else f"(?<![0-9A-Za-z]){start}(?![0-9A-Za-z])"


def _end(message: str, start: int, form: str) -> int:
    """Return where a text that begins at `start` ceases to be equal to a form."""
    length = 0
    while length < len(form):
        one, other = (text[at : at + _CHUNK] for text, at in ((message, start + length), (form, length)))
        if len(one) != len(other) or one.lower() != other.lower():
            pairs = zip(one, other, strict=False)
            return start + length + sum(1 for _ in takewhile(lambda pair: pair[0].lower() == pair[1].lower(), pairs))
        length += len(other)
    return start + length


def _values(written: JSON, rendered: JSON) -> Iterator[tuple[str, str]]:
    """Yield variables as they are written, with what they held."""
    if isinstance(written, dict) and isinstance(rendered, dict):
        known = [key for key in written if key in rendered]
        others = [key for key in written if key not in rendered]
        yield from (pair for key in known for pair in _values(written[key], rendered[key]))
        # keys that are variables: whatever became of them, in order
        made = [key for key in rendered if key not in written]
        for key, other in zip(others, made, strict=False):
            yield from _values(key, other)
            yield from _values(written[key], rendered[other])
    elif isinstance(written, list) and isinstance(rendered, list):
        for one, other in zip(written, rendered, strict=False):
            yield from _values(one, other)
    elif isinstance(written, str) and "{{" in written:
        yield from _parts(written, rendered)


def _parts(written: str, rendered: JSON) -> Iterator[tuple[str, str]]:
    """Yield the variables of a text with what is in their place; of other values, every text inside."""
    if not isinstance(rendered, str):
        for text in _texts(rendered):
            yield written, text
        return
    position, variable = 0, ""
    for literal, following in _pieces(written):
        if following or literal:
            found = rendered.find(literal, position)
        else:
            found = len(rendered)
        if found < 0:  # not what was expected: leave nothing of it
            yield written, rendered
            return
        if variable and found > position:
            yield variable, rendered[position:found]
        position, variable = found + len(literal), following


def _pieces(written: str) -> Iterator[tuple[str, str]]:
    """Yield each text with the variable that follows it, "" at the end."""
    start = 0
    while (opening := written.find("{{", start)) >= 0:
        depth, end = 1, opening + 2
        while depth and end < len(written):
            if written.startswith("{{", end):
                depth, end = depth + 1, end + 2
            elif written.startswith("}}", end):
                depth, end = depth - 1, end + 2
            else:
                end += 1
        yield written[start:opening], written[opening:end]
        start = end
    yield written[start:], ""


def _texts(value: JSON) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(key)
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def redact_errors(ask: Callable[[], T], *used: tuple[Template, JSON]) -> T:
    """Call `ask`; in the text of its error, values of the `used` (template, value) pairs are redacted."""
    try:
        return ask()
    except PyvernoError as error:
        for template, rendered in used:
            error.message = redact_values(error.message, template, rendered)
        error.args = (error.message,)
        raise
