"""Lowering of `validate.foreach` to its action."""

from __future__ import annotations

from collections.abc import Sequence

from pyverno.compiler.parser import Parser
from pyverno.compiler.rules.checks import lower_check
from pyverno.compiler.rules.elements import lower_elements
from pyverno.engine.actions.deny import DenyCheck
from pyverno.engine.actions.foreach import ForeachCheck, ForeachEntry
from pyverno.lang.template import Template
from pyverno.policy.rule import Rule
from pyverno.policy.validate import ValidateForeach
from pyverno.value import replace

__all__ = ["lower_foreach"]


def lower_foreach(rule: Rule, written: Sequence[ValidateForeach], message: Template, parser: Parser) -> ForeachCheck:
    """Compile the loops of a rule, those inside of them too."""
    entries = tuple(_entry(rule, each, message, parser, ()) for each in written)
    return ForeachCheck(tuple(entry for entry in entries if entry is not None))


def _entry(
    rule: Rule, each: ValidateForeach, message: Template, parser: Parser, outer: tuple[ValidateForeach, ...]
) -> ForeachEntry | None:
    elements = lower_elements(each, parser, depth=len(outer))
    if elements is None:
        return None
    if each.foreach:
        nested = tuple(_entry(rule, inner, message, parser, (*outer, each)) for inner in each.foreach)
        check = ForeachCheck(tuple(entry for entry in nested if entry is not None), nested=True)
        return ForeachEntry(elements, check, element_scope=each.element_scope)
    pattern = lower_check(rule, each, message, each.path, parser)
    if pattern is None:
        return None
    if isinstance(pattern, DenyCheck):
        return ForeachEntry(elements, pattern, element_scope=each.element_scope)
    # Kyverno: what is not scoped to its element stays scoped to that of the loop around it
    scopes = tuple(depth for depth in reversed(range(len(outer))) if outer[depth].element_scope is not False)
    return ForeachEntry(
        elements, replace(pattern, outer=scopes), replace(pattern, scoped=True), element_scope=each.element_scope
    )
