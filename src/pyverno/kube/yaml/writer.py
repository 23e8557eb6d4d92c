"""Write JSON values as YAML the way sigs.k8s.io/yaml (and so kubectl) does.

Every text reads back as the same value; it has no folded lines, comments, anchors or tags. Invisible characters, and
what a CI system would take for a command, are escapes in double quotes.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterator
from functools import cmp_to_key
from typing import Final

from pyverno.errors import DocumentError
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.scalars import resolve_plain
from pyverno.lazyregex import regex

__all__ = ["dump_yaml"]

# Longest key that is written on one line with its value, in bytes (libyaml's limit for what it writes).
_MAX_SIMPLE_KEY: Final = 128
# what is forbidden is named, not what is allowed: classes of many characters take Python milliseconds to compile
_HIDDEN: Final = (
    r"\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufdd0-\ufdef\ufeff"
    r"\ufff9-\ufffb\ufffe-\U0010ffff"
)
# that a runner of a CI system takes for the start of a command, wherever it is in a line
_COMMAND: Final = r"#(?=#(?:\[|(?i:vso|teamcity)\[))"
_UNPRINTABLE: Final = regex(rf"[\x00-\x09\x0b-\x1f\x7f-\x9f{_HIDDEN}]|{_COMMAND}")
_PLAIN_START: Final = frozenset("#,[]{}&*!|>'\"%@`")
_INDICATOR_INSIDE: Final = regex(r":(?=[ \t\n]|\Z)|[ \t\n]#")
_BASE60: Final = regex(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?", re.ASCII)
_CLOCK: Final = r"(\d{1,2}):(\d{1,2}):(\d{1,2})(?:[.,]\d+)?"
_TIMESTAMP: Final = regex(rf"(\d{{4}})-(\d{{1,2}})-(\d{{1,2}})(?:[Tt]{_CLOCK}(?:Z|[-+]\d\d:\d\d)| {_CLOCK})?", re.ASCII)
_ESCAPES: Final[dict[str, str]] = {
    "\0": "\\0", "\a": "\\a", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\v": "\\v", "\f": "\\f", "\r": "\\r",
    "\x1b": "\\e", '"': '\\"', "\\": "\\\\", "\x85": "\\N", "\xa0": "\\_", "\u2028": "\\L", "\u2029": "\\P",
}  # fmt: skip
_ESCAPED: Final = regex(rf'["\\\x00-\x1f\x7f-\x9f{_HIDDEN}]|{_COMMAND}')
# or at its start
_LINE_COMMAND: Final = regex(r"^[^\S\n]*::", re.MULTILINE)


def dump_yaml(value: JSON, *, sort_keys: bool = True, indent: int = 2, indent_lists: bool = False) -> str:
    """One YAML document for a JSON value, without `---`.

    `indent` is in spaces. Lists are at the column of their key, as kubectl prints; `indent_lists` moves them in, as
    Go programs print that use yaml.v3 (there with `indent=4`). `sort_keys` uses go-yaml's order, in which numbers in
    keys count as numbers (`a2` before `a10`). Raises DocumentError for NaN, infinities and what is not JSON.

    >>> print(dump_yaml({"b": ["yes", 1.0, None, {"c": "x: y"}], "a": "two\\nlines\\n"}), end="")
    a: |
      two
      lines
    b:
    - "yes"
    - 1
    - null
    - c: 'x: y'
    """
    return "".join(_Writer(sort_keys, indent, indent_lists).pieces(value))


_Frame = tuple[Iterator[tuple[str, JSON]] | Iterator[JSON], int, bool]


class _Writer:
    """The layout of one call."""

    __slots__ = ("indent", "indent_lists", "sort_keys")

    def __init__(self, sort_keys: bool, indent: int, indent_lists: bool) -> None:
        self.sort_keys = sort_keys
        self.indent = indent
        self.indent_lists = indent_lists

    def next_indent(self, column: int) -> int:
        """The next multiple of the indentation."""
        return self.indent * ((column + self.indent) // self.indent)

    def pieces(self, root: JSON) -> list[str]:
        if not isinstance(root, dict | list) or not root:
            is_command = isinstance(root, str) and root.startswith("::")
            return [_double_quoted(str(root)) if is_command else self.leaf(root, 0 - self.indent), "\n"]
        out: list[str] = []
        stack: list[_Frame] = [self.frame(root, 0)]
        inline = True  # the first entry continues a line: that of a `- `, or the document's first
        while stack:
            entries, column, is_map = stack[-1]
            entry = next(entries, None)
            if entry is None:
                stack.pop()
                continue
            if not inline:
                out.append(" " * column)
            inline = False
            if is_map:
                key, value = entry
                out.append(self.key(key, column))
            else:
                value = entry[0]
                out.append("-")
            if not isinstance(value, dict | list) or not value:
                out.append(f" {self.leaf(value, column)}\n")
            elif is_map:
                moves_in = self.indent_lists or isinstance(value, dict)
                out.append("\n")
                stack.append(self.frame(value, self.next_indent(column) if moves_in else column))
            else:
                out.append(" ")
                inline = True
                stack.append(self.frame(value, column + 2))
        return out

    def frame(self, value: JSON, column: int) -> _Frame:
        if isinstance(value, dict):
            keys = _sort(value) if self.sort_keys else list(value)
            return iter([(key, value[key]) for key in keys]), column, True
        return iter([(item,) for item in value]), column, False

    def key(self, key: str, column: int) -> str:
        if not isinstance(key, str):
            raise DocumentError(f"a key must be text, not `{key}`")
        if "\n" in key or len(key.encode("utf-8", "replace")) > _MAX_SIMPLE_KEY:
            return f"? {self.text(key, column)}\n{' ' * column}:"
        return f"{_double_quoted(key) if key.startswith('::') else self.text(key, column)}:"

    def leaf(self, value: JSON, column: int) -> str:
        """A scalar or an empty collection, to be behind `key: ` or `- ` of a collection at `column`."""
        if isinstance(value, str):
            return self.text(value, column)
        if value is None:
            return "null"
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int):
            return str(value)
        if isinstance(value, float):
            return _float(value)
        if isinstance(value, dict | list):
            return "{}" if isinstance(value, dict) else "[]"
        raise DocumentError(f"`{value}` has no YAML form")

    def text(self, text: str, column: int) -> str:
        if _UNPRINTABLE.search(text):  # guard: YAML has no raw control character
            return _double_quoted(text)
        if "\n" in text:
            if text.endswith(" ") or " \n" in text:
                return _double_quoted(text)
            if "::" in text and _LINE_COMMAND.search(text):  # guard: no line of YAML is a workflow command
                return _double_quoted(text)
            return self.literal(text, max(self.next_indent(column), self.indent), max(column, 0))
        if not _reads_as_text(text):
            return _double_quoted(text)
        return text if _is_plain(text) else _single_quoted(text)

    def literal(self, text: str, column: int, parent: int) -> str:
        """A block text (`|`) at a column, with the marks for its indentation below its parent and its last breaks."""
        # go-yaml writes the width of its layout, which is wrong for collections in lists where that is not 2
        hint = str(column - parent) if text[0] in " \n" else ""
        body = text.rstrip("\n")
        chomp = "-" if not text.endswith("\n") else "" if text.endswith("\n") and body and text == body + "\n" else "+"
        margin = " " * column
        lines = [margin + line if line else "" for line in text.removesuffix("\n").split("\n")]
        return f"|{hint}{chomp}\n" + "\n".join(lines)


def _reads_as_text(text: str) -> bool:
    """Whether the text, unquoted, is a string for YAML 1.1 readers (base-60 numbers and dates included)."""
    if text == "<<" or _BASE60.fullmatch(text) or _is_timestamp(text):
        return False
    try:
        return resolve_plain(text) is text
    except ValueError:
        return False


def _is_timestamp(text: str) -> bool:
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return False
    year, month, day, *clock = (int(part or 0) for part in match.groups())
    hour, minute, second = (max(pair) for pair in zip(clock[:3], clock[3:], strict=True))
    try:
        datetime.date(max(year, 1), month, day)
    except ValueError:
        return False
    return hour < 24 and minute < 60 and second < 60


def _is_plain(text: str) -> bool:
    first = text[0]
    if first in _PLAIN_START or first == " " or text[-1] == " " or text.startswith(("---", "...")):
        return False
    if first in "?:-" and (len(text) == 1 or text[1] == " "):
        return False
    return not _INDICATOR_INSIDE.search(text)


def _single_quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _double_quoted(text: str) -> str:
    return '"' + _ESCAPED.sub(_escape, text) + '"'


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    if character in _ESCAPES:
        return _ESCAPES[character]
    code = ord(character)
    if 0xD800 <= code <= 0xDFFF:
        return "\N{REPLACEMENT CHARACTER}"  # Go has no lone surrogates
    if code <= 0xFF:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


def _float(value: float) -> str:
    """Go's shortest `%g`, and whole numbers in digits when they fit 64 bits."""
    if math.isinf(value) or math.isnan(value):
        raise DocumentError(f"`{value}` has no JSON value")
    if value.is_integer() and abs(value) < 1e21:
        digits = f"{value:.0f}" if abs(value) < 2.0**53 else _shortest_digits(value)
        if -(2**63) <= int(digits) < 2**64:
            return digits if digits != "-0" else "0"
    mantissa, _, exponent_text = f"{value!r}".partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    exponent = int(exponent_text or 0) + len(whole) - 1
    if whole == "0":
        exponent -= len(whole + fraction) - len(digits)
    digits = digits.rstrip("0")
    if -4 <= exponent < 21 and not exponent_text and -4 <= exponent < 6:
        return mantissa
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def _shortest_digits(value: float) -> str:
    """A large whole float as JSON text has it: its shortest digits, filled up with zeros."""
    mantissa, _, exponent = f"{value!r}".partition("e")
    if not exponent:
        return mantissa.removesuffix(".0")
    whole, _, fraction = mantissa.partition(".")
    return whole + fraction.ljust(int(exponent), "0")


