"""The few Markdown forms that the pages use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

__all__ = ["anchor", "cell", "code", "page", "table"]

_HEAD = "<!-- Made by `make docs` from the code; do not edit. -->"


def code(text: str) -> str:
    """Return a text as inline code, also when it holds backticks.

    >>> code("a|b")
    '`a\\\\|b`'
    """
    fence = "``" if "`" in text else "`"
    pad = " " if "`" in text else ""
    return f"{fence}{pad}{text}{pad}{fence}".replace("|", "\\|")


def cell(text: str) -> str:
    """Return a text that may be in a table."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; the cells are Markdown already."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines)


def page(title: str, *blocks: str) -> str:
    """Return a whole page."""
    return "\n\n".join((_HEAD, f"# {title}", *(block.strip("\n") for block in blocks))) + "\n"


def anchor(title: str) -> str:
    """Return the link target of a heading.

    >>> anchor("Pod spec.rules[]")
    'pod-specrules'
    """
    return re.sub(r"[^a-z0-9 _-]", "", title.lower()).replace(" ", "-")
