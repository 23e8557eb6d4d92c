"""Bucket `tables`: rows of unit-test tables; `tables/<name>.py` beside this module reads the table of that name.

An adapter has `claim(row)`, which gives a Claim or raises NotRun. This module only finds the rows.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path

from pyverno.kube.json import decode
from tests.conformance.outcome import Case, Claim, NotRun, content_id

__all__ = ["ELSEWHERE", "claim", "find", "read_rows"]

ELSEWHERE = frozenset({"cli_apply"})
"""Tables whose rows are run by another bucket."""

_TITLES = ("test", "group", "function")
_NAMES = ("name", "description", "expression")


def read_rows(root: Path, name: str) -> Iterator[tuple[str, dict]]:
    """Yield (id, row) of one table; ids come from the content of a row, so they stay when rows come or go."""
    path = root / "tables" / f"{name}.json"
    for row in decode(path.read_bytes())["rows"]:
        words = [str(next((row[key] for key in keys if row.get(key)), "")) for keys in (_TITLES, _NAMES)]
        title = "/".join(word[:60] for word in words if word)
        yield content_id(f"tables/{name}/{title}", row), row


def find(root: Path) -> Iterator[Case]:
    """Yield the rows of all tables."""
    for path in sorted((root / "tables").glob("*.json")):
        if path.stem not in ELSEWHERE:
            for identity, row in read_rows(root, path.stem):
                yield Case("tables", path.stem, identity, row)


def claim(case: Case, root: Path) -> Claim:
    """Judge one row by the adapter of its table."""
    name = f"tests.conformance.tables.{case.part}"
    if not case.part.isidentifier() or importlib.util.find_spec(name) is None:
        raise NotRun("no adapter reads this table")
    return importlib.import_module(name).claim(case.data)
