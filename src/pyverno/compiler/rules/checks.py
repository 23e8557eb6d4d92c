"""Lowering of deny, pattern and anyPattern, which a rule and a loop of a rule can both have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyverno.compiler.parser import Parser
from pyverno.kube.yaml.fieldpath import Path
from pyverno.lang.template import Template
from pyverno.policy.rule import Rule
from pyverno.policy.validate import Validate, ValidateForeach

if TYPE_CHECKING:
    from pyverno.engine.actions.deny import DenyCheck
    from pyverno.engine.actions.pattern import AnyPatternCheck, PatternCheck

__all__ = ["lower_check"]


def lower_check(
    rule: Rule, written: Validate | ValidateForeach, message: Template, path: Path, parser: Parser
) -> PatternCheck | AnyPatternCheck | DenyCheck | None:
    """Compile deny, pattern or anyPattern, the first that is written."""
    if written.deny is not None:
        from pyverno.compiler.rules.denying import lower_deny

        return lower_deny(rule.name, written.deny, message, path, parser)
    if written.pattern is not None:
        from pyverno.compiler.rules.patterns import lower_pattern

        return lower_pattern(rule.name, written.pattern, message, (*path, "pattern"), parser)
    if written.any_pattern is not None:
        from pyverno.compiler.rules.patterns import lower_any_pattern

        return lower_any_pattern(rule.name, written.any_pattern, message, (*path, "anyPattern"), parser)
    return None
