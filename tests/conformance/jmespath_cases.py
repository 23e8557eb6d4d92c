"""Bucket `jmespath`: the specification's cases and those of Kyverno's fork.

In the specification's files a missing key is null, as in the fork's own run of them. Rows of a fork file mark a
missing key by `"error": "not-found"`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyverno.errors import ExpressionError, UnknownKeyError
from pyverno.kube.json import decode
from pyverno.lang.jmespath import compile_expression
from pyverno.lang.runtime import Runtime
from tests.conformance.outcome import Case, Claim, NotRun, content_id

__all__ = ["claim", "find"]

_MISSING = {"error": "not-found"}
_ERROR = {"error": "an error"}


def find(root: Path) -> Iterator[Case]:
    """Yield the cases of all files: lists of suites, or objects with rows."""
    for path in sorted((root / "jmespath").glob("*.json")):
        document: Any = decode(path.read_bytes())
        if isinstance(document, dict):
            rows = [{**row, "is_fork": True} for row in document["rows"]]
        else:
            rows = [{**case, "given": suite["given"]} for suite in document for case in suite["cases"]]
        for row in rows:
            yield Case("jmespath", path.stem, content_id(f"jmespath/{path.stem}/{row['expression'][:60]}", row), row)


def claim(case: Case, root: Path) -> Claim:
    """Evaluate the expression; which error it is matters only for missing keys of the fork."""
    row = case.data
    is_fork = row.get("is_fork", False)
    got: Any
    try:
        got = compile_expression(row["expression"]).evaluate(row["given"], Runtime())
    except UnknownKeyError:
        got = _MISSING if is_fork else None
    except ExpressionError:
        got = _ERROR
    if "result" in row:
        return Claim(row["result"], got)
    if "error" in row:
        return Claim(_MISSING if row["error"] == "not-found" else _ERROR, got)
    raise NotRun("the case measures speed only, it expects nothing")
