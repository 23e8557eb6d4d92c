"""JSON Merge Patch: the RFC's own examples, and patches that are created."""

from __future__ import annotations

import pytest

from pyverno.kube.patch.mergepatch import apply_merge_patch, create_merge_patch

RFC = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("document", "patch", "expected"), RFC)
def test_patch_applies_as_in_the_rfc(document: object, patch: object, expected: object) -> None:
    """The examples of RFC 7396, appendix A."""
    assert expected == apply_merge_patch(document, patch)


def test_created_patch_names_only_differences() -> None:
    """Equal parts, also numbers of equal value, stay out."""
    before = {"a": 1, "b": {"c": 1, "d": {"e": 1}}, "l": [1], "t": True}
    after = {"b": {"c": 1.0, "d": {"e": 1}, "f": {}}, "l": [1, 2], "t": 1}
    assert {"a": None, "b": {"f": {}}, "l": [1, 2], "t": 1} == create_merge_patch(before, after)
    assert {} == create_merge_patch(before, dict(before))
    assert 5 == create_merge_patch(before, 5)


def test_untouched_parts_are_shared() -> None:
    """The result holds the same objects where nothing changes."""
    document = {"a": {"b": 1}, "c": {"d": 1}}
    assert apply_merge_patch(document, {"c": {"d": 2}})["a"] is document["a"]
    assert {"a": {"b": 1}, "c": {"d": 1}} == document
