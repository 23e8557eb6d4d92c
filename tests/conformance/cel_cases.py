"""Bucket `cel`: the tests of cel-spec, judged by `tests.conformance.cel`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from tests.conformance import cel
from tests.conformance.outcome import Case, Claim, NotRun

__all__ = ["claim", "find"]


def find(root: Path) -> Iterator[Case]:
    """Yield the tests of all files."""
    for path in sorted((root / "cel").glob("*.json")):
        for test in json.loads(path.read_text())["tests"]:
            yield Case("cel", path.stem, f"cel/{path.stem}/{test['section']}/{test['name']}", test)


def claim(case: Case, root: Path) -> Claim:
    """Judge one test."""
    reason = cel.SKIPPED.get(case.data.get("proto", ""))
    if reason:
        raise NotRun(reason)
    problem = cel._problem(case.data)
    return Claim(case.data["expect"], problem if problem else case.data["expect"])
