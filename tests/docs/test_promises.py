"""The page about security promises what tests hold: every promise is a row of a table that names its tests."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "guide" / "security.md"
TABLE: Final = ROOT / "docs" / "contributing" / "security-promises.tsv"
HEADER: Final = ("promise", "test")
SECTIONS: Final = (
    "What the judged tree can do",
    "What a request can do",
    "What is stored",
    "Rights",
    "Names",
    "Images",
    "All parts of an object",
    "What you install",
)
"""Headings whose paragraphs and items all hold a promise."""


def rows() -> tuple[tuple[str, ...], ...]:
    """Return the rows of the table, its header first."""
    return tuple(tuple(line.split("\t")) for line in TABLE.read_text(encoding="utf-8").splitlines())


def plain(text: str) -> str:
    """Return a text with single blanks, as a reader sees it.

    >>> plain("one\\n  two")
    'one two'
    """
    return " ".join(text.split())


def blocks(page: str, section: str) -> Iterator[str]:
    """Yield the paragraphs and the items of lists of a section, up to the next heading of any level."""
    found = re.search(rf"^## {re.escape(section)}\n(.*?)(?=^#+ |\Z)", page, re.MULTILINE | re.DOTALL)
    for block in re.split(r"\n\n|\n(?=- )", found[1] if found else ""):
        if block.strip():
            yield plain(block)


@cache
def _functions(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text(encoding="utf-8")) if path.is_file() else ast.Module([], [])
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def test_every_promise_is_in_the_page() -> None:
    """A sentence that was changed in the page is changed in the table, after a look at its tests."""
    header, *promises = rows()
    assert HEADER == header
    page = plain(PAGE.read_text(encoding="utf-8"))
    assert [] == [row[0] for row in promises if row[0] not in page]
    assert len(promises) == len(set(promises))


def test_every_promise_has_a_test_that_exists() -> None:
    """A test that was renamed or removed leaves no promise behind."""
    missing = []
    for promise, test in rows()[1:]:
        path, _, name = test.partition("::")
        if not name.startswith("test_") or name not in _functions(ROOT / path):
            missing.append((promise, test))
    assert [] == missing


def test_nothing_is_promised_without_a_test() -> None:
    """Each paragraph and each item of these sections holds at least one sentence of the table."""
    page = PAGE.read_text(encoding="utf-8")
    promises = {row[0] for row in rows()[1:]}
    assert [] == [section for section in SECTIONS if not [*blocks(page, section)]]
    assert [] == [
        block
        for section in SECTIONS
        for block in blocks(page, section)
        if not any(promise in block for promise in promises)
    ]


def test_a_block_without_a_promise_is_found() -> None:
    """The check itself: paragraphs and items are separate, and a section ends at the next heading."""
    page = "## Names\n\nOne\nmore.\n\n- Two.\n- Three\n  more.\n\n### Four\n\nFive.\n"
    assert ["One more.", "- Two.", "- Three more."] == [*blocks(page, "Names")]
