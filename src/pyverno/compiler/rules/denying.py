"""Lowering of `deny` to its action."""

from __future__ import annotations

from pyverno.compiler.parser import Parser, lower_conditions
from pyverno.engine.actions.deny import DenyCheck
from pyverno.kube.yaml.fieldpath import Path
from pyverno.lang.template import Template
from pyverno.policy.deny import Deny

__all__ = ["lower_deny"]


def lower_deny(rule: str, deny: Deny, message: Template, path: Path, parser: Parser) -> DenyCheck:
    """Compile the conditions, and their texts that have variables."""
    conditions = lower_conditions(deny.conditions, parser, (*path, "deny", "conditions"))
    written = conditions.messages if conditions is not None else ()
    texts = {text: parser.template(text, (*path, "deny", "conditions")) for text in sorted(written)}
    variable = {text: template for text, template in texts.items() if not template.is_static}
    return DenyCheck(rule, message, conditions, variable)
