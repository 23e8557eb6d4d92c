"""Lowering of `validate` blocks to actions; each form has its own module, imported when a rule has that form."""

from __future__ import annotations

from pyverno.compiler.parser import Parser
from pyverno.compiler.rules.checks import lower_check
from pyverno.engine.actions.unavailable import Unavailable
from pyverno.engine.rule import Action
from pyverno.errors import PyvernoError
from pyverno.policy.rule import Rule
from pyverno.policy.validate import Validate

__all__ = ["lower_validate"]


class NothingToCheck:
    """A rule without a check: no result."""

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
        from pyverno.compiler.rules.manifests import lower_manifests

        return lower_manifests(validate, parser)
    if validate.pod_security is not None:
        return _pod_security(rule, validate, parser)
    if validate.cel is not None:
        from pyverno.compiler.cel.admissionpolicy import lower_cel_rule

        return lower_cel_rule(rule, validate, parser)
    check = lower_check(rule, validate, message, validate.path, parser)
    if check is not None:
        return check
    if validate.foreach:
        from pyverno.compiler.rules.foreach import lower_foreach

        return lower_foreach(rule, validate.foreach, message, parser)
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
