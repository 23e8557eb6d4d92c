"""Lowering of `validate` blocks to actions."""

from __future__ import annotations

from dataclasses import replace

from pyverno.compiler.context import Parser, lower_conditions, lower_context, lower_preconditions
from pyverno.engine.actions.deny import DenyCheck
from pyverno.engine.actions.elements import Elements
from pyverno.engine.actions.foreach import ForeachCheck, ForeachEntry
from pyverno.engine.actions.pattern import AnyPatternCheck, PatternCheck
from pyverno.engine.actions.unavailable import Unavailable
from pyverno.engine.rule import Action
from pyverno.errors import ExpressionError, PyvernoError
from pyverno.kube.json import JSON
from pyverno.lang.pattern.validate import Pattern, compile_pattern
from pyverno.lang.template import Template
from pyverno.policy.deny import Deny
from pyverno.policy.rule import Rule
from pyverno.policy.schema import Path
from pyverno.policy.validate import Validate, ValidateForeach

__all__ = ["lower_validate"]

_MANIFESTS_UNAVAILABLE = "verification of manifest signatures is not available in this version of pyverno"


class NothingToCheck:
    """A rule that says nothing to check (or only an assertion tree, ignored since Kyverno 1.19): no result."""

    def run(self, run: object) -> tuple[()]:
        """Return no verdict."""
        return ()

    def exempt(self, run: object, exemptions: object) -> None:
        """Exceptions change nothing."""
        return


def lower_validate(rule: Rule, validate: Validate, parser: Parser) -> Action:
    """Compile the one check of a rule; Kyverno's order decides when several are written."""
    message = parser.template(validate.message, (*validate.path, "message"))
    if validate.manifests is not None:
        return Unavailable(_MANIFESTS_UNAVAILABLE)
    if validate.pod_security is not None:
        return _pod_security(rule, validate, parser)
    if validate.cel is not None:
        from pyverno.compiler.admissionpolicy import lower_cel_rule

        return lower_cel_rule(rule, validate, parser)
    check = _check(rule, validate, message, validate.path, parser)
    if check is not None:
        return check
    if validate.foreach:
        entries = tuple(_entry(rule, each, message, parser, 0) for each in validate.foreach)
        return ForeachCheck(tuple(entry for entry in entries if entry is not None))
    return NothingToCheck()


def _pod_security(rule: Rule, validate: Validate, parser: Parser) -> Action:
    from pyverno.engine.actions.pod_security import PodSecurityRule
    from pyverno.podsecurity import compile_pod_security

    try:
        return PodSecurityRule(rule.name, compile_pod_security(validate.raw.get("podSecurity")))
    except PyvernoError as error:
        text = f"failed to parse pod security api version: {error.message}"
        parser.report(text, (*validate.path, "podSecurity"), code="pod-security")
        return Unavailable(text)


def _check(
    rule: Rule, written: Validate | ValidateForeach, message: Template, path: Path, parser: Parser
) -> PatternCheck | AnyPatternCheck | DenyCheck | None:
    """Compile deny, pattern or anyPattern, the first that is written."""
    if written.deny is not None:
        return _deny(rule, written.deny, message, path, parser)
    if written.pattern is not None:
        template = parser.template(written.pattern, (*path, "pattern"))
        compiled = _patterns([template.document], template, parser, (*path, "pattern"), float_numbers=False)
        return PatternCheck(rule.name, template, message, compiled[0] if compiled else None)
    if written.any_pattern is not None:
        template = parser.template(written.any_pattern, (*path, "anyPattern"))
        if not isinstance(written.any_pattern, list):
            parser.report("failed to deserialize anyPattern, expect array", (*path, "anyPattern"), code="pattern")
            return None
        alternatives = _patterns(template.document, template, parser, (*path, "anyPattern"), float_numbers=True)
        return AnyPatternCheck(rule.name, template, message, alternatives)
    return None


def _patterns(
    documents: list[JSON], template: Template, parser: Parser, path: Path, *, float_numbers: bool
) -> tuple[Pattern, ...] | None:
    """Compile patterns without variables; None when they have variables or do not compile (which is reported)."""
    if not template.is_static:
        return None
    try:
        return tuple(compile_pattern(document, float_numbers=float_numbers) for document in documents)
    except ExpressionError as error:
        parser.report(error.message, path, code="pattern")
        return None


def _deny(rule: Rule, deny: Deny, message: Template, path: Path, parser: Parser) -> DenyCheck:
    conditions = lower_conditions(deny.conditions, parser, (*path, "deny", "conditions"))
    written = conditions.messages if conditions is not None else ()
    texts = {text: parser.template(text, (*path, "deny", "conditions")) for text in sorted(written)}
    variable = {text: template for text, template in texts.items() if not template.is_static}
    return DenyCheck(rule.name, message, conditions, variable)


def _entry(rule: Rule, each: ValidateForeach, message: Template, parser: Parser, depth: int) -> ForeachEntry | None:
    query = parser.query(each.elements, (*each.path, "list"))
    if query is None:
        if not each.elements:
            parser.report("foreach.list is required", (*each.path, "list"), code="foreach")
        return None
    elements = Elements(
        query,
        lower_context(each.context, parser),
        lower_preconditions(each.preconditions, parser, (*each.path, "preconditions")),
        depth,
    )
    if each.foreach:
        nested = tuple(_entry(rule, inner, message, parser, depth + 1) for inner in each.foreach)
        return ForeachEntry(elements, ForeachCheck(tuple(entry for entry in nested if entry is not None), nested=True))
    check = _check(rule, each, message, each.path, parser)
    if check is None:
        return None
    scoped = None if isinstance(check, DenyCheck) else replace(check, scoped=True)
    return ForeachEntry(elements, check, scoped, each.element_scope)
