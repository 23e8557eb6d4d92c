"""Pages for contributors name files, modules and functions that exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    (
        ROOT / "ARCHITECTURE.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs/adr").glob("*.md"),
        *(ROOT / "docs/contributing").glob("*.md"),
    )
)
ROOMS = (ROOT, ROOT / "src/pyverno", ROOT / "src")
WALKS = 4
STOPS = 10

_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_PATH = re.compile(r"`((?:[\w.-]+/)+|(?:[\w.-]+/)+[\w-]+(?:\.\w+)?|[\w-]+\.(?:py|md|toml))`")
_ROW = re.compile(r"\| `([\w/]+/)` \|")
_STOP = re.compile(r"^\| (\d+) \| `([\w/]+\.py)` \| `([\w.]+)` \|", re.MULTILINE)
_PLACEHOLDER = re.compile(r"[A-Z]{3,}")
_MADE_BY_TARGETS = ("build",)
_OLD_NAMES = ("0017-the-second-plan.md",)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_that_a_page_names_exist(page: Path) -> None:
    """A file or folder in code type is found from the root of the repository or of the package."""
    missing = [
        path
        for room, path in _paths(page)
        if not any((base / path).exists() for base in (*ROOMS, *(each / room for each in ROOMS)))
    ]
    assert [] == missing


def test_every_stop_of_a_walk_is_a_function_that_its_file_defines() -> None:
    """ARCHITECTURE's walks have at most ten stops each, numbered from one, and each can be opened."""
    stops = _STOP.findall((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    numbers = [int(number) for number, _, _ in stops]
    starts = [position for position, number in enumerate(numbers) if number == 1]
    walks = [numbers[start:end] for start, end in zip(starts, [*starts, len(numbers)][1:], strict=True)]
    assert WALKS == len(walks)
    assert [] == [walk for walk in walks if walk != list(range(1, len(walk) + 1)) or len(walk) > STOPS]
    assert [] == [(file, name) for _, file, name in stops if name not in _defined(ROOT / "src/pyverno" / file)]


def _paths(page: Path) -> list[tuple[str, str]]:
    """Return the paths in code type on a page, each with the folder that its row of a table is for.

    Placeholders, products of targets and names of the past are left out.
    """
    found = []
    for line in _FENCE.sub("", page.read_text(encoding="utf-8")).splitlines():
        if page.name in _OLD_NAMES and line.startswith("| "):
            continue
        row = _ROW.match(line)
        found += [
            (row[1] if row else "", path)
            for path in _PATH.findall(line)
            if not _PLACEHOLDER.search(path) and not path.startswith(_MADE_BY_TARGETS)
        ]
    return found


@cache
def _defined(file: Path) -> frozenset[str]:
    """Return the functions, classes and methods of a module, methods as `Class.method`."""
    names = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names.update(
                f"{node.name}.{part.name}"
                for part in node.body
                if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)
            )
    return frozenset(names)
