"""A fast reader for the plain block style that kubectl and helm write; anything else is left to libyaml.

One line is one `key: value`, `- value` or `- key: value` with plain or simply quoted scalars, or opens a `|` or `>`
text. Most lines of manifests repeat, so parsed lines are cached by their text. A value from this reader is exactly that
of `events.build_value`; at the first sign of anything else (flow style, anchors, tags,
comments behind values, several-line scalars, duplicate keys, odd indentation) it gives up
and reports no error.
"""

from __future__ import annotations

from typing import Any, Final

from pyverno.kube.json import JSON
from pyverno.kube.yaml.scalars import resolve_plain
from pyverno.lazyregex import regex

__all__ = ["BlockReader"]

_MAX_LINES: Final = 200_000
_MAX_STACK: Final = 500
# Blanks and breaks that YAML knows besides space and line feed, and the byte order mark.
_FOREIGN: Final = ("\t", "\r", "\x85", "\u2028", "\u2029", "\ufeff")
# Margin, dash, key (plain, with an anchor of a pattern, or simply quoted), and the rest.
_LINE: Final = regex(
    r"( *)(- +)?"
    r"(?:(\.|[A-Za-z0-9_][A-Za-z0-9_./:()-]{0,900}|[=+^<]?\([A-Za-z0-9_./*?-]{1,900}\)"
    r"|\"[^\"\\]{0,900}\"|'[^']{0,900}'):(?: +|\Z))?"
    r"(.*)"
)
_INDICATORS: Final = frozenset("-?:,[]{}#&*!|>'\"%@`")

# What a line is: nothing, `key: value`, `key:`, `- key: value`, `- key:`, `- value`, `key: |`, `- key: |`, `- |`.
_SKIP, _PAIR, _KEY, _ITEM_PAIR, _ITEM_KEY, _ITEM, _TEXT, _ITEM_TEXT, _TEXT_ITEM = range(9)
_Line = tuple[int, int, int, Any, Any]


class _Unsupported(Exception):  # noqa: N818  # a control signal: this document is for libyaml
    """The document leaves the subset."""


class BlockReader:
    """Reads documents of one stream; remembers lines from one document to the next.

    `may_hold_null` is False when no value of the documents read so far is null.
    """

    __slots__ = ("_keys", "_lines", "may_hold_null")

    def __init__(self) -> None:
        self.may_hold_null = False
        self._lines: dict[str, _Line] = {}
        self._keys: dict[str, str] = {}

    def read(self, text: str) -> tuple[bool, JSON]:
        """Whether the document is in the subset, and its value (None for an empty one).

        >>> BlockReader().read("a: 1\\nb:\\n- c: yes\\n  d: 'x'\\n- 2\\n")
        (True, {'a': 1, 'b': [{'c': True, 'd': 'x'}, 2]})
        >>> BlockReader().read("a: {b: 1}")
        (False, None)
        """
        for character in _FOREIGN:
            if character in text:
                return False, None
        lines = text.split("\n")
        if lines[0] == "---":
            lines[0] = ""
        if len(self._lines) > _MAX_LINES:
            self._lines.clear()
            self._keys.clear()
        try:
            return True, self._build(lines)
        except _Unsupported:
            return False, None

    def _build(self, lines: list[str]) -> JSON:
        known = self._lines
        root: Any = None
        current: Any = None  # the innermost open collection, and the column where its entries start
        column = 0
        is_map = True
        pending: str | None = None  # a key of `current` whose value may follow on deeper lines
        stack: list[tuple[Any, int, bool]] = []
        number, count = 0, len(lines)
        while number < count:
            line = lines[number]
            number += 1
            entry = known.get(line)
            if entry is None:
                entry = known[line] = _classify(line, self._keys)
                if entry[4] is None and entry[0] in _VALUES:
                    self.may_hold_null = True
            kind, start, inner, key, value = entry
            if kind == _SKIP:
                continue
            in_list = kind in _IN_LIST
            if pending is not None:
                if start > column or (in_list and start == column):
                    child: Any = [] if in_list else {}
                    current[pending] = child
                    stack.append((current, column, is_map))
                    if len(stack) > _MAX_STACK:
                        raise _Unsupported
                    current, column, is_map = child, start, not in_list
                else:
                    current[pending] = None
                    self.may_hold_null = True
                pending = None
            elif current is None:
                if start:
                    raise _Unsupported
                root = current = [] if in_list else {}
                is_map = not in_list
            # A list may be at the column of its key: then a key at that column ends it.
            while start < column or (start == column and in_list is is_map):
                if not stack:
                    raise _Unsupported
                current, column, is_map = stack.pop()
            if start != column or in_list is is_map:
                raise _Unsupported
            if in_list:
                if kind == _ITEM:
                    current.append(value)
                    continue
                if kind == _TEXT_ITEM:
                    number, item_text = _block_text(lines, number, column, value)
                    current.append(item_text)
                    continue
                item: dict[str, Any] = {}
                current.append(item)
                stack.append((current, column, False))
                current, column, is_map = item, inner, True
            elif key in current:
                raise _Unsupported
            if kind in _PAIRS:
                current[key] = value
            elif kind in _KEYS:
                current[key] = None
                pending = key
            else:
                number, current[key] = _block_text(lines, number, column, value)
        if pending is not None:
            self.may_hold_null = True
        return root


