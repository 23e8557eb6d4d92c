"""JSON with variables as CEL literals whose elements have one type, as CEL demands of lists and maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pyverno.compiler.migration.outcome import UnconvertibleError, join_path
from pyverno.compiler.migration.text import Cel, CelType, Reference, literal
from pyverno.kube.json import JSON, JSONObject

__all__ = ["Expressions", "has_variable", "write_text", "write_value"]


class Expressions(Protocol):
    """The variables and conditions of a rule in CEL, at one place of it."""

    def value(self, text: str, path: str) -> Cel:
        """Return the value of a text with variables; raises UnconvertibleError."""
        ...

    def conditions(self, written: JSON, path: str) -> Cel:
        """Return whether preconditions hold; raises UnconvertibleError."""
        ...

    def list_of(self, query: str, path: str) -> tuple[Cel, Reference | None]:
        """Return the list that a query gives, and the field that it is, if it is one; raises UnconvertibleError."""
        ...

    def within(self, element: Reference, index: Cel, depth: int) -> Expressions:
        """Return the expressions inside of a loop over elements."""
        ...

    def with_context(self, entries: Sequence[JSONObject], path: str) -> Expressions:
        """Return the expressions that also read the entries of a context; raises UnconvertibleError."""
        ...


def has_variable(value: JSON) -> bool:
    """Return whether a value has variables or references anywhere, in keys too.

    >>> has_variable({"a": ["{{ b }}"]}), has_variable({"a": "b"})
    (True, False)
    """
    if isinstance(value, str):
        return "{{" in value or "$(" in value
    if isinstance(value, dict):
        return any(has_variable(key) or has_variable(each) for key, each in value.items())
    return isinstance(value, list) and any(map(has_variable, value))


def write_value(value: JSON, expressions: Expressions, path: str, *, mixes: bool = False) -> Cel:
    """Return a value of a rule as CEL; `mixes` where literals may hold values of several types.

    Raises UnconvertibleError for what the variables in it cannot be.
    """
    return _write(value, expressions, path, mixes=mixes)[0]


def _write(value: JSON, expressions: Expressions, path: str, *, mixes: bool) -> tuple[Cel, str]:
    """Return a value and the type that the checker of literals gives it."""
    match value:
        case str() if has_variable(value):
            found = write_text(value, expressions, path)
            return found, "dyn"  # values read from an object have no type for the checker
        case dict():
            names = [_name(key, expressions, path) for key in value]
            pairs = [_write(each, expressions, join_path(path, key), mixes=mixes) for key, each in value.items()]
            texts, kind = _of_one_type(pairs, mixes=mixes)
            inner = ", ".join(f"{name.text}: {text}" for name, text in zip(names, texts, strict=True))
            return Cel(f"{{{inner}}}", CelType.MAP), f"map({kind})"
        case list():
            pairs = [_write(each, expressions, f"{path}[{at}]", mixes=mixes) for at, each in enumerate(value)]
            texts, kind = _of_one_type(pairs, mixes=mixes)
            return Cel(f"[{', '.join(texts)}]", CelType.LIST), f"list({kind})"
    found = literal(value)
    return found, found.type.value


def write_text(text: str, expressions: Expressions, path: str) -> Cel:
    """Return a text with variables as CEL."""
    if "$(" in text:
        advice = "write the value instead of the reference"
        raise UnconvertibleError("reference", path, "references such as `$(/spec/a)` have no form in CEL", advice)
    return expressions.value(text, path) if "{{" in text else literal(text)


def _name(key: str, expressions: Expressions, path: str) -> Cel:
    name = write_text(key, expressions, path)
    return name if name.type is CelType.STRING else Cel(f"string({name.text})", CelType.STRING)


def _of_one_type(pairs: list[tuple[Cel, str]], *, mixes: bool) -> tuple[list[str], str]:
    """Return the texts of the values of one literal, each as `dyn` where their types differ."""
    kinds = {kind for _, kind in pairs}
    if len(kinds) <= 1 or mixes:
        return [each.text for each, _ in pairs], next(iter(kinds), "") if len(kinds) <= 1 else "dyn"
    return [f"dyn({each.text})" for each, _ in pairs], "dyn"
