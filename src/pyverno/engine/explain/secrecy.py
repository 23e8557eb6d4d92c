"""The values of a rule that explanations name and do not store: those of the cluster, registries, services and Secrets.

The answer is found in the texts of the rule, before it runs: an expression that mentions the name of such an entry, or
whose text does not show what it reads, is taken to hold its value. This module must never look at a value to decide.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from pyverno.engine.actions.elements import Elements
from pyverno.engine.actions.mutate import MutateExisting
from pyverno.engine.cel.session import CelVariable
from pyverno.engine.explain.mentions import MentionedNames, first_word, words_of
from pyverno.engine.explain.nodes import FieldPath, Held, Hidden, Shown
from pyverno.engine.explain.reads import cel_reads
from pyverno.engine.rules.bindings import (
    ApiCallBinding,
    GlobalReferenceBinding,
    ImageRegistryBinding,
    VariableBinding,
)
from pyverno.kube.json import JSON
from pyverno.lang.cel import Program
from pyverno.lang.cel.syntax import ast
from pyverno.lang.template import Template
from pyverno.value import fields, is_dataclass

__all__ = ["Secrecy", "parts_of", "shortened", "source_name"]

_WORLD: Final[Mapping[type, str]] = {
    ApiCallBinding: "apiCall",
    ImageRegistryBinding: "imageRegistry",
    GlobalReferenceBinding: "globalReference",
}
_UNCLEAR: Final = re.compile(r"@|\$|\\|\{\{|(?<![\[.])\*")
"""Texts that may read every variable without naming it: `@`, `*`, escapes in names, names made by variables."""

_MAX_PARTS: Final = 100
_MAX_TEXT: Final = 2000
_ANY_ELEMENT: Final = ("element", *(f"element{depth}" for depth in range(10)))


def source_name(binding: object) -> str:
    """Return what a context entry is called in a policy."""
    name = _WORLD.get(type(binding))
    return name or ("variable" if isinstance(binding, VariableBinding) else "configMap")


def parts_of(value: Any) -> Iterator[Any]:
    """Yield every dataclass inside a compiled rule, itself first."""
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        for each in value:
            yield from parts_of(each)
    elif is_dataclass(value) and not isinstance(value, type):
        yield value
        if type(value).__module__.startswith("pyverno.engine."):
            for each in fields(value):
                yield from parts_of(getattr(value, each.name, None))


class Secrecy:
    """The values that one rule may show. `names` maps variables that hold foreign values to where those come from."""

    __slots__ = ("_cel", "_entries", "_foreign", "_hides_object", "_names", "_paths", "_texts_of")

    def __init__(self, parts: Iterable[Any], *, hides_object: bool) -> None:
        self._hides_object = hides_object
        self._names: dict[str, str] = {}
        self._cel: dict[str, str] = {"params": "parameter"}
        known = tuple(parts)
        self._texts_of = {each.name: tuple(_binding_texts(each)) for each in known if isinstance(each, VariableBinding)}
        self._entries = MentionedNames(self._texts_of)
        self._foreign = MentionedNames()
        self._paths: dict[str, tuple[FieldPath, ...]] = {}
        for each in known:
            if isinstance(each, CelVariable):
                self._paths[f"variables.{each.name}"] = cel_reads(each.program, self._paths)
        self._learn_names(known)
        before = -1
        while before != len(self._cel):
            before = len(self._cel)
            for each in known:
                if isinstance(each, CelVariable) and self.tainted(each.program):
                    self._cel.setdefault(f"variables.{each.name}", "cluster")

    @property
    def holds_foreign_values(self) -> bool:
        """Return whether the rule has values that must not be shown, beside those of its object."""
        return bool(self._names) or len(self._cel) > 1

    def _learn_names(self, known: Sequence[Any]) -> None:
        """Learn which names hold foreign values: those of the world, and what is made of them, in any order."""
        for each in known:
            self._learn(each)
        readers: dict[str, list[Any]] = {}
        unclear: list[Any] = []
        for each in known:
            texts = _read_texts(each)
            for word in {word for text in texts for word in words_of(text)}:
                readers.setdefault(word, []).append(each)
            if any(map(_UNCLEAR.search, texts)):
                unclear.append(each)
        for each in unclear:
            self._learn(each)
        pending = [*self._names]
        while pending:
            for each in readers.get(first_word(pending.pop()), ()):
                known_names = len(self._names)
                self._learn(each)
                pending += [*islice(reversed(self._names), len(self._names) - known_names)]

    def _learn(self, part: Any) -> None:
        if type(part) in _WORLD:
            self._add((part.name,), _WORLD[type(part)])
        elif isinstance(part, MutateExisting):
            self._add(("target",), "target")
        elif isinstance(part, (VariableBinding, Elements)):
            names = (part.name,) if isinstance(part, VariableBinding) else _ANY_ELEMENT
            if names[0] not in self._names and (source := self._of_texts(_read_texts(part))):
                self._add(names, source)

    def _add(self, names: Iterable[str], source: str) -> None:
        for name in names:
            if name not in self._names:
                self._names[name] = source
                self._foreign.add(name)

    def _of_texts(self, texts: Iterable[str]) -> str:
        for text in texts:
            found = self._foreign.find(text)
            if found:
                return self._names[found[0]]
            if self._names and _UNCLEAR.search(text):
                return next(iter(self._names.values()))
        return ""

    def fields(self, program: Program) -> tuple[FieldPath, ...]:
        """Return the fields of the object that an expression names."""
        return cel_reads(program, self._paths)

    def reads(self, *templates: Template) -> tuple[str, ...]:
        """Return the texts of all variables of templates, and of the context entries that they are made of."""
        found: dict[str, None] = {}
        pending = [text for template in templates for text in _texts(template)]
        while pending:
            text = pending.pop()
            if text in found:
                continue
            found[text] = None
            for name in self._entries.find(text):
                pending += self._texts_of[name]
        return tuple(found)

    def source(self, template: Template) -> str:
        """Return where the value of a template comes from when it must not be shown, else ""."""
        if template.is_static:
            return ""
        return self._of_texts(_texts(template)) or ("Secret" if self._hides_object else "")

    def of_text(self, text: str) -> str:
        """Return where the value of a query comes from when it must not be shown, else ""."""
        return self._of_texts((text,)) or ("Secret" if self._hides_object else "")

    def entry(self, name: str) -> str:
        """Return where the value of a context entry comes from when it must not be shown, else ""."""
        return self._names.get(name) or ("Secret" if self._hides_object else "")

    def field(self, path: FieldPath, value: JSON) -> Held:
        """Return a value of the object as it may be shown."""
        return Hidden("Secret") if self._hides_object and not _is_public(path) else Shown(shortened(value))

    def tainted(self, program: Program) -> dict[int, str]:
        """Return the nodes of an expression whose values must not be shown, with where they come from."""
        found: dict[int, str] = {}
        checked = program.checked
        nodes = tuple(ast.walk(checked.root))
        named = {node.operand.id for node in nodes if isinstance(node, (ast.Select, ast.Has))}
        for node in reversed(nodes):  # `walk` yields parents first
            is_named = node.id in named and isinstance(node, ast.Ident) and node.name == "variables"
            source = ("" if is_named else self._own_source(node, program)) or next(
                (found[child.id] for child in ast.children(node) if child.id in found), ""
            )
            if source:
                found[node.id] = source
        if found:
            # what runs through a list of foreign values
            for node in nodes:
                reference = checked.references.get(node.id)
                if reference is not None and reference.local:
                    found.setdefault(node.id, next(iter(found.values())))
            for node in reversed(nodes):
                for child in ast.children(node):
                    if child.id in found:
                        found.setdefault(node.id, found[child.id])
        if self._hides_object:
            for node in nodes:
                found.setdefault(node.id, "Secret")
        return found

    def _own_source(self, node: ast.Node, program: Program) -> str:
        checked = program.checked
        resolution = checked.resolutions.get(node.id)
        if resolution is not None and any(each.in_context and not each.metered for each in resolution.overloads):
            return resolution.function
        reference = checked.references.get(node.id)
        if reference is not None and not reference.local and reference.constant is None:
            if reference.name == "variables":
                return next((source for name, source in self._cel.items() if name != "params"), "")
            return self._cel.get(reference.name, "")
        if isinstance(node, ast.Select) and isinstance(node.operand, ast.Ident) and node.operand.name == "variables":
            return self._cel.get(f"variables.{node.field}", "")
        return ""


def _read_texts(part: Any) -> tuple[str, ...]:
    """Return the texts of a part of a rule that may read variables, as far as names are learned from it."""
    if isinstance(part, Elements):
        return (part.query.text,)
    return tuple(_binding_texts(part)) if isinstance(part, VariableBinding) else ()


def _binding_texts(binding: VariableBinding) -> Iterator[str]:
    if binding.query is not None:
        yield binding.query.text
    for template in (binding.value, binding.default):
        if template is not None:
            yield from _texts(template)


def _texts(template: Template) -> Iterator[str]:
    return (variable.text for variable in template.variables)


def _is_public(path: FieldPath) -> bool:
    """Return whether a field of a Secret may be shown: its identity, and nothing that may repeat its data."""
    if path[:1] == ("metadata",):
        return path[1:2] != ("annotations",) and path[1:2] != ("managedFields",) and len(path) > 1
    return path[:1] in (("apiVersion",), ("kind",), ("type",), ("immutable",))


def shortened(value: JSON) -> JSON:
    """Return a value, or a short text in place of a large one.

    >>> shortened(list(range(1000)))
    '(a list of 1000 items)'
    """
    if isinstance(value, str):
        return value if len(value) <= _MAX_TEXT else f"{value[:_MAX_TEXT]}…"
    if isinstance(value, (dict, list)) and not _is_small(value):
        return f"(a map of {len(value)} keys)" if isinstance(value, dict) else f"(a list of {len(value)} items)"
    return value


def _is_small(value: JSON) -> bool:
    room = _MAX_PARTS
    pending = [value]
    while pending:
        each = pending.pop()
        room -= 1
        if isinstance(each, (dict, list)):
            if len(each) > room:
                return False
            pending.extend(each.values() if isinstance(each, dict) else each)
        elif isinstance(each, str) and len(each) > _MAX_TEXT:
            return False
    return room >= 0
