"""Go values of rows become the JSON that they stand for."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.tables.go_structs import as_json


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"Name": "a", "$type": "kyvernov1.Rule"}, {"name": "a"}),
        ({"MatchResources": {"Kinds": ["Pod"], "$type": "m"}, "$type": "r"}, {"match": {"kinds": ["Pod"]}}),
        ({"Raw": '{"a": 1}', "$type": "apiextv1.JSON"}, {"a": 1}),
        ({"$type": "t", "$items": [1, 2]}, [1, 2]),
        ({"Plain": 1}, {"Plain": 1}),
        ({"Empty": [], "Zero": 0, "$type": "t"}, {"zero": 0}),
    ],
)
def test_structs_become_json(value: Any, expected: Any) -> None:
    """Field names turn into JSON names where a type is given; empty values that Go leaves out are left out."""
    assert expected == as_json(value)
