"""Tests of `migration.patterns.leaves`."""

from __future__ import annotations

import pytest

from pyverno.compiler.migration.outcome import UnconvertibleError
from pyverno.compiler.migration.patterns.leaves import leaf_test
from pyverno.compiler.migration.schema import Shape
from pyverno.compiler.migration.text import Cel
from pyverno.kube.json import JSON
from pyverno.lang.cel import types
from pyverno.lang.cel.presets import kubernetes_environment
from pyverno.lang.pattern.leaf import compile_leaf

CEL = kubernetes_environment().with_variables({"x": types.DYN})
VALUES: dict[Shape, list[JSON]] = {
    Shape.STRING: [
        "",
        "a",
        "web",
        "nginx:latest",
        "5",
        "5.0",
        "10m",
        "600s",
        "1Gi",
        "1h30m",
        "true",
        "1-10",
        "0",
        "-3",
    ],
    Shape.INT: [-3, 0, 1, 5, 10, 80, 443, 8080],
    Shape.BOOL: [True, False],
    Shape.QUANTITY: ["0", "100m", "500m", "1", "1Gi", "1024Mi", "2Gi"],
    Shape.INT_OR_STRING: [0, 5, 80, "80", "web", "50%", ""],
}
PATTERNS: list[JSON] = [
    *("a", "?*", "*", "web | a", "!web", "!*:latest & !a", "n?*x*", "5", "!5", ">5", "<=10m", ">=1Gi", "1-10", "1!-10"),
    *("0", "!0", "true", "!true", "tr*", "8*", "0.5", "<1h", "80 | web", "", 5, 0, True, False, None),
]


@pytest.mark.parametrize("shape", VALUES)
def test_leaves_decide_as_the_engine_does(shape: Shape) -> None:
    """Every pattern on every value of a type, unless it is refused."""
    differing, judged = [], 0
    for pattern in PATTERNS:
        leaf = compile_leaf(pattern)
        try:
            program = CEL.compile(leaf_test(pattern, shape, "p").test(Cel("x")).text)
        except UnconvertibleError:
            continue
        for value in VALUES[shape]:
            judged += 1
            if program.evaluate({"x": value}) is not leaf(value):
                differing.append((pattern, value))
    assert [] == differing
    assert judged > 40


def test_a_missing_value_counts_as_null() -> None:
    """Null is 0 for numbers and quantities, and no text."""
    verdicts = {
        pattern: leaf_test(pattern, shape, "p").accepts_missing
        for pattern, shape in (
            (">=2", Shape.INT),
            ("<=1Gi", Shape.QUANTITY),
            ("?*", Shape.STRING),
            ("!a", Shape.STRING),
        )
    }
    assert {">=2": False, "<=1Gi": True, "?*": False, "!a": False} == verdicts
