"""Table `operators`: a condition's operator on a key and a value that hold no variables any more."""

from __future__ import annotations

from typing import Any

from pyverno.engine.rules.conditions import compile_conditions
from pyverno.lang.pattern.operators import operator
from pyverno.lang.runtime import Runtime
from tests.conformance.outcome import Claim


def claim(row: dict[str, Any]) -> Claim:
    """Judge one row, by the operator itself and as a condition of a rule."""
    check = operator(row["operator"])
    condition = {key: row[key] for key in ("key", "operator", "value")}
    met = compile_conditions([condition]).check({}, Runtime()).met
    alone = check is not None and check(row["key"], row["value"])
    return Claim([row["expect"]] * 2, [alone, met])
