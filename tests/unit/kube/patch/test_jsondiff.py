"""JSON patches created from two values."""

from __future__ import annotations

from typing import Any

from pyverno.kube.json import JSON, equal
from pyverno.kube.patch.jsondiff import create_patch
from pyverno.kube.patch.jsonpatch import apply_patch

Op = dict[str, Any]


def op(kind: str, path: str, **rest: Any) -> Op:
    return {"op": kind, "path": path, **{name.rstrip("_"): value for name, value in rest.items()}}


def test_created_operations_and_their_order() -> None:
    """Keys in sorted order, list tails removed from the end or appended, removed keys last."""
    before = {"z": 1, "keep": {"same": 1}, "l": [1, 2, 3], "m": [{"a": 1}], "t": 1, "gone/x": 0, "f": 1}
    after = {"b": None, "keep": {"same": 1}, "l": [9], "m": [{"a": 2}, 5], "t": True, "z": [1], "f": 1.0}
    expected = [
        op("add", "/b", value=None),
        op("remove", "/l/2"),
        op("remove", "/l/1"),
        op("replace", "/l/0", value=9),
        op("add", "/m/1", value=5),
        op("replace", "/m/0/a", value=2),
        op("replace", "/t", value=True),
        op("replace", "/z", value=[1]),
        op("remove", "/gone~1x"),
    ]
    assert expected == create_patch(before, after)
    assert [] == create_patch(before, dict(before))
    assert [op("replace", "", value=[])] == create_patch({}, [])


def test_a_value_below_a_very_long_path_is_replaced_as_a_whole() -> None:
    """The texts of paths do not outgrow the values, however deep and wide they are."""

    def deep(value: int) -> JSON:
        document: JSON = {}
        for level in range(2000):
            document = {"next": document, "value": value + level}
        return document

    before, after = deep(0), deep(1)
    operations = create_patch(before, after)
    assert equal(after, apply_patch(before, operations))
    assert max(len(operation["path"]) for operation in operations) < 600
