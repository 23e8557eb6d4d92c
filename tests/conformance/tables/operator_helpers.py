"""Table `operator_helpers`: names of operators, durations of both sides, membership."""

from __future__ import annotations

from typing import Any

from pyverno.lang.pattern.operators import OPERATORS, operator
from pyverno.lang.pattern.operators_values import pair_durations
from tests.conformance.outcome import Claim, NotRun


def claim(row: dict[str, Any]) -> Claim:
    """Judge one row; membership helpers are tested through the operators that use them."""
    test = row["test"].split("_")[0]
    if test == "TestParseDuration":
        keys = [_nanoseconds(row[key]) for key in ("expectedKey", "expectedValue") if key in row]
        return Claim(keys or None, pair_durations(row["key"], row["value"]))
    if "operator" in row:
        known = OPERATORS.get(row["operator"])
        alternatives = list(known.alternatives) if known is not None else []
        facts = {
            "TestGetDeprecatedOperatorAlternative": alternatives,
            "TestIsOperatorValid": known is not None,
            "TestIsOperatorDeprecated": bool(alternatives),
        }
        if test in facts:
            return Claim(row["expected"], facts[test])
    if "key" in row and ("expected" in row or "expectKeyExist" in row):
        is_negated = row.get("notIn", test == "TestIsNotIn")
        check = operator("NotIn" if is_negated else "In")
        expected = row.get("expected", row.get("expectKeyExist"))
        return Claim(expected, check is not None and check(row["key"], row["value"]))
    raise NotRun(f"no counterpart of {row['test']}")


def _nanoseconds(value: Any) -> Any:
    return value["$durationSeconds"] * 10**9 if isinstance(value, dict) else value
