"""Table `pattern`: a leaf of a pattern against a value."""

from __future__ import annotations

from typing import Any

from pyverno.kube.wildcard import compile_wildcard
from pyverno.lang.pattern.leaf import Operator, _comparison, _text_comparison, compile_leaf, number_text, split_operator
from tests.conformance.outcome import Claim, NotRun

_OPERATORS = {
    "Equal": Operator.EQUAL,
    "NotEqual": Operator.NOT_EQUAL,
    "More": Operator.MORE,
    "MoreEqual": Operator.MORE_EQUAL,
    "Less": Operator.LESS,
    "LessEqual": Operator.LESS_EQUAL,
    "InRange": Operator.IN_RANGE,
    "NotInRange": Operator.NOT_IN_RANGE,
}
_NAMES = {operator: name for name, operator in _OPERATORS.items()}
_FIXED = {"validateNilPattern": None, "validateMapPattern": {}}


def claim(row: dict[str, Any]) -> Claim:
    """Judge one row; functions for one kind of pattern are tested through the single entry point for all kinds."""
    function, expect, value, pattern = row["function"], row["expect"], row.get("value"), row.get("pattern")
    match function:
        case "validateNilPattern" | "validateMapPattern":
            return Claim(expect, compile_leaf(_FIXED[function])(value))
        case "compareString":
            return Claim(expect, _text_comparison(_OPERATORS[row["operator"]], compile_wildcard(pattern))(value))
        case "convertNumberToString":
            return Claim(expect, number_text(value))
        case "GetOperatorFromStringPattern":
            return Claim(expect, _NAMES[split_operator(pattern)[0]])
    if "operator" in row:
        return Claim(expect, _comparison(_OPERATORS[row["operator"]], pattern)(value))
    if "pattern" in row and "value" in row and isinstance(expect, bool):
        return Claim(expect, compile_leaf(pattern)(value))
    raise NotRun(f"no counterpart of {function}")
