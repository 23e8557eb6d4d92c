"""Table `jmespath_functions`: expressions, and functions with arguments, to a result or an error."""

from __future__ import annotations

from typing import Any

from pyverno.errors import EvaluationError, PyvernoError
from pyverno.lang.jmespath import FUNCTIONS, compile_expression
from pyverno.lang.runtime import Runtime
from tests.conformance.outcome import Claim, NotRun

_ERROR = "error"


def claim(row: dict[str, Any]) -> Claim:
    """Judge one row."""
    if "expression" not in row and "function" not in row:
        raise NotRun("the row has neither an expression nor a function")
    if row.get("platform", "linux") != "linux":
        raise NotRun(f"holds on {row['platform']} only")
    try:
        if "expression" in row:
            got = compile_expression(row["expression"]).evaluate(row.get("given", ""), Runtime())
        else:
            got = FUNCTIONS[row["function"]].apply(row["args"], Runtime())
    except PyvernoError as error:
        if not row.get("error"):
            return Claim(row.get("result"), f"{_ERROR}: {error.message}")
        wanted = row.get("error_contains", "")
        got = error.detailed if isinstance(error, EvaluationError) else error.message
        return Claim(f"{_ERROR}: {wanted}", f"{_ERROR}: {wanted if wanted in got else got}")
    return Claim(f"{_ERROR}: {row.get('error_contains', '')}" if row.get("error") else row["result"], got)
