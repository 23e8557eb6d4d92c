"""The table of lints. A code is `PV` and three digits; the first digit is the topic.

    PV0  documents that are no valid policies       PV1  kinds, resources, fields and policies
    PV2  variables and functions                    PV3  patterns
    PV4  logic

To add a lint, write its module and its row here.
"""

from __future__ import annotations

from pyverno.compiler.lints.lint import CheckModule, Lint, Severity

__all__ = ["INVALID", "LINTS", "UNREADABLE", "find_lint"]

UNREADABLE = "PV001"
"""The code of files that are not YAML."""

INVALID = "PV002"
"""The code of documents that are no valid policies."""


def _unknown_kind() -> CheckModule:
    from pyverno.compiler.lints.checks import unknown_kind

    return unknown_kind


def _unknown_resource() -> CheckModule:
    from pyverno.compiler.lints.checks import unknown_resource

    return unknown_resource


def _unknown_policy() -> CheckModule:
    from pyverno.compiler.lints.checks import unknown_policy

    return unknown_policy


def _unknown_field() -> CheckModule:
    from pyverno.compiler.lints.checks import unknown_field

    return unknown_field


def _unknown_cel_field() -> CheckModule:
    from pyverno.compiler.lints.checks import unknown_cel_field

    return unknown_cel_field


def _wrong_shape() -> CheckModule:
    from pyverno.compiler.lints.checks import wrong_shape

    return wrong_shape


def _unseen_subresource() -> CheckModule:
    from pyverno.compiler.lints.checks import unseen_subresource

    return unseen_subresource


def _unclosed_variable() -> CheckModule:
    from pyverno.compiler.lints.checks import unclosed_variable

    return unclosed_variable


def _unknown_function() -> CheckModule:
    from pyverno.compiler.lints.checks import unknown_function

    return unknown_function


def _malformed_anchor() -> CheckModule:
    from pyverno.compiler.lints.checks import malformed_anchor

    return malformed_anchor


def _literal_operator() -> CheckModule:
    from pyverno.compiler.lints.checks import literal_operator

    return literal_operator


def _incomparable_bound() -> CheckModule:
    from pyverno.compiler.lints.checks import incomparable_bound

    return incomparable_bound


def _never_matches() -> CheckModule:
    from pyverno.compiler.lints.checks import never_matches

    return never_matches


def _constant_condition() -> CheckModule:
    from pyverno.compiler.lints.checks import constant_condition

    return constant_condition


def _shadowed_rule() -> CheckModule:
    from pyverno.compiler.lints.checks import shadowed_rule

    return shadowed_rule


def _contradicting_rules() -> CheckModule:
    from pyverno.compiler.lints.checks import contradicting_rules

    return contradicting_rules


_PATTERNS = ("pattern", "Pattern", "patchStrategicMerge")
_NARROWING = ("all:", 'all"', "exclude", "namespaces", "elector")
_WRITTEN_BY_SUBRESOURCES = ("matchConstraints",)
_CEL = ("expression", "Expression")
_EXCEPTIONS = ("PolicyException", "Binding")

LINTS: tuple[Lint, ...] = (
    Lint("PV101", "unknown-kind", Severity.ERROR, _unknown_kind, ("kinds",), is_fixable=True),
    Lint("PV102", "unknown-resource", Severity.ERROR, _unknown_resource, ("esourceRules",), is_fixable=True),
    Lint("PV103", "unknown-policy", Severity.ERROR, _unknown_policy, _EXCEPTIONS),
    Lint("PV104", "unknown-field", Severity.ERROR, _unknown_field, _PATTERNS, is_fixable=True),
    Lint("PV105", "unknown-cel-field", Severity.ERROR, _unknown_cel_field, _CEL),
    Lint("PV106", "wrong-shape", Severity.ERROR, _wrong_shape, _PATTERNS),
    Lint("PV107", "unseen-subresource", Severity.WARNING, _unseen_subresource, _WRITTEN_BY_SUBRESOURCES),
    Lint("PV201", "unclosed-variable", Severity.ERROR, _unclosed_variable, ("{{", "}}")),
    Lint("PV202", "unknown-function", Severity.ERROR, _unknown_function, ("{{", "jmesPath", "list:")),
    Lint("PV301", "malformed-anchor", Severity.ERROR, _malformed_anchor, _PATTERNS, is_fixable=True),
    Lint("PV302", "literal-operator", Severity.WARNING, _literal_operator, (*_PATTERNS, "Equal"), is_fixable=True),
    Lint("PV303", "incomparable-bound", Severity.WARNING, _incomparable_bound, (*_PATTERNS, "Than")),
    Lint("PV401", "never-matches", Severity.WARNING, _never_matches, _NARROWING),
    Lint("PV402", "constant-condition", Severity.WARNING, _constant_condition, ("onditions",), is_fixable=True),
    Lint("PV403", "shadowed-rule", Severity.WARNING, _shadowed_rule, compares=True),
    Lint("PV404", "contradicting-rules", Severity.WARNING, _contradicting_rules, _PATTERNS, compares=True),
)
"""Every lint, in the order of the codes."""


def find_lint(word: str) -> Lint | None:
    """Return the lint of a code or name, None for an unknown one.

    >>> find_lint("pv101").name, find_lint("unknown-kind").code
    ('unknown-kind', 'PV101')
    """
    return next((lint for lint in LINTS if word.casefold() in (lint.code.casefold(), lint.name)), None)
