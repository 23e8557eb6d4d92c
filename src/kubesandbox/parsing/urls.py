"""The path and the query of a request line, read as Go's server reads them."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote, unquote_plus

from pyverno.errors import ValueSyntaxError
from pyverno.lazyregex import regex

__all__ = ["Query", "parse_url", "values_of"]

_BAD_ESCAPE = regex(r"%(?![0-9A-Fa-f]{2})")


class Query(dict[str, str]):
    """Parameters, each with its first value; `repeated` has all values of those that were given several times.

    >>> query = Query.parse("a=1&a=2&b=x+y&c=%&d=1;2&e")
    >>> query, query.repeated
    ({'a': '1', 'b': 'x y', 'e': ''}, {'a': ['1', '2']})
    """

    repeated: dict[str, list[str]]

    @classmethod
    def parse(cls, text: str) -> Query:
        """Read a query; parts with bad escapes or semicolons are left out."""
        found = cls()
        found.repeated = {}
        for part in text.split("&"):
            if not part or ";" in part or _BAD_ESCAPE.search(part):
                continue
            key, _, value = (unquote_plus(piece) for piece in part.partition("="))
            if key in found:
                found.repeated.setdefault(key, [found[key]]).append(value)
            else:
                found[key] = value
        return found


def values_of(query: Mapping[str, str], key: str) -> list[str]:
    """Return all values of a parameter.

    >>> values_of(Query.parse("a=1&a=2"), "a"), values_of({"b": "3"}, "b"), values_of({}, "c")
    (['1', '2'], ['3'], [])
    """
    if isinstance(query, Query) and key in query.repeated:
        return query.repeated[key]
    return [query[key]] if key in query else []


def parse_url(raw: str) -> tuple[str, Query]:
    """Return the path and the query of a request line; raises ValueSyntaxError for a path with bad escapes.

    >>> parse_url("/api/v1/%6Eodes?limit=5")
    ('/api/v1/nodes', {'limit': '5'})
    """
    if not raw.startswith("/") and "://" in raw:
        raw = "/" + raw.partition("://")[2].partition("/")[2]
    path, _, query = raw.partition("?")
    if _BAD_ESCAPE.search(path):
        raise ValueSyntaxError(f"the path `{path}` has an escape that is none")
    return unquote(path), Query.parse(query)
