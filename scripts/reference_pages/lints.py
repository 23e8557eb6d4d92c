"""The page of lints: every check of `pyverno lint` with its documentation."""

from __future__ import annotations

import re

from pyverno.compiler.lints.registry import INVALID, LINTS, UNREADABLE
from scripts.reference_pages.markdown import anchor, cell, code, page, table

__all__ = ["lints", "markdown"]


def lints() -> str:
    """Return all lints: a table, then one section for each."""
    titles = {lint.code: f"{lint.code} {lint.name}" for lint in LINTS}
    rows = [
        (
            f"[{lint.code}](#{anchor(titles[lint.code])})",
            code(lint.name),
            str(lint.severity),
            "yes" if lint.is_fixable else "",
            cell(lint.documentation.partition("\n")[0]),
        )
        for lint in LINTS
    ]
    sections = [f"## {titles[lint.code]}\n\n{markdown(lint.documentation)}" for lint in LINTS]
    return page(
        "Lints",
        "What `pyverno lint` finds, and `pyverno apply` and the policy webhook warn about. A code is `PV` and three "
        "digits, the first of which is the topic: 0 documents, 1 names, 2 variables, 3 patterns, 4 logic. "
        "`--select` and `--ignore` take codes or their beginnings, and `# pyverno: ignore[CODE]` on a line, or on the "
        "line above it, suppresses findings.",
        f"Files that are not YAML have the code `{UNREADABLE}`, documents that are no valid policies `{INVALID}`.",
        table(("code", "name", "severity", "fixable", "finds"), rows),
        *sections,
    )


def markdown(text: str) -> str:
    """Return a docstring as Markdown: indented examples become blocks of code."""
    blocks = re.split(r"::\n\n((?:(?: {4}.*)?\n)*(?: {4}.*)?)", text)
    parts = []
    for number, block in enumerate(blocks):
        if number % 2:
            lines = [line.removeprefix("    ") for line in block.strip("\n").split("\n")]
            parts.append(":\n\n```yaml\n" + "\n".join(lines) + "\n```\n\n")
        else:
            parts.append(block.strip("\n"))
    return "".join(parts)
