"""Run-time cost, as cel-go counts it."""

from dataclasses import replace
from typing import Any

import pytest

from pyverno.lang.cel import STANDARD
from pyverno.lang.cel.presets import kubernetes_environment
from pyverno.lang.cel.runtime.plan import CostRules
from pyverno.lang.cel.types import BYTES, DYN, INT, STRING, list_of, map_of

VARIABLES = {
    "l": list_of(INT), "s": STRING, "t": STRING, "m": map_of(STRING, INT), "x": INT, "b": BYTES, "d": DYN,
}  # fmt: skip
PLAIN = replace(STANDARD, cost_rules=CostRules(folds_constants=False, presence_is_free=False)).with_variables(VARIABLES)
KUBERNETES = kubernetes_environment().with_variables(VARIABLES)
VALUES: dict[str, Any] = {
    "l": [], "s": "a" * 500, "t": "b" * 500, "m": {"key": 1}, "x": 1, "b": b"a" * 500, "d": {"a": {"b": 1}},
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'Hello World!'", 0),
        ("l", 1),
        ("m['key']", 2),
        ("m['ke' + 'y']", 3),
        ("m.key", 2),
        ("has(m.key)", 2),
        ("[1, 2, 3]", 10),
        ("{'a': 1, 'b': 2}", 30),
        ("l.all(x, true)", 2),
        ("[1, 2, 3].all(x, true)", 20),
        ("s.matches('[0-9]')", 103),
        ("'123'.matches('[0-9]')", 2),
        ("true || false", 0),
        ("1 < 2", 1),
        ("2 in [1, 2, 3]", 13),
        ("true ? 1 : 2", 0),
        ("size('123')", 1),
        ("'12345678901234567890' == '123456789012345678901234567890'", 2),
        ("string(b)", 51),
        ("s.contains(t)", 2502),
        ("s.size()", 2),
        ("false ? false : 1 > 3", 1),
        ("(1 > 2 ? 5 : 3) > 1", 2),
        ("(1 > 2 || 2 > 1) == true", 3),
        ("[{'k1': 1}, {'k2': 2}].all(x, true)", 77),
        ("[1, 2, 3, 4, 5].filter(x, x % 2 == 0)", 62),
        ("[1, 2, 3, 4, 5].map(x, x)", 86),
        ("[1, 2, 3, 4, 5].map(x, x).exists(x, x == 5) == true", 118),
        ("[1, 2, 3, 4, 5].map(x, [x, x]).filter(z, z.size() == 2)", 232),
        ("[1, 2, 3].all(i, i in [1, 2, 3].map(j, j + j))", 86),
    ],
)
def test_costs_are_cel_gos(text: str, expected: int) -> None:
    """Without optimisation every node is charged like cel-go's cost tracker does."""
    assert PLAIN.compile(text).cost(VALUES) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("has(m.key)", 1),
        ("[1, 2, 3]", 0),
        ("x in [1, 2]", 1),
        ("d.?a.?b.orValue(0)", 4),
        ("d.?z.?b.orValue(0)", 2),
        ("s.lowerAscii() == ''", 51),
        ("quantity('1Gi')", 1),
        ("l.sum()", 1),
        ("d == d", 3),
    ],
)
def test_kubernetes_folds_constants_and_gives_presence_for_free(text: str, expected: int) -> None:
    """The rules of Kubernetes' environments."""
    assert KUBERNETES.compile(text).cost(VALUES) == expected
