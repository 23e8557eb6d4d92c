"""JSON as plain Python values, encoded exactly as Go's encoding/json does.

A JSON value is None, bool, int, float, str, list or dict with string keys. Values are never changed in place once
they are shared. `jsonscan` has the slow decoder, for short texts that orjson does not read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterator
from typing import Any, TypeAlias, TypeVar

from pyverno.errors import DocumentError
from pyverno.kube.gofloat import float_text, float_verb_text
from pyverno.kube.jsonscan import MAX_INT64, MIN_INT64, scan, with_valid_escapes
from pyverno.lazyregex import regex

__all__ = [
    "JSON",
    "JSONObject",
    "decode",
    "deep_copy",
    "dump",
    "encode",
    "encode_indent",
    "equal",
    "float_text",
    "go_text",
    "identity",
    "is_number",
    "weight",
]

JSON: TypeAlias = Any
"""One JSON value; `Any` because Python's type system cannot bound a recursive value cheaply."""

JSONObject: TypeAlias = dict[str, Any]
"""A JSON object."""

_T = TypeVar("_T")

# Texts of this size, such as literals in expressions, are not worth loading orjson for.
_SHORT = 8
# A float token always follows one of these in compact JSON; a hit inside a string only costs time.
_MAYBE_FLOAT = regex(rb"[:,\[]-?[0-9]+[.e]")
# The same with fewer hits inside strings, but slower: it decides after the first one.
_LIKELY_FLOAT = regex(rb'(?:":|[,\[])-?[0-9]+[.e]')
_DIGITS_TO_ZERO = bytes.maketrans(b"123456789", b"000000000")
_LONG_NUMBER = b"0" * 19
# Where a number that long may be outside of strings.
_LONG_TOKEN = regex(rb"(?:^|[:,\[\s])-?[0-9]{19}")

MAX_SCANNED_BYTES = 256 * 1024
"""A JSON text that is more than 1,024 levels deep may be this long; the exact errors of Go are for such texts too."""

