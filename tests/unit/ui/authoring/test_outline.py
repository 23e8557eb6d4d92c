"""Outlines of unfinished texts."""

from __future__ import annotations

import pytest

from pyverno.ui.authoring.outline import Spot, find_spot, read_outline, select_document


def spot(text: str) -> Spot:
    """Return what surrounds the mark `^` of a text."""
    offset = text.index("^")
    line = text[:offset].count("\n") + 1
    lines, index = select_document(text.replace("^", ""), line)
    return find_spot(lines, index, len(text[:offset].rpartition("\n")[2]))


def without_lines(found: Spot) -> tuple[tuple[str, ...], str, bool]:
    """Return the path with `[]` for items, the text before the cursor, and whether it is a key."""
    return tuple("[]" if isinstance(step, int) else step for step in found.path), found.before, found.is_key


@pytest.mark.parametrize(
    ("text", "path", "before", "is_key"),
    [
        ("^", (), "", True),
        ("ki^", (), "ki", True),
        ("kind: Po^", ("kind",), "Po", False),
        ("spec:\n  ^", ("spec",), "", True),
        ("spec:\n  a: 1\n^", (), "", True),
        ("a:\n- b:\n    c: 1\n  ^", ("a", "[]"), "", True),
        ("a:\n  - b: 1\n  - ^", ("a", "[]"), "", True),
        ("a:\n- x\n- y^", ("a", "[]"), "y", True),
        ("a:\n  b: |\n    one\n    two^\n  c: 1", ("a", "b"), "    one\n    two", False),
        ("a:\n  b: |\n    one\n  ^", ("a",), "", True),
        ("a:\n- |\n  text^", ("a", "[]"), "  text", False),
        ("a: {b: ^", ("a",), "{b: ", False),
        ("first: 1\n---\nsecond: ^\n---\nthird: 1", ("second",), "", False),
        ("'q: x': ^", ("q: x",), "", False),
        ("# note\na: 1 # b:\n^", (), "", True),
    ],
)
def test_a_cursor_knows_its_path(text: str, path: tuple[str, ...], before: str, is_key: bool) -> None:
    """Unfinished YAML around the cursor does not matter."""
    assert (path, before, is_key) == without_lines(spot(text))


def test_siblings_are_the_other_keys_of_the_mapping() -> None:
    """Keys of other list items are not siblings."""
    assert {"name", "image"} == spot("c:\n- name: a\n  ^\n  image: b\n- ports: []").siblings


def test_an_outline_names_every_key_in_order() -> None:
    """Each key has its line."""
    lines = ["a:", "  - b: 1", "    c: |", "      d: 2", "e: 3"]
    assert [("a", 0), ("b", 1), ("c", 2), ("e", 4)] == [
        (entry.path[-1], entry.line) for entry in read_outline(lines) if isinstance(entry.path[-1], str)
    ]


@pytest.mark.parametrize("count", [100, 10_000])
def test_a_line_of_dashes_opens_few_lists(count: int) -> None:
    """Each list has a path of its own: a line of thousands of dashes would fill the memory."""
    lines = ["- " * count + "a: b", "c: d"]
    found = [*read_outline(lines)]
    assert 64 == max(len(each.path) for each in found)
    assert ("c",) == found[-1].path
    assert ("c",) == find_spot(lines, 1, 4).path
