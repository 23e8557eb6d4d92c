"""Table `match_pattern`: a pattern against a resource: status, or the path of the first violation."""

from __future__ import annotations

from typing import Any

from pyverno.lang.pattern.outcome import path_text
from pyverno.lang.pattern.validate import compile_pattern
from pyverno.lang.template import resolve_references
from tests.conformance.outcome import Claim, NotRun


def claim(row: dict[str, Any]) -> Claim:
    """Judge one row; upstream itself checks a status only where the row states one."""
    pattern = row["pattern"]
    if row.get("substitute_references_first"):
        pattern = resolve_references(pattern)
    compiled = compile_pattern(pattern)
    if "status" in row:
        if not row.get("asserted", True):
            raise NotRun("the row says that upstream does not check its status")
        return Claim(row["status"], compiled.match(row["resource"]).status.value)
    problem = compiled.compile()(row["resource"], (), {})
    got = {"ok": problem is None}
    expected = {"ok": row["ok"]}
    if "path" in row:
        place = problem.path if problem is not None else None
        got["path"] = "" if place is None else path_text(place)
        expected["path"] = row["path"]
    return Claim(expected, got)
