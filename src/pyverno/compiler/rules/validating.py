"""Lowering of `validate` blocks to actions; each form has its own module, imported when a rule has that form."""

from __future__ import annotations

from collections.abc import Iterator

from pyverno.compiler.parser import Parser
from pyverno.compiler.rules.checks import lower_check
from pyverno.engine.actions.unavailable import Unavailable
from pyverno.engine.rule import Action
from pyverno.errors import PyvernoError
from pyverno.kube.json import JSON
from pyverno.lang.template.syntax import VARIABLE
from pyverno.lazyregex import regex
from pyverno.policy.rule import Rule
from pyverno.policy.validate import Validate

__all__ = ["excuses_updates", "lower_validate"]

_EXPRESSIONS = ("jmesPath", "list")
"""Fields whose text is an expression as a whole."""

# the whole request contains the user; `.serviceAccountName` is a field of an object
_USER = regex(
    r"userInfo|(?:^|[^.\w\"])serviceAccountName|\brequest\b(?!\s*\.\s*[\w\"])|\brequest\s*\.\s*\"?(?:roles|clusterRoles|options|dryRun)\b"
)


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


def excuses_updates(rule: Rule, *, background: bool) -> bool:
    """Return whether an update may pass because the object failed the rule before.

    A rule that fails because of the user fails for the old object as well: that is no existing violation, and it
    would excuse every update of what only some users may change. Only rules without `background` know the user.
    """
    validate = rule.action
    if not isinstance(validate, Validate) or not validate.allow_existing_violations:
        return False
    # Kyverno: rules in CEL and those of signed manifests are not evaluated again on the old object
    if validate.cel is not None or validate.manifests is not None:
        return False
    return background or not any(_USER.search(text) for text in _expressions([rule.raw.get("context"), validate.raw]))


def _expressions(value: JSON) -> Iterator[str]:
    """Yield the texts of variables and expressions of a document, except those of messages; does not recurse."""
    pending: list[tuple[str, JSON]] = [("", value)]
    while pending:
        key, current = pending.pop()
        if isinstance(current, dict):
            for name, member in current.items():
                pending += (("", name), (name, member))
        elif isinstance(current, list):
            pending.extend((key, each) for each in current)
        elif isinstance(current, str) and key in _EXPRESSIONS:
            yield current
        elif isinstance(current, str) and key != "message" and "{{" in current:
            yield from (found.group(2) for found in VARIABLE.finditer(current))
