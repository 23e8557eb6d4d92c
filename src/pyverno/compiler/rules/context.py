"""Lowering of the context of a rule: entries become bindings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyverno.compiler.parser import Parser
from pyverno.engine.rule import Binding
from pyverno.kube.json import JSON
from pyverno.lang.template import compile_template
from pyverno.policy.context import ContextEntry, ImageRegistry, Variable

__all__ = ["data_names", "lower_context"]


def lower_context(entries: Sequence[ContextEntry], parser: Parser) -> tuple[Binding, ...]:
    """Compile the entries in order."""
    if not entries:
        return ()
    from pyverno.compiler.rules.bindings import lower_entry  # many rules have no context

    return tuple(binding for entry in entries for binding in lower_entry(entry, parser))


def data_names(entries: Sequence[ContextEntry], known: frozenset[str] = frozenset()) -> frozenset[str]:
    """Return the names in `known` and those of entries whose values the requester writes.

    Those are variables that read the request, or other such entries, and data of an image from a registry.
    """
    if not entries:
        return known
    from pyverno.engine.rules.conditions import reads_data

    for entry in entries:
        if isinstance(entry, ImageRegistry) or (
            isinstance(entry, Variable)
            and any(reads_data(text, known) for text in (entry.jmes_path, *_variables(entry.value, entry.default)))
        ):
            known |= {entry.name}
    return known


def _variables(*documents: JSON) -> Iterator[str]:
    for document in documents:
        if document is not None:
            yield from (each.text for each in compile_template(document).variables if not each.is_inner)