_SHORT_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_NEEDS_ESCAPE = regex('["\\\\\x00-\x1f]')
_HTML_ESCAPES = (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029"))
_SURROGATE = regex("[\ud800-\udfff]")


def is_number(value: JSON) -> bool:
    """Return whether a JSON value is a number; a bool is never one.

    >>> is_number(1.5), is_number(True)
    (True, False)
    """
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def deep_copy(value: _T) -> _T:
    """Return a copy that shares no map and no list with the value, however deep it is.

    >>> one = {"a": [1]}
    >>> two = deep_copy(one)
    >>> two["a"].append(2)
    >>> one
    {'a': [1]}
    """
    holder: list[Any] = [value]
    waiting: list[Any] = [holder]
    while waiting:
        container = waiting.pop()
        items = container.items() if isinstance(container, dict) else enumerate(container)
        for place, item in items:
            if isinstance(item, (dict, list)):
                container[place] = made = dict(item) if isinstance(item, dict) else list(item)
                waiting.append(made)
    copied: _T = holder[0]
    return copied


def decode(data: bytes | str) -> JSON:
    """Read one JSON text as Go reads it.

    Integers beyond 64 bits become floats, a lone surrogate or a byte that is not UTF-8 becomes U+FFFD, the last of
    equal keys wins. Up to 10,000 levels deep, 1,024 in a text of more than 256 KiB. Raises `DocumentError` for anything
    else, NaN included: with Go's text, or with the offset where the text is longer than that.

    >>> decode('{"a": [1, 2.5, null]}')
    {'a': [1, 2.5, None]}
    """
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    if len(raw) <= _SHORT:
        return scan(raw)
    import orjson  # a run that reads and writes no JSON starts without it

    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return _decode_unusual(raw)
    if _LONG_NUMBER in raw.translate(_DIGITS_TO_ZERO) and _LONG_TOKEN.search(raw):
        return _with_floats(value)
    return value


def _decode_unusual(raw: bytes) -> JSON:
    """Read what orjson refuses and Go does not, and find the text of the error for what both refuse."""
    import orjson  # as in `decode`

    try:
        return _with_floats(orjson.loads(with_valid_escapes(raw)))
    except orjson.JSONDecodeError as error:
        if len(raw) > MAX_SCANNED_BYTES:
            raise DocumentError(
                f"the text is no JSON, or too deep for its length: {error.msg} at offset {error.pos}"
            ) from None
    return scan(raw)


def _with_floats(value: JSON) -> JSON:
    """Return a value that was read just now with integers beyond 64 bits as floats; it is changed in place."""
    holder = [value]
    waiting: list[Any] = [holder]
    while waiting:
        container = waiting.pop()
        items = container.items() if type(container) is dict else enumerate(container)
        for place, item in items:
            kind = type(item)
            if kind is dict or kind is list:
                waiting.append(item)
            elif kind is int and not MIN_INT64 <= item <= MAX_INT64:
                container[place] = float(item)
    return holder[0]


def encode(value: JSON) -> str:
    """Render a value as Go's `json.Marshal` does: compact, keys sorted, `<`, `>`, `&` and U+2028/9 escaped.

    Raises `DocumentError` for what JSON does not have (NaN, infinities, other Python types).

    >>> encode({"b": 1.0, "a": "<x>"})
    '{"a":"\\\\u003cx\\\\u003e","b":1}'
    """
    import orjson  # as in `decode`

    try:
        raw = orjson.dumps(
            value, option=orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
        )
    except TypeError:  # deep, large integers, surrogates, or not JSON at all
        return _compact(value)
    # orjson writes NaN as null and floats in its own form: both need the exact path.
    if isinstance(value, float) or b"null" in raw:
        return _compact(value)
    if _MAYBE_FLOAT.search(raw) and _LIKELY_FLOAT.search(raw):
        return _compact(value)
    return _escape_html(raw.decode())


def dump(value: JSON) -> bytes:
    """Write a value as compact JSON as fast as can be, however deep it is; keys keep their order where it is shallow.

    Raises `DocumentError` for what JSON does not have.

    >>> dump({"b": 1, "a": "<x>"})
    b'{"b":1,"a":"<x>"}'
    """
    import orjson  # as in `decode`

    try:
        return orjson.dumps(value)
    except TypeError:  # more than 250 levels deep, large integers, surrogates
        return encode(value).encode()


def encode_indent(value: JSON, indent: str = "  ", escape_html: bool = True) -> str:
    """Render a value as Go's `json.MarshalIndent` does; empty maps and lists stay on their line.

    >>> print(encode_indent({"a": [1], "b": {}}))
    {
      "a": [
        1
      ],
      "b": {}
    }
    """
    parts: list[str] = []
    stack: list[tuple[Iterator[Any], str]] = []
    _open(value, parts, stack, html=escape_html)
    first = bool(stack)
    while stack:
        items, closing = stack[-1]
        for item in items:
            parts.append(("\n" if first else ",\n") + indent * len(stack))
            key_text = ""
            if closing == "}":
                key, item = item  # noqa: PLW2901  # a pair of a map
                key_text = _string(key, html=escape_html) + ": "
            parts.append(key_text)
            depth = len(stack)
            _open(item, parts, stack, html=escape_html)
            first = len(stack) > depth
            if first:
                break
        else:
            stack.pop()
            parts.append("\n" + indent * len(stack) + closing)
            first = False
    return "".join(parts)


def go_text(value: JSON) -> str:
    """Render a value as Go's `fmt.Sprintf("%v", value)` does; whole numbers are written in digits.

    >>> go_text({"b": [1, "x"], "a": None})
    'map[a:<nil> b:[1 x]]'
    """
    if isinstance(value, str):
        return value
    parts: list[str] = []
    stack: list[tuple[Iterator[Any], bool]] = []
    _open_go(value, parts, stack)
    first = True
    while stack:
        items, is_map = stack[-1]
        for item in items:
            if not first:
                parts.append(" ")
            if is_map:
                key, item = item  # noqa: PLW2901  # a pair of a map
                parts.append(f"{key}:")
            depth = len(stack)
            _open_go(item, parts, stack)
            first = len(stack) > depth
            if first:
                break
        else:
            stack.pop()
            parts.append("]")
            first = False
    return "".join(parts)


def equal(left: JSON, right: JSON) -> bool:
    """Compare by value: `1` equals `1.0`, but a bool equals only a bool.

    >>> equal({"a": [1]}, {"a": [1.0]}), equal(1, True)
    (True, False)
    """
    if isinstance(left, str) or isinstance(right, str) or left is None or right is None:
        return bool(left == right)
    pending = [(left, right)]
    while pending:
        a, b = pending.pop()
        if isinstance(a, dict):
            if not isinstance(b, dict) or len(a) != len(b):
                return False
            for key, item in a.items():
                if key not in b:
                    return False
                pending.append((item, b[key]))
        elif isinstance(a, list):
            if not isinstance(b, list) or len(a) != len(b):
                return False
            pending.extend(zip(a, b, strict=True))
        elif isinstance(a, bool) or isinstance(b, bool):
            if a is not b:
                return False
        elif isinstance(b, (dict, list)) or a != b:
            return False
    return True


def identity(value: JSON) -> Hashable:
    """Return a key that two values share if and only if they are `equal`, to find values in sets and maps.

    Raises RecursionError for a value that is nested too deeply.

    >>> identity({"a": [1]}) == identity({"a": [1.0]}), identity(1) == identity(True)
    (True, False)
    """
    if isinstance(value, dict):
        return ("map", frozenset((key, identity(item)) for key, item in value.items()))
    if isinstance(value, list):
        return ("list", tuple(identity(item) for item in value))
    return ("bool", value) if isinstance(value, bool) else value


def weight(value: JSON) -> int:
    """Return about how many bytes a value takes when it is written, for limits.

    >>> weight({"a": ["text"]})
    11
    """
    pending, size = [value], 0
    while pending:
        item = pending.pop()
        size += 2
        if isinstance(item, str):
            size += len(item)
        elif isinstance(item, dict):
            size += sum(map(len, item))
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
    return size


def _compact(value: JSON) -> str:
    parts: list[str] = []
    stack: list[tuple[Iterator[Any], str]] = []
    _open(value, parts, stack, html=True)
    first = True
    while stack:
        items, closing = stack[-1]
        for item in items:
            if not first:
                parts.append(",")
            if closing == "}":
                key, item = item  # noqa: PLW2901  # a pair of a map
                parts.append(_string(key, html=True) + ":")
            depth = len(stack)
            _open(item, parts, stack, html=True)
            first = len(stack) > depth
            if first:
                break
        else:
            stack.pop()
            parts.append(closing)
            first = False
    return "".join(parts)


def _open(value: JSON, parts: list[str], stack: list[tuple[Iterator[Any], str]], *, html: bool) -> None:
    """Write a scalar or an empty container; for any other container write its bracket and push its items."""
    if isinstance(value, str):
        parts.append(_string(value, html=html))
    elif value is None:
        parts.append("null")
    elif isinstance(value, bool):
        parts.append("true" if value else "false")
    elif isinstance(value, int):
        parts.append(str(int(value)))
    elif isinstance(value, float):
        parts.append(_number(value))
    elif isinstance(value, dict):
        if not value:
            parts.append("{}")
            return
        parts.append("{")
        stack.append((iter(sorted(_checked_keys(value).items(), key=_key)), "}"))
    elif isinstance(value, (list, tuple)):
        if not value:
            parts.append("[]")
            return
        parts.append("[")
        stack.append((iter(value), "]"))
    else:
        raise DocumentError("json: unsupported value")


def _open_go(value: JSON, parts: list[str], stack: list[tuple[Iterator[Any], bool]]) -> None:
    if isinstance(value, dict):
        parts.append("map[")
        stack.append((iter(sorted(value.items(), key=_key)), True))
    elif isinstance(value, (list, tuple)):
        parts.append("[")
        stack.append((iter(value), False))
    elif value is None:
        parts.append("<nil>")
    elif isinstance(value, bool):
        parts.append("true" if value else "false")
    elif isinstance(value, float):
        # COMPAT: Go writes 1e+06; whole numbers are written in digits so that int and float render alike.
        parts.append(float_text(value) if value.is_integer() and abs(value) < 1e21 else float_verb_text(value))
    else:
        parts.append(str(value))


def _key(pair: tuple[str, Any]) -> str:
    return pair[0]


def _checked_keys(value: JSONObject) -> JSONObject:
    if all(isinstance(key, str) for key in value):
        return value
    raise DocumentError("json: a map has a key that is not a string")


def _number(value: float) -> str:
    if math.isfinite(value):
        return float_text(value)
    raise DocumentError(f"json: unsupported value: {float_verb_text(value)}")


def _string(text: str, *, html: bool) -> str:
    if not text.isascii():
        text = _SURROGATE.sub("\ufffd", text)
    if _NEEDS_ESCAPE.search(text):
        text = _NEEDS_ESCAPE.sub(_escape, text)
    quoted = f'"{text}"'
    if html:
        return _escape_html(quoted)
    # Go escapes the two line separators even when HTML escaping is off.
    return quoted.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    return _SHORT_ESCAPES.get(character) or f"\\u{ord(character):04x}"


def _escape_html(text: str) -> str:
    # Five substring scans are several times faster than one search by character class, and so are replacements.
    for character, escape in _HTML_ESCAPES:
        if character in text:
            text = text.replace(character, escape)
    return text
