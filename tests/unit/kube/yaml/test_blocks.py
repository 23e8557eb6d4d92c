"""The fast reader of plain block style: what it reads, and what it leaves to libyaml."""

from __future__ import annotations

import pytest

from pyverno.kube.yaml.blocks import BlockReader

READ: dict[str, tuple[str, object]] = {
    "map and lists": ("a: 1\nb:\n- x\n- c: 2\n  d:\n  - 3\ne: f\n", {"a": 1, "b": ["x", {"c": 2, "d": [3]}], "e": "f"}),
    "indented lists": (
        "a:\n  - b:\n      c: 1\n    d: 2\n  - e\nf: 1\n",
        {"a": [{"b": {"c": 1}, "d": 2}, "e"], "f": 1},
    ),
    "marker and comments": ("---\n# one\n\na: 1\n  # two\nb: 2\n", {"a": 1, "b": 2}),
    "missing values": ("a:\nb:\n  c:\nd:\n", {"a": None, "b": {"c": None}, "d": None}),
    "quotes": ("\"a b\": 'x: y'\n'c': \"#\"\n", {"a b": "x: y", "c": "#"}),
    "empty collections": ("a: {}\nb: []\n", {"a": {}, "b": []}),
    "types": (
        "a: yes\nb: 017\nc: 1e3\nd: ~\ne: 2001-01-01\n",
        {"a": True, "b": 15, "c": 1000, "d": None, "e": "2001-01-01"},
    ),
    "plain text with marks inside": ("a: x[0],{y}'s\nb: http://h:1\n", {"a": "x[0],{y}'s", "b": "http://h:1"}),
    "flags": ("- --port=1\n- -1\n- a: -x\n", ["--port=1", -1, {"a": "-x"}]),
    "block texts": ("a: |\n  x\n\n    y\nb:\n- c: |-\n    z\n  d: 1\n", {"a": "x\n\n  y\n", "b": [{"c": "z", "d": 1}]}),
    "folded texts": (
        "a: >\n  x\n  # y\n  z: 1\n\nb:\n- c: >-\n    z \n    -\n  d: 1\n",
        {"a": "x # y z: 1\n", "b": [{"c": "z  -", "d": 1}]},
    ),
    "keys of managed fields": (
        "f:metadata:\n  .: {}\n  f:a: {}\n'k:{\"p\":1}': 1\n",
        {
            "f:metadata": {".": {}, "f:a": {}},
            'k:{"p":1}': 1,
        },
    ),
    "texts as items": ("a:\n- |-\n  x\n- >-\n    y\n    z\n-  >\n  1\n", {"a": ["x", "y z", "1\n"]}),
    "anchors of patterns": (
        "=(a):\n- (b): '*'\n  +(c): 1\n^(d):\n  X(e): x\n<(f): z\n",
        {"=(a)": [{"(b)": "*", "+(c)": 1}], "^(d)": {"X(e)": "x"}, "<(f)": "z"},
    ),
    "nothing": ("# only a comment\n", None),
}


@pytest.mark.parametrize("name", READ)
def test_block_style_is_read(name: str) -> None:
    """The style of kubectl and helm needs no libyaml."""
    text, expected = READ[name]
    assert (True, expected) == BlockReader().read(text)


@pytest.mark.parametrize(
    "text",
    [
        "a: {b: 1}", "a: [1]", "a: &x 1", "a: *x", "a: !!str 1", "a: x # note", "a: x\n  y", "a: >+\n  x\n",
        "a: >\n  x\n\n  y\n", "a: >-\n  x\n   y\n",
        "a: |+\n  x\n",
        "a: 1\na: 2",
        "a: 1\n  b: 2", "a:\n    b: 1\n  c: 2", "- - 1", "-", "- a\nb: 1", "yes: 1", "<<: {}", "? a",
        "a: 'it''s'", 'a: "\\n"', "a:\tb", "a: .nan", "a: b: c", "%YAML 1.1\n---\na: 1", "  a: 1", "a: |\n  x", "a: x:",
        "plain", "a: @x", "a\r\nb", "a: \u2028",
    ],
)  # fmt: skip
def test_everything_else_is_left_to_libyaml(text: str) -> None:
    """At the first sign of another style the reader gives up, also when the text is wrong."""
    assert (False, None) == BlockReader().read(text)


def test_remembered_lines_give_independent_documents() -> None:
    """A reader can be used for many documents; the same line gives equal values in each."""
    reader = BlockReader()
    first = reader.read("a:\n- b: 1\n")
    assert reader.read("c: 2\n") == (True, {"c": 2})
    assert first == reader.read("a:\n- b: 1\n") == (True, {"a": [{"b": 1}]})


@pytest.mark.parametrize("text", ["a: ~\n", "a:\n", "a:\nb: 1\n", "- null\n", "- a: Null\n", "a:\n- b:\n  c: 1\n"])
def test_nulls_are_known(text: str) -> None:
    """`may_hold_null` becomes true after a null or a key without a value, and stays true."""
    reader = BlockReader()
    assert (True, {"a": {"b": "null"}, "c": []}) == reader.read("a:\n  b: 'null'\nc: []\n")
    assert not reader.may_hold_null
    assert reader.read(text)[0]
    assert reader.may_hold_null
