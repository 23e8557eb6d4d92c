"""Report bugs in rules on stderr: names and lines for a bug report, never values."""

from __future__ import annotations

from collections.abc import Iterable

from pyverno.cli.errors import report_warning
from pyverno.engine.result import Fault, RuleResult

__all__ = ["report_faults"]


def report_faults(results: Iterable[RuleResult]) -> None:
    """Write the rules that ended with a bug and its location; their results are errors already."""
    for result in results:
        fault = result.detail
        if type(fault) is Fault:
            where = f" in {fault.trace[-1]}" if fault.trace else ""
            rule = f"{result.rule.policy.key}/{result.rule.name}"
            report_warning(f"rule `{rule}` ended with a bug ({fault.code}): {fault.error}{where}")
