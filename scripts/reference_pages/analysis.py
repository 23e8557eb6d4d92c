"""The page of the analysis: every check of `pyverno analyze` with its documentation."""

from __future__ import annotations

from pyverno.compiler.analysis.registry import CHECKS
from scripts.reference_pages.lints import markdown
from scripts.reference_pages.markdown import anchor, cell, code, page, table

__all__ = ["analysis"]


def analysis() -> str:
    """Return all checks: a table, then one section for each."""
    titles = {check.code: f"{check.code} {check.name}" for check in CHECKS}
    rows = [
        (
            f"[{check.code}](#{anchor(titles[check.code])})",
            code(check.name),
            str(check.severity),
            cell(check.documentation.partition("\n")[0]),
        )
        for check in CHECKS
    ]
    sections = [f"## {titles[check.code]}\n\n{markdown(check.documentation)}" for check in CHECKS]
    return page(
        "Analysis",
        "What `pyverno analyze` finds about policies that are used together. A code is `PA` and three digits, the "
        "first of which is the topic: 1 rules that work against each other, 2 rules that add nothing, 3 rules that "
        "set themselves off, 4 documents without effect. `--select` and `--ignore` take codes or their beginnings.",
        table(("code", "name", "severity", "finds"), rows),
        *sections,
    )
