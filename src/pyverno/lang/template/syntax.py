"""The grammar of variables in one string: where `{{ expressions }}` are, and how they nest.

Kyverno resolves the innermost variables first and scans again; here the passes run once, at load, over the author's
text alone, with a placeholder where a value will be.
"""

from __future__ import annotations

import re

from pyverno.errors import SubstitutionError
from pyverno.kube.json import JSON
from pyverno.lazyregex import regex
from pyverno.value import dataclass

__all__ = [
    "MAX_ROUNDS",
    "Occurrence",
    "StringTemplate",
    "has_variables",
    "is_reference",
    "is_variable",
    "literal_parts",
    "outer_variables",
    "parse_string",
    "split_expression",
    "split_variables",
]

MAX_ROUNDS = 16
"""How deeply variables may nest, and how often the compatibility mode scans again."""

# Kyverno: pkg/engine/variables/regex. Possessive repeats match the same, since the alternatives exclude each other,
# and keep it linear.
VARIABLE = regex(r"(^|[^\\])(\{\{(?:\{[^{}]*+\}|[^{}]++)*+\}\})")

# A placeholder stands for a value, as `lang.jmespath` reads it: U+E000, a number, U+E001.
_OPEN, _CLOSE = "\ue000", "\ue001"
PLACEHOLDER = regex(f"{_OPEN}([0-9]+){_CLOSE}")
PRIVATE = regex(f"[{_OPEN}{_CLOSE}]")


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One variable of a string: its expression with placeholders, the occurrences that fill these, and its source.

    `constant` is set for the rare character of the source that would read as a placeholder; it is no variable.
    """

    text: str
    placeholders: tuple[int, ...]
    source: str
    is_shallow: bool = False
    constant: str | None = None


@dataclass(frozen=True, slots=True)
class StringTemplate:
    """A string taken apart: its variables in the order of evaluation, and the one that is the whole string, or parts.

    A part is literal text or the number of an occurrence.
    """

    occurrences: tuple[Occurrence, ...]
    whole: int | None
    parts: tuple[str | int, ...]


def is_variable(text: str) -> bool:
    """Return whether a text holds a variable that is not escaped.

    >>> is_variable("a {{ b }}"), is_variable("\\\\{{ b }}")
    (True, False)
    """
    return "{{" in text and VARIABLE.search(text) is not None


def is_reference(text: str) -> bool:
    """Return whether a text holds a reference `$(path)` that is not escaped.

    >>> is_reference("$(./../name)"), is_reference("")
    (True, False)
    """
    from pyverno.lang.template.references import find_references  # the two modules explain each other

    return bool(find_references(text))


def has_variables(value: JSON) -> bool:
    """Return whether any string or key of a document holds a variable.

    >>> has_variables({"a": ["{{ b }}"]})
    True
    """
    pending: list[JSON] = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            if is_variable(item):
                return True
        elif isinstance(item, dict):
            pending.extend(item)
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
    return False


def split_expression(variable: str) -> tuple[str, bool]:
    """Return the expression inside the braces of a variable, and whether it is shallow (`{{- …}}`).

    >>> split_expression("{{- a.b }}")
    ('a.b', True)
    """
    text = variable.replace("{{", "").replace("}}", "").strip()
    if text.startswith("-"):
        return text[1:].strip(), True
    return text, False


def split_variables(text: str) -> tuple[str, ...]:
    """Return the source of every variable of a text, inner ones first, as written.

    >>> split_variables("{{ a.{{b}} }} and {{ c }}")
    ('b', 'c', 'a.{{b}}')
    """
    return tuple(item.source for item in parse_string(text).occurrences if item.constant is None)


def outer_variables(text: str) -> tuple[str, ...]:
    """Return the source of every variable of a text that is not inside of another one.

    >>> outer_variables("{{ a.{{b}} }} and {{ c }}")
    ('a.{{b}}', 'c')
    """
    parsed = parse_string(text)
    numbers = parsed.parts if parsed.whole is None else (parsed.whole,)
    found = (parsed.occurrences[number] for number in numbers if isinstance(number, int))
    return tuple(each.source for each in found if each.constant is None)


def literal_parts(text: str) -> tuple[str, ...]:
    """Return what a text holds beside its variables.

    >>> literal_parts("{{ a.{{b}} }}-* and {{ c }}")
    ('-* and ',)
    """
    return tuple(part for part in parse_string(text).parts if isinstance(part, str))


def parse_string(text: str) -> StringTemplate:
    """Take a string apart; raises SubstitutionError when its variables nest too deeply."""
    occurrences: list[Occurrence] = []
    current = _protect(text, occurrences)
    for _ in range(MAX_ROUNDS):
        found = list(VARIABLE.finditer(current))
        if not found:
            break
        pieces: list[str] = []
        position = 0
        for match in found:
            occurrences.append(_occurrence(match[2], occurrences))
            number = len(occurrences) - 1
            if match[2] == current:
                return StringTemplate(tuple(occurrences), number, ())
            pieces += (current[position : match.start(2)], f"{_OPEN}{number}{_CLOSE}")
            position = match.end()
        current = "".join((*pieces, current[position:]))
        # COMPAT: the last variable of a pass decides whether outer variables are looked at.
        if occurrences[-1].is_shallow:
            break
    else:
        if VARIABLE.search(current):
            raise SubstitutionError(f"variables are nested more than {MAX_ROUNDS} levels deep")
    return StringTemplate(tuple(occurrences), None, _parts(current))


def _protect(text: str, occurrences: list[Occurrence]) -> str:
    """Replace characters of the source that would read as placeholders by placeholders with a constant value."""
    if not PRIVATE.search(text):
        return text

    def constant(match: re.Match[str]) -> str:
        occurrences.append(Occurrence("", (), match[0], constant=match[0]))
        return f"{_OPEN}{len(occurrences) - 1}{_CLOSE}"

    return PRIVATE.sub(constant, text)


def _occurrence(variable: str, earlier: list[Occurrence]) -> Occurrence:
    text, is_shallow = split_expression(variable)
    numbers: list[int] = []

    def renumber(match: re.Match[str]) -> str:
        numbers.append(int(match[1]))
        return f"{_OPEN}{len(numbers) - 1}{_CLOSE}"

    source = PLACEHOLDER.sub(lambda match: _source(earlier[int(match[1])]), text)
    return Occurrence(PLACEHOLDER.sub(renumber, text), tuple(numbers), source, is_shallow)


def _source(occurrence: Occurrence) -> str:
    if occurrence.constant is not None:
        return occurrence.constant
    return "{{" + occurrence.source + "}}"


def _parts(text: str) -> tuple[str | int, ...]:
    parts: list[str | int] = []
    for index, piece in enumerate(PLACEHOLDER.split(text)):
        if index % 2:
            parts.append(int(piece))
        elif piece:
            parts.append(piece.replace("\\{{", "{{"))
    return tuple(parts)
