"""The JMESPath expressions of rule policies, each with its path and offset."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pyverno.compiler.lints.lint import Subject
from pyverno.compiler.lints.walking import texts
from pyverno.kube.json import JSON
from pyverno.kube.yaml.fieldpath import Path
from pyverno.lang.template.syntax import VARIABLE
from pyverno.lazyregex import regex
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.value import dataclass

__all__ = ["WrittenExpression", "blank_literals", "expressions", "template_texts"]

_LITERAL = regex(r"'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\])*`|\"(?:\\.|[^\"\\])*\"", re.DOTALL)
_BARE = frozenset({"jmesPath", "list"})
_OTHER_LANGUAGES = frozenset({"cel", "celPreconditions", "match", "exclude"})


@dataclass(frozen=True, slots=True)
class WrittenExpression:
    """One expression: its text, and where it begins in the text at a path."""

    text: str
    path: Path
    offset: int


def template_texts(subject: Subject) -> Iterator[tuple[str, Path]]:
    """Yield the texts of a document in which variables are replaced."""
    if isinstance(subject.written, ClusterPolicy):
        for rule in subject.written.spec.rules:
            yield from _texts(rule.raw, rule.path)
        return
    from pyverno.policy.cleanup import CleanupPolicy  # most documents are of other kinds
    from pyverno.policy.exception import PolicyException

    match subject.written:
        case CleanupPolicy() as policy:
            for key in ("conditions", "context"):
                yield from _texts(policy.spec.raw.get(key), ("spec", key))
        case PolicyException() as exception:
            yield from _texts(exception.spec.conditions, ("spec", "conditions"))


def _texts(value: JSON, path: Path) -> Iterator[tuple[str, Path]]:
    for text, place in texts(value, path):
        if _OTHER_LANGUAGES.isdisjoint(place[3:5]):
            yield text, place


def expressions(subject: Subject) -> Iterator[WrittenExpression]:
    """Yield the expressions of a document: those in variables, and the texts of `jmesPath` and `list`."""
    for text, path in template_texts(subject):
        if "{{" in text:
            yield from (WrittenExpression(found[2], path, found.start(2)) for found in VARIABLE.finditer(text))
        elif path[-1] in _BARE:
            yield WrittenExpression(text, path, 0)


def blank_literals(text: str) -> str:
    """Return an expression of the same length with blanks in place of its literals and quoted names.

    >>> blank_literals("f('x(y)')")
    'f(      )'
    """
    return _LITERAL.sub(lambda found: " " * len(found[0]), text) if any(mark in text for mark in "'`\"") else text
