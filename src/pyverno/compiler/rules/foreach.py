"""Lowering of `validate.foreach` to its action."""

from __future__ import annotations

from collections.abc import Sequence

from pyverno.compiler.parser import Parser
from pyverno.compiler.rules.elements import lower_elements
from pyverno.compiler.rules.validating import lower_check
from pyverno.engine.actions.deny import DenyCheck
from pyverno.engine.actions.foreach import ForeachCheck, ForeachEntry
from pyverno.lang.template import Template
from pyverno.policy.rule import Rule
from pyverno.policy.validate import ValidateForeach
from pyverno.value import replace

__all__ = ["lower_foreach"]


def lower_foreach(rule: Rule, written: Sequence[ValidateForeach], message: Template, parser: Parser) -> ForeachCheck:
    """Compile the loops of a rule, those inside of them too."""
    entries = tuple(_entry(rule, each, message, parser, 0) for each in written)
    return ForeachCheck(tuple(entry for entry in entries if entry is not None))


def _entry(rule: Rule, each: ValidateForeach, message: Template, parser: Parser, depth: int) -> ForeachEntry | None:
    elements = lower_elements(each, parser, depth=depth)
    if elements is None:
        return None
    if each.foreach:
        nested = tuple(_entry(rule, inner, message, parser, depth + 1) for inner in each.foreach)
        return ForeachEntry(elements, ForeachCheck(tuple(entry for entry in nested if entry is not None), nested=True))
    check = lower_check(rule, each, message, each.path, parser)
    if check is None:
        return None
    scoped = None if isinstance(check, DenyCheck) else replace(check, scoped=True)
    return ForeachEntry(elements, check, scoped, each.element_scope)