_PAIRS: Final = frozenset((_PAIR, _ITEM_PAIR))
_VALUES: Final = frozenset((*_PAIRS, _ITEM))
_KEYS: Final = frozenset((_KEY, _ITEM_KEY))
_IN_LIST: Final = frozenset((_ITEM_PAIR, _ITEM_KEY, _ITEM, _ITEM_TEXT, _TEXT_ITEM))
_TEXTS: Final = frozenset(("|", "|-", ">", ">-"))


def _classify(line: str, keys: dict[str, str]) -> _Line:
    bare = line.strip(" ")
    if not bare or bare[0] == "#":
        return (_SKIP, 0, 0, None, None)
    if line.startswith(("---", "...", "%")):
        raise _Unsupported
    match = _LINE.fullmatch(line)
    if match is None:
        raise _Unsupported
    margin, dash, key_text, rest = match.groups()
    start = len(margin)
    inner = start + len(dash or "")
    rest = rest.rstrip(" ")
    if key_text is None:
        if not dash:
            raise _Unsupported
        if rest in _TEXTS:
            return (_TEXT_ITEM, start, inner, None, rest)
        return (_ITEM, start, inner, None, _value(rest))
    key = keys.get(key_text)
    if key is None:
        key = keys[key_text] = _key(key_text)
    if not rest:
        return (_ITEM_KEY if dash else _KEY, start, inner, key, None)
    if rest in _TEXTS:
        return (_ITEM_TEXT if dash else _TEXT, start, inner, key, rest)
    return (_ITEM_PAIR if dash else _PAIR, start, inner, key, _value(rest))


def _key(text: str) -> str:
    if text[0] in "\"'":
        return text[1:-1]
    if not isinstance(resolve_plain(text), str):
        raise _Unsupported
    return text


def _value(text: str) -> Any:
    if not text:
        raise _Unsupported
    first = text[0]
    if first in _INDICATORS and not (first == "-" and len(text) > 1 and text[1] != " "):
        if text == "{}":
            return {}
        if text == "[]":
            return []
        inside = text[1:-1]
        if len(text) > 1 and text[-1] == first:
            if first == '"' and '"' not in inside and "\\" not in inside:
                return inside
            if first == "'" and "'" not in inside:
                return inside
        raise _Unsupported
    if ": " in text or " #" in text or text[-1] == ":":
        raise _Unsupported
    try:
        return resolve_plain(text)
    except ValueError:
        raise _Unsupported from None


def _block_text(lines: list[str], number: int, column: int, style: str) -> tuple[int, str]:
    """The text of a `|`, `|-`, `>` or `>-` whose lines start at `number`, and the number of the line behind it."""
    first = number
    while first < len(lines) and not lines[first].strip(" "):
        first += 1
    if first == len(lines):
        raise _Unsupported
    margin = len(lines[first]) - len(lines[first].lstrip(" "))
    if margin <= column or any(len(line) > margin for line in lines[number:first]):
        raise _Unsupported
    content: list[str] = []
    while number < len(lines):
        line = lines[number]
        stripped = line.lstrip(" ")
        if stripped and len(line) - len(stripped) < margin:
            if len(line) - len(stripped) > column:
                raise _Unsupported
            break
        content.append(line[margin:])
        number += 1
    else:
        # The stream's last line: without a line feed behind it, nothing ends the text but the stream itself.
        if content[-1]:
            raise _Unsupported
    while content and not content[-1]:
        content.pop()
    if style[0] == ">" and any(not line or line[0] == " " for line in content):
        raise _Unsupported  # empty and deeper lines are not folded
    return number, ("\n" if style[0] == "|" else " ").join(content) + ("" if style[1:] else "\n")
