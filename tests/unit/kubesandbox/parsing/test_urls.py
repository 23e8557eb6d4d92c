"""Paths and queries as Go reads them."""

from __future__ import annotations

import pytest

from kubesandbox.parsing.urls import Query, parse_url, values_of
from pyverno.errors import ValueSyntaxError


@pytest.mark.parametrize(
    ("raw", "path", "query"),
    [
        ("/api/v1/pods", "/api/v1/pods", {}),
        ("/api/v1/pods?limit=1&limit=2", "/api/v1/pods", {"limit": "1"}),
        ("/api%2Fv1/%6Eodes", "/api/v1/nodes", {}),
        ("/a#b?c=d", "/a#b", {"c": "d"}),
        ("https://host:1/a/b?c", "/a/b", {"c": ""}),
        ("/a?b=%zz&c=1;d=2&&e=x+y%20z", "/a", {"e": "x y z"}),
        ("/a%ffb", "/a\ufffdb", {}),
        ("*", "*", {}),
    ],
)
def test_request_lines_have_a_path_and_a_query(raw: str, path: str, query: dict[str, str]) -> None:
    """Escapes are decoded; malformed parts of the query are left out."""
    assert (path, query) == parse_url(raw)


@pytest.mark.parametrize("raw", ["/a/%", "/a%2", "/%zz?x=1"])
def test_paths_with_bad_escapes_are_none(raw: str) -> None:
    """A path with a malformed escape is refused."""
    with pytest.raises(ValueSyntaxError):
        parse_url(raw)


def test_values_that_are_given_twice_are_kept() -> None:
    """The server must not silently choose one of two values."""
    query = Query.parse("dryRun=&dryRun=All&a=1")
    assert (["", "All"], ["1"], []) == (values_of(query, "dryRun"), values_of(query, "a"), values_of(query, "b"))
