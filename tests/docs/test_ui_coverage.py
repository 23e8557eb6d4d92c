"""The table of what the web interface covers: counts agree, and every evidence exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from aiohttp import web

from pyverno.ui.server.namespaces import NamespaceRoutes
from pyverno.ui.server.policyreporter import PolicyReporterRoutes
from pyverno.ui.server.targets import TargetRoutes

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "contributing" / "ui-coverage.md").read_text(encoding="utf-8")


def rows() -> Iterator[tuple[str, str, str]]:
    """Yield what, state and evidence of every row."""
    for line in TEXT.splitlines():
        cells = [each.strip() for each in line.strip("|").split(" | ")]
        if line.startswith("| ") and len(cells) == 3 and cells[0] != "what":
            yield cells[0], cells[1], cells[2]


@cache
def find_names(path: str) -> frozenset[str]:
    """Return the names of the tests in a file."""
    body = ast.parse((ROOT / path).read_text(encoding="utf-8")).body
    return frozenset(each.name for each in body if isinstance(each, ast.FunctionDef))


@cache
def routes() -> frozenset[str]:
    """Return the routes of Policy Reporter's API."""
    found: list[web.RouteDef] = []
    for part in (PolicyReporterRoutes, TargetRoutes, NamespaceRoutes):
        found += part(None).routes() if part is not TargetRoutes else TargetRoutes(()).routes()  # type: ignore[arg-type]
    return frozenset(each.path for each in found)


@cache
def pages() -> frozenset[str]:
    """Return the names of the pages."""
    text = (ROOT / "web" / "js" / "app.js").read_text(encoding="utf-8")
    return frozenset(re.findall(r"^  (\w+): \{ title:", text, re.MULTILINE))


def exists(evidence: str) -> bool:
    """Return whether the evidence of a row exists."""
    if evidence.startswith("page:"):
        return evidence.removeprefix("page:") in pages()
    if evidence.startswith("/"):
        return evidence in routes()
    path, _, name = evidence.partition("::")
    return (ROOT / path).is_file() and name in find_names(path)


def test_every_row_that_works_has_an_evidence() -> None:
    """A test, a route or a page, by its name."""
    working = [(what, evidence.strip("`")) for what, state, evidence in rows() if state == "works"]
    assert [] == [each for each in working if not exists(each[1])]


def test_every_row_works_or_has_a_reason() -> None:
    """No third state, and no row twice."""
    found = [*rows()]
    assert {"works", "left out"} == {state for _, state, _ in found}
    assert [] == [what for what, state, reason in found if state == "left out" and len(reason) < 10]
    assert len(found) == len({what for what, _, _ in found})


def test_the_counts_at_the_top_are_those_of_the_rows() -> None:
    """And at least 95 of 100 rows work."""
    counts = [state for _, state, _ in rows()]
    works = counts.count("works")
    assert works >= 0.95 * len(counts)
    share = 100 * works // len(counts)
    assert f"{works} of {len(counts)} work ({share} %), {len(counts) - works} are left out" in " ".join(TEXT.split())
