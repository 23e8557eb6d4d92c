"""Paths of printer columns."""

from __future__ import annotations

import pytest

from kubesandbox.tables.jsonpath import JSONPathError, compile_path
from pyverno.kube.json import JSON

BODY = {
    "kind": "Pod",
    "metadata": {"labels": {"a.b/c": "x", "d": "y"}},
    "items": [{"n": 1, "t": "a"}, {"n": 2, "t": "b"}, {"n": 3, "t": "a", "deep": {"n": 9}}],
    "map": {"b": 2, "a": 1},
    "none": None,
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".kind", ["Pod"]),
        ("kind", ["Pod"]),
        ("$.kind", ["Pod"]),
        (".metadata.labels['d']", ["y"]),
        ('.metadata.labels["d"]', ["y"]),
        (".metadata.labels.a\\.b/c", ["x"]),
        (".metadata.labels['a\\.b/c']", ["x"]),
        (".missing.deeper", []),
        (".none.deeper", []),
        (".items[0].t", ["a"]),
        (".items[-1].n", [3]),
        (".items[0:2].n", [1, 2]),
        (".items[:2].n", [1, 2]),
        (".items[1:].n", [2, 3]),
        (".items[-2:].n", [2, 3]),
        (".items[0:3:2].n", [1, 3]),
        (".items[*].t", ["a", "b", "a"]),
        (".items[0,2].n", [1, 3]),
        (".map.*", [1, 2]),
        (".items[?(@.t=='a')].n", [1, 3]),
        ('.items[?(@.t != "a")].n', [2]),
        (".items[?(@.n>=2)].n", [2, 3]),
        (".items[?(@.n < 2)].t", ["a"]),
        (".items[?(@.deep)].n", [3]),
        (".items[?(@.deep.n==9)].t", ["a"]),
        ("..deep.n", [9]),
        (".", [BODY]),
    ],
)
def test_a_path_finds_its_values(path: str, expected: list[JSON]) -> None:
    """All forms that kubectl's JSONPath has, templates apart."""
    assert expected == compile_path(path)(BODY)


@pytest.mark.parametrize("path", [".items[9]", ".items[5:9]", ".kind[0]", ".kind[?(@.a==1)]", ".items[?(@.t>1)].n"])
def test_a_value_of_another_shape_is_an_error(path: str) -> None:
    """Indexes outside, filters over what is no list, comparisons of text with number; the cell is null then."""
    with pytest.raises(LookupError):
        compile_path(path)(BODY)


@pytest.mark.parametrize("path", [".items[", ".items[0", ".a]b", ".items[x]", ".a{b}", ".a[?(@.b==c)]", ".items[]"])
def test_what_is_no_path_is_refused(path: str) -> None:
    """The error is raised when the table is built, not for each row."""
    with pytest.raises(JSONPathError):
        compile_path(path)
