"""The table of checks of the analysis. A code is `PA` and three digits; the first digit is the topic.

    PA1  rules that work against each other       PA2  rules that add nothing
    PA3  rules that set themselves off            PA4  documents without effect

To add a check, write its module and its row here.
"""

from __future__ import annotations

from pyverno.compiler.analysis.finding import Check, CheckModule
from pyverno.compiler.lints.lint import Severity

__all__ = ["CHECKS", "find_check"]


def _conflicting_rules() -> CheckModule:
    from pyverno.compiler.analysis.checks import conflicting_rules

    return conflicting_rules


def _refused_mutation() -> CheckModule:
    from pyverno.compiler.analysis.checks import refused_mutation

    return refused_mutation


def _opposing_mutations() -> CheckModule:
    from pyverno.compiler.analysis.checks import opposing_mutations

    return opposing_mutations


def _unsettled_mutation() -> CheckModule:
    from pyverno.compiler.analysis.checks import unsettled_mutation

    return unsettled_mutation


def _duplicate_rule() -> CheckModule:
    from pyverno.compiler.analysis.checks import duplicate_rule

    return duplicate_rule


def _shadowed_rule() -> CheckModule:
    from pyverno.compiler.analysis.checks import shadowed_rule

    return shadowed_rule


def _loop() -> CheckModule:
    from pyverno.compiler.analysis.checks import loop

    return loop


def _unused_exception() -> CheckModule:
    from pyverno.compiler.analysis.checks import unused_exception

    return unused_exception


def _unmatched_policy() -> CheckModule:
    from pyverno.compiler.analysis.checks import unmatched_policy

    return unmatched_policy


CHECKS: tuple[Check, ...] = (
    Check("PA101", "conflicting-rules", Severity.ERROR, _conflicting_rules),
    Check("PA102", "refused-mutation", Severity.ERROR, _refused_mutation),
    Check("PA103", "opposing-mutations", Severity.ERROR, _opposing_mutations),
    Check("PA104", "unsettled-mutation", Severity.WARNING, _unsettled_mutation),
    Check("PA201", "duplicate-rule", Severity.WARNING, _duplicate_rule),
    Check("PA202", "shadowed-rule", Severity.WARNING, _shadowed_rule),
    Check("PA301", "loop", Severity.ERROR, _loop),
    Check("PA401", "unused-exception", Severity.WARNING, _unused_exception),
    Check("PA402", "unmatched-policy", Severity.WARNING, _unmatched_policy),
)
"""Every check, in the order of the codes."""


def find_check(word: str) -> Check | None:
    """Return the check of a code or name, None where there is none.

    >>> find_check("pa101").name, find_check("loop").code
    ('conflicting-rules', 'PA301')
    """
    return next((check for check in CHECKS if word.casefold() in (check.code.casefold(), check.name)), None)
