"""Every row of the register has a test, or a reason why it has none."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.security.register import NOT_APPLICABLE, REGISTER

TESTS = Path(__file__).parents[1]
IDS = {each for section in REGISTER.values() for each in section}
_ID = re.compile(r"CVE-\d{4}-\d{4,}|GHSA-[0-9a-z]{4}|\b[0-9a-f]{8}\b")


def named(source: str) -> Iterator[str]:
    """Yield the ids that the docstrings of test functions name, and those in the names of the functions."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield from _ID.findall(ast.get_docstring(node) or "")
            yield from (each.upper().replace("_", "-") for each in re.findall(r"cve_\d{4}_\d{4,}", node.name))


def in_tests() -> set[str]:
    """Return the ids that tests name."""
    return {each for path in TESTS.rglob("test_*.py") for each in named(path.read_text(encoding="utf-8"))}


def test_every_row_has_a_test_or_a_reason() -> None:
    """No row is in both tables: a row with a test needs no reason."""
    covered = in_tests()
    assert [] == sorted(IDS - covered - NOT_APPLICABLE.keys())
    assert [] == sorted(covered & NOT_APPLICABLE.keys())
    assert [] == sorted(NOT_APPLICABLE.keys() - IDS)


def test_the_page_names_every_row() -> None:
    """The README beside this file must list the same rows as the register."""
    page = (Path(__file__).parent / "README.md").read_text(encoding="utf-8")
    assert [] == sorted(each for each in IDS if each not in page)


def test_ids_are_found_where_they_stand() -> None:
    """The check itself: docstrings and names of tests count, comments and other functions do not."""
    source = (
        'def test_a():\n    """CVE-2020-0001, GHSA-ab12."""\n'
        "def test_cve_2020_0002():\n    pass  # CVE-2020-0003\n"
        'def helper():\n    """0b4d37bd."""\n'
    )
    assert {"CVE-2020-0001", "GHSA-ab12", "CVE-2020-0002"} == set(named(source))
