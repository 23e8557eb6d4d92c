"""The shapes in which texts and values of a request grow: the raw material of the doubling law.

Texts are a beginning, a unit that repeats, and an end. This module must never know what reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from pyverno.kube.json import JSON

__all__ = ["TEXTS", "VALUES", "text", "value_shapes"]

TextShape = tuple[str, str, str]

TEXTS: Mapping[str, TextShape] = {
    "letters": ("", "a", ""),
    "letters and another": ("", "a", "b"),
    "capitals": ("", "A", ""),
    "wide": ("", "é", ""),
    "astral": ("", "\U0001f600", ""),
    "folding": ("", "ß", "İ"),
    "digits": ("", "7", ""),
    "zeros": ("0.", "0", "1"),
    "fraction": ("1.", "3", "e5"),
    "exponent": ("1e", "9", ""),
    "spaces": ("", " ", "x"),
    "spaces inside": ("a", " ", "b"),
    "lines": ("", "a\n", ""),
    "empty lines": ("", "\n", ""),
    "commas": ("", "a,", "a"),
    "dots": ("", "a.", "a"),
    "only dots": ("", ".", ""),
    "dashes": ("", "a-", "a"),
    "slashes": ("", "a/", "a"),
    "only slashes": ("", "/", ""),
    "up and down": ("/", "a/../", "b"),
    "up": ("/", "../", "b"),
    "colons": ("", "a:", "1"),
    "only colons": ("", ":", ""),
    "equals": ("", "a=b,", "a=b"),
    "in": ("a in (", "b,", "b)"),
    "stars": ("", "*", ""),
    "stars and letters": ("", "*a", ""),
    "question marks": ("", "?", ""),
    "question marks and star": ("*", "?", "b"),
    "letters and star": ("*", "a", "b*"),
    "pipes": ("", "a|", "a"),
    "operators": (">", "=1 & <", "2"),
    "ands": ("1", "&2", ""),
    "range": ("1", "0-2", ""),
    "hours": ("", "1h", ""),
    "seconds": ("", "1.5s", ""),
    "quantity": ("", "1", "Ki"),
    "version": ("1.2.3-", "a.", "1"),
    "version numbers": ("1.2.3-", "1.", "1"),
    "version and build": ("1.2.3+", "a.", "1"),
    "version digits": ("1.", "9", ".1"),
    "version range": (">1.0.0", " || >1.0.0", ""),
    "date": ("2024-01-01T00:00:00.", "0", "Z"),
    "zone": ("2024-01-01T00:00:00+", "0", ""),
    "address": ("::", "1:", ""),
    "cidr": ("10.0.0.0/", "8", ""),
    "url": ("http://a/", "b/", "?c=d"),
    "query": ("http://a/?", "b=c&", "b=c"),
    "escapes": ("http://a/", "%41", ""),
    "image": ("a/", "b/", "c:d"),
    "image host": ("", "a.", "b/c"),
    "image tag": ("a:", "b", ""),
    "digest": ("a@sha256:", "0", ""),
    "base64": ("", "QUJD", ""),
    "base64 lines": ("", "QUJD\n", ""),
    "braces": ("", "{", ""),
    "variables": ("", "{{ a }}", ""),
    "open variables": ("", "{{", ""),
    "references": ("", "$(a)", ""),
    "backslashes": ("", "\\", ""),
    "quotes": ('"', '\\"', '"'),
    "dollars": ("", "$1", ""),
    "brackets": ("", "[", ""),
    "closed brackets": ("", "[]", ""),
    "parentheses": ("", "(", ""),
    "group": ("(", "a|", "b)*c"),
    "json list": ("[", "1,", "1]"),
    "json texts": ("[", '"a",', '"a"]'),
    "json objects": ("[", '{"a":1},', "1]"),
    "json escapes": ('"', "\\u0041", '"'),
    "json deep": ("", '{"a":', "1"),
    "json digits": ("[", "1", "]"),
    "yaml list": ("", "- a\n", ""),
    "yaml flow": ("[", "a, ", "b]"),
    "yaml deep flow": ("", "[", ""),
    "yaml deep": ("", "- ", "a"),
    "yaml text": ("a: |\n", "  b\n", ""),
    "yaml folded": ("a: >\n", "  b\n", ""),
    "yaml anchors": ("a: &a b\nc: [", "*a, ", "*a]"),
    "yaml comment": ("", "# a\n", "b"),
    "yaml documents": ("", "---\na: b\n", ""),
    "yaml question": ("", "? ", "a"),
    "yaml quoted": ('"', "a\\n", '"'),
    "yaml number": ("", "1_", "1"),
    "yaml sexagesimal": ("1", ":0", "0"),
    "percents": ("", "%s", ""),
    "certificate": ("-----BEGIN CERTIFICATE-----\n", "QUJD\n", "-----END CERTIFICATE-----"),
    "certificates": ("", "-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n", ""),
    "begins": ("", "-----BEGIN ", ""),
    "token": ("a.", "QUJD", ".c"),
    "layout": ("", "2006", ""),
    "cron": ("*", "/1,*", " * * * *"),
}
"""The shapes of texts by name."""

_NUMBERED: Mapping[str, tuple[str, Callable[[int], str], str]] = {
    "yaml keys": ("", lambda number: f"k{number}: v\n", ""),
    "json keys": ("{", lambda number: f'"k{number}":1,', '"k":1}'),
    "distinct words": ("", lambda number: f"w{number} ", ""),
    "distinct labels": ("", lambda number: f"k{number}=v,", "k=v"),
    "distinct queries": ("http://a/?", lambda number: f"k{number}=v&", "k=v"),
    "distinct names": ("", lambda number: f"w{number},", "w"),
}


def text(name: str, size: int) -> str:
    """Return the text of that shape with about so many characters."""
    if name in _NUMBERED:
        start, unit, end = _NUMBERED[name]
        return start + "".join(unit(number) for number in range(max(1, size // 9))) + end
    start, repeated, end = TEXTS[name]
    return start + repeated * max(1, (size - len(start) - len(end)) // len(repeated)) + end


def text_names() -> tuple[str, ...]:
    """Return the names of all shapes of texts."""
    return (*TEXTS, *_NUMBERED)


def _deep(size: int) -> JSON:
    value: JSON = 1
    for _ in range(min(size // 6, 150)):  # what compiles a pattern takes five frames for a level
        value = {"a": value}
    return value


VALUES: Mapping[str, Callable[[int], JSON]] = {
    "numbers": lambda size: [number * 7919 % 10_007 for number in range(size // 5)],
    "equal numbers": lambda size: [1] * (size // 2),
    "fractions": lambda size: [number * 0.37 for number in range(size // 5)],
    "texts": lambda size: [f"t{number * 7919 % 100_003}.{size}" for number in range(size // 9)],
    "equal texts": lambda size: ["text"] * (size // 7),
    "one long text": lambda size: ["a" * size],
    "two long texts": lambda size: ["a" * (size // 2), "a" * (size // 2) + "b"],
    "long texts": lambda size: ["a" * 60 + str(number) for number in range(size // 70)],
    "objects": lambda size: [{"name": f"n{number}", "a": number} for number in range(size // 22)],
    "equal objects": lambda size: [{"name": "n", "a": 1}] * (size // 20),
    "lists": lambda size: [[number] for number in range(size // 8)],
    "empty lists": lambda size: [[] for _ in range(size // 3)],
    "pairs": lambda size: [[f"k{number}", number] for number in range(size // 14)],
    "nulls": lambda size: [None] * (size // 5),
    "truths": lambda size: [True] * (size // 5),
    "map": lambda size: {f"k{number}": f"v{number}" for number in range(size // 18)},
    "map of numbers": lambda size: {f"k{number}": number for number in range(size // 12)},
    "map of lists": lambda size: {f"k{number}": ["v"] for number in range(size // 15)},
    "map of maps": lambda size: {f"k{number}": {"a": "v"} for number in range(size // 18)},
    "wide keys": lambda size: {f"é{number}": "é" for number in range(size // 14)},
    "long key": lambda size: {"k" * size: "v"},
    "deep": _deep,
    "stars": lambda size: [f"*{number}.{size}*" for number in range(size // 9)],
    "questions": lambda size: ["?" * 60 + "*" for _ in range(size // 65)],
    "tagged": lambda size: [{"name": f"n{number}", "image": f"r/i{number}:t"} for number in range(size // 36)],
}
"""The shapes of lists and maps by name; texts that a policy may give differ by size, so that no cache knows them."""


def value_shapes(kind: str) -> Iterator[tuple[str, Callable[[int], JSON]]]:
    """Yield the shapes of a kind of value: `text`, `list`, `map`, `number` or `any`."""
    if kind in ("text", "any"):
        for name in text_names():
            yield f"text {name}", lambda size, name=name: text(name, size)  # type: ignore[misc]
    if kind in ("list", "map", "any"):
        wanted = {"list": (list,), "map": (dict,), "any": (list, dict)}[kind]
        yield from ((name, make) for name, make in VALUES.items() if isinstance(make(64), wanted))
    if kind in ("number", "any"):
        yield "number", lambda size: size
        yield "small number", lambda _: 2
        yield "negative number", lambda size: -size
        yield "fraction", lambda size: size + 0.5
    if kind in ("bool", "any"):
        yield "true", lambda _: True
