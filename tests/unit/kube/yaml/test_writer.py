"""YAML as kubectl prints it: layout, quoting, numbers, order of keys."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from pyverno.errors import DocumentError
from pyverno.kube.json import JSON
from pyverno.kube.yaml.documents import load_documents
from pyverno.kube.yaml.writer import dump_yaml

LAYOUT: dict[str, tuple[object, str]] = {
    "map": ({"b": 1, "a": {"c": None}}, "a:\n  c: null\nb: 1\n"),
    "list at its key": ({"a": [1, {"b": 2, "c": [3]}]}, "a:\n- 1\n- b: 2\n  c:\n  - 3\n"),
    "list of lists": ([[1, [2]], []], "- - 1\n  - - 2\n- []\n"),
    "empty": ({"a": {}, "b": [], "c": ""}, 'a: {}\nb: []\nc: ""\n'),
    "scalar": ("x", "x\n"),
    "no content": ({}, "{}\n"),
    "booleans": ([True, False], "- true\n- false\n"),
    "whole floats": ([1.0, 1e6, -0.0, 1e20], "- 1\n- 1000000\n- 0\n- 1e+20\n"),
    "floats": ([1.5, 1e21, 1e-7, 0.001, 1234567.5], "- 1.5\n- 1e+21\n- 1e-07\n- 0.001\n- 1.2345675e+06\n"),
    "text block": ({"a": "x\ny\n"}, "a: |\n  x\n  y\n"),
    "text block without last break": ({"a": {"b": "x\n\ny"}}, "a:\n  b: |-\n    x\n\n    y\n"),
    "text block with more breaks": (["x\n\n"], "- |+\n  x\n\n"),
    "text block that starts blank": ({"a": " x\ny"}, "a: |2-\n   x\n  y\n"),
    "keys by number": ({"a10": 1, "a2": 2, "b": 3, "-": 4}, '"-": 4\na2: 2\na10: 1\nb: 3\n'.replace('"-"', "'-'")),
    "key of several lines": ({"a\nb": 1}, "? |-\n  a\n  b\n: 1\n"),
    "long line": ({"a": "word " * 40 + "end"}, "a: " + "word " * 40 + "end\n"),
}


@pytest.mark.parametrize("name", LAYOUT)
def test_layout(name: str) -> None:
    """Values are laid out as sigs.k8s.io/yaml does, and long lines stay whole."""
    value, expected = LAYOUT[name]
    assert expected == dump_yaml(value)


QUOTING = {
    "plain": "plain", "yes": '"yes"', "n": '"n"', "null": '"null"', "~": '"~"', "1": '"1"', "1e3": '"1e3"',
    "0x1F": '"0x1F"', "1_0": '"1_0"', ".5": '".5"', ".inf": '".inf"', "1d": "1d", "22:22": '"22:22"',
    "2001-01-01": '"2001-01-01"', "2001-01-01T10:00:00Z": '"2001-01-01T10:00:00Z"', "2001-13-01": "2001-13-01",
    "2001-01-01 25:00:00": "2001-01-01 25:00:00", "<<": '"<<"', "=": "=", "a: b": "'a: b'", "a:b": "a:b", "a:": "'a:'",
    "a #b": "'a #b'", "a#b": "a#b", " a": "' a'", "a ": "'a '", "-": "'-'", "- a": "'- a'", "-a": "-a", "?x": "?x",
    "*": "'*'", "&a": "'&a'", "!a": "'!a'", "@a": "'@a'", "%": "'%'", "`": "'`'", "[a": "'[a'", "{a": "'{a'",
    "'a": "'''a'", '"a': "'\"a'", "it's": "it's", "---": "'---'", "a\tb": '"a\\tb"', "a\x07": '"a\\a"',
    "😀": '"\\U0001F600"',
    "é": "é", "\xa0": "\xa0", "a\x85": '"a\\N"', "\ufeff": '"\\uFEFF"', "a \nb": '"a \\nb"', "\\n": "\\n",
}  # fmt: skip


@pytest.mark.parametrize("text", QUOTING)
def test_strings_are_quoted_only_where_needed(text: str) -> None:
    """A string is quoted exactly where it would read back as something else."""
    assert f"{QUOTING[text]}\n" == dump_yaml(text)
    assert text == load_documents(dump_yaml(text))[0].value


def test_options() -> None:
    """The look of yaml.v3: four columns, lists moved in; and keys as they come."""
    value = {"b": [{"c": {"d": "x\ny"}, "e": [1]}], "a": 1}
    expected = "b:\n    - c:\n        d: |-\n            x\n            y\n      e:\n        - 1\na: 1\n"
    assert expected == dump_yaml(value, sort_keys=False, indent=4, indent_lists=True)


@pytest.mark.parametrize("value", [math.nan, math.inf, {"a": -math.inf}, object(), {1: 2}])
def test_what_is_not_json_is_refused(value: object) -> None:
    """Values outside JSON have no YAML form."""
    with pytest.raises(DocumentError):
        dump_yaml(value)


def test_deep_values_are_written() -> None:
    """Depth costs no Python stack."""
    value: object = 1
    for _ in range(3000):
        value = [value]
    assert "- " * 3000 + "1\n" == dump_yaml(value)


@pytest.mark.parametrize("value", ["\n x", "\n---", " a\nb"])
@pytest.mark.parametrize("layout", [(2, False), (2, True), (4, True)])
@pytest.mark.parametrize(
    "place",
    [
        lambda text: {"a": text},
        lambda text: [text],
        lambda text: [[text]],
        lambda text: [{"a": text}],
        lambda text: [{text: [1]}],
        lambda text: {"a": [{"b": [[text]]}]},
        lambda text: {"a": {text: {"b": text}}},
    ],
)
def test_block_texts_that_begin_with_blanks_read_back_anywhere(
    place: Callable[[str], JSON], layout: tuple[int, bool], value: str
) -> None:
    """The mark for their indentation counts from what they stand in, whatever the width of the layout."""
    document = place(value)
    text = dump_yaml(document, indent=layout[0], indent_lists=layout[1])
    assert [document] == [each.value for each in load_documents(text)]
