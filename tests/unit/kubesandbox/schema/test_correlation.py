"""Tests of `schema.correlation`."""

from __future__ import annotations

from kubesandbox.schema.correlation import UNRELATED, related_field, related_items

MAP = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"]}


def test_elements_of_a_map_are_related_by_all_keys() -> None:
    """Their position in the old list does not matter."""
    old = [{"a": 1, "b": 1, "v": 1}, {"a": 1, "b": 2, "v": 2}]
    found = related_items(MAP, [{"a": 1, "b": 2}, {"a": 2, "b": 1}], old)
    assert [old[1], UNRELATED] == found


def test_other_elements_are_related_to_nothing() -> None:
    """Elements of sets, and elements without an old list, have no counterpart."""
    assert [UNRELATED] == related_items({"x-kubernetes-list-type": "set"}, ["a"], ["a"])
    assert [UNRELATED] == related_items(MAP, [{"a": 1}], None)
    assert UNRELATED is related_field(None, "a")
