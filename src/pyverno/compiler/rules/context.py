"""Lowering of the context of a rule: entries become bindings."""

from __future__ import annotations

from collections.abc import Sequence

from pyverno.compiler.parser import Parser
from pyverno.engine.rule import Binding
from pyverno.policy.context import ContextEntry

__all__ = ["lower_context"]


def lower_context(entries: Sequence[ContextEntry], parser: Parser) -> tuple[Binding, ...]:
    """Compile the entries in order."""
    if not entries:
        return ()
    from pyverno.compiler.rules.bindings import lower_entry  # many rules have no context

    return tuple(binding for entry in entries for binding in lower_entry(entry, parser))