# ------------------------------------------------------------------------------------------------------------ keys


def _sort(value: JSONObject) -> list[str]:
    keys = list(value)
    if not all(isinstance(key, str) for key in keys):
        raise DocumentError("a key must be text")
    if all(key.isalpha() for key in keys):
        return sorted(keys)
    return sorted(keys, key=cmp_to_key(_compare))


def _compare(left: str, right: str) -> int:
    """go-yaml's order: letters after everything else, runs of digits by number."""
    for index, (a, b) in enumerate(zip(left, right, strict=False)):
        if a == b:
            continue
        if a.isalpha() and b.isalpha():
            return -1 if a < b else 1
        if a.isalpha() or b.isalpha():
            return -1 if b.isalpha() else 1
        return _compare_digits(left, right, index)
    return len(left) - len(right)


def _compare_digits(left: str, right: str, index: int) -> int:
    a, b = _digits_at(left, index), _digits_at(right, index)
    lead = ""
    if left[index] == "0" or right[index] == "0":
        before = index
        while before > 0 and left[before - 1].isdecimal():
            before -= 1
        lead = "1" if left[before:index].strip("0") else ""
    number_a, number_b = int(lead + a or "0"), int(lead + b or "0")
    if number_a != number_b:
        return -1 if number_a < number_b else 1
    if len(a) != len(b):
        return -1 if len(a) < len(b) else 1
    return -1 if left[index] < right[index] else 1


def _digits_at(text: str, index: int) -> str:
    end = index
    while end < len(text) and end < index + 4000 and text[end].isdecimal():
        end += 1
    return text[index:end]
