"""The page of JMESPath functions."""

from __future__ import annotations

from pyverno.lang.jmespath import FUNCTIONS
from pyverno.lang.jmespath.function import Function
from scripts.reference_pages.markdown import anchor, cell, code, page, table

__all__ = ["functions"]

_INTRO = """\
Expressions are JMESPath as Kyverno's fork reads it: a missing key of a map is an error rather than null (write
`a.b || 'default'` or `not_null(...)` where a key may be missing), there is arithmetic (`+ - * / %`) and there are the
functions below. Try one with `pyverno jp query`; `pyverno jp function NAME` prints its signature."""


def functions() -> str:
    """Return one section per function: signature, note, documentation and examples."""
    own = sorted((each for each in FUNCTIONS.values() if not each.standard), key=lambda each: each.name)
    standard = sorted((each for each in FUNCTIONS.values() if each.standard), key=lambda each: each.name)
    blocks = [_INTRO, f"{len(own)} functions are Kyverno's own, {len(standard)} are JMESPath's."]
    for title, group in (("Kyverno's functions", own), ("JMESPath's functions", standard)):
        blocks += [f"## {title}", table(("function", "what it does"), map(_row, group))]
        blocks += [_section(each) for each in group]
    return page("JMESPath functions", *blocks)


def _row(each: Function) -> tuple[str, str]:
    first = each.documentation.splitlines()[0] if each.documentation else ""
    return f"[{code(each.name)}](#{anchor(each.name)})", cell(each.note or first)


def _section(each: Function) -> str:
    prose = "\n".join(_without_examples(each.documentation)).strip()
    parts = [f"### {each.name}", f"```\n{each.signature}\n```", prose]
    if each.examples:
        shown = "\n".join(f"{expression}\n  => {result}" for expression, result in each.examples)
        parts.append(f"```\n{shown}\n```")
    return "\n\n".join(part for part in parts if part)


def _without_examples(documentation: str) -> list[str]:
    lines: list[str] = []
    is_result = False
    for line in documentation.splitlines():
        if line.startswith(">>> "):
            is_result = True
        elif is_result:
            is_result = False
        else:
            lines.append(line)
    return lines
