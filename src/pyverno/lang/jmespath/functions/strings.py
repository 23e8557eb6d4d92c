"""Functions on texts: comparing, replacing, changing case, cutting and splitting.

Characters are Unicode code points, as Go's runes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import cache
from typing import Final

from pyverno.errors import BudgetExceededError, ValueSyntaxError
from pyverno.kube import semver, wildcard
from pyverno.kube.json import JSON, JSONObject
from pyverno.lang.jmespath.cost import COPY, FLAT, ITEM, READ, Cost, charge_search, same
from pyverno.lang.jmespath.function import (
    ARRAY_OF_STRINGS,
    BOOL,
    NUMBER,
    OBJECT,
    STRING,
    describe,
    failure,
    function,
    unreadable,
)
from pyverno.lang.jmespath.functions.text import scalar_text
from pyverno.lang.runtime import Runtime

__all__ = ["FUNCTIONS"]

_POINTER: Final = 16
_FEW: Final = 16
_LONG_TEXT: Final = 262_144
_FINAL_SIGMA: Final = "Σ"  # its lower case depends on what is beside it


@function("compare", STRING, STRING, returns=NUMBER, cost=READ, note="orders two texts by their bytes: -1, 0 or 1")
def compare(_runtime: Runtime, left: str, right: str) -> JSON:
    """Order two texts by their bytes: -1, 0 or 1.

    Upstream's result is an integer that the interpreter does not take for a number; here it is one.

    >>> compare('b', 'a')
    1
    """
    return (left > right) - (left < right)


@function(
    "equal_fold",
    STRING,
    STRING,
    returns=BOOL,
    cost=Cost(per_step=16),
    note="checks whether two texts are equal except for letter case",
)
def equal_fold(_runtime: Runtime, left: str, right: str) -> JSON:
    """Return whether two texts are equal but for case, one character to one character.

    >>> equal_fold('ABC', 'abc')
    true
    >>> equal_fold('Straße', 'STRASSE')
    false
    """
    if left.isascii() and right.isascii():
        return left.lower() == right.lower()
    return len(left) == len(right) and _map(left, str.casefold, _fold) == _map(right, str.casefold, _fold)


@function(
    "replace",
    STRING,
    STRING,
    STRING,
    NUMBER,
    returns=STRING,
    cost=READ,
    note="replaces the first n occurrences of a text",
)
def replace(runtime: Runtime, text: str, old: str, new: str, count: float) -> JSON:
    """Replace the first occurrences of a text, all of them when the count is negative.

    The count is cut to a whole number; an empty old text matches before every character.

    >>> replace('aaaa', 'a', 'b', `1.9`)
    "baaa"
    >>> replace('abc', '', '-', `2`)
    "-a-bc"
    """
    return _replace(runtime, text, old, new, min(int(count), sys.maxsize))


@function("replace_all", STRING, STRING, STRING, returns=STRING, cost=READ, note="replaces every occurrence of a text")
def replace_all(runtime: Runtime, text: str, old: str, new: str) -> JSON:
    """Replace every occurrence of a text.

    >>> replace_all('abab', 'b', 'x')
    "axax"
    """
    return _replace(runtime, text, old, new, -1)


@function(
    "to_upper",
    STRING,
    returns=STRING,
    cost=Cost(per_step=16, copies=True),
    note="turns all letters of a text to upper case",
)
def to_upper(_runtime: Runtime, text: str) -> JSON:
    """Turn letters to upper case, character by character: the length never changes.

    >>> to_upper('straße')
    "STRAßE"
    """
    return _map(text, str.upper, _upper)


@function(
    "to_lower",
    STRING,
    returns=STRING,
    cost=Cost(per_step=16, copies=True),
    note="turns all letters of a text to lower case",
)
def to_lower(_runtime: Runtime, text: str) -> JSON:
    """Turn letters to lower case, character by character.

    >>> to_lower('A#%&123BC')
    "a#%&123bc"
    """
    return _map(text, str.lower, _lower)


@function(
    "trim",
    STRING,
    STRING,
    returns=STRING,
    cost=Cost(per_step=16, copies=True),
    note="cuts the characters of the second text off both ends",
)
def trim(_runtime: Runtime, text: str, cutset: str) -> JSON:
    """Cut characters off both ends; the second text is a set of characters.

    >>> trim('abcHIcba', 'abc')
    "HI"
    """
    if len(cutset) <= _FEW:
        return text.strip(cutset)
    unwanted = frozenset(cutset)  # `strip` looks every character up by walking over the set
    start = next((index for index, char in enumerate(text) if char not in unwanted), len(text))
    stop = next((index for index in range(len(text), start, -1) if text[index - 1] not in unwanted), start)
    return text[start:stop]


@function("trim_prefix", STRING, STRING, returns=STRING, cost=COPY, note="cuts a prefix off a text, once")
def trim_prefix(_runtime: Runtime, text: str, prefix: str) -> JSON:
    """Cut a prefix off, once.

    >>> trim_prefix('foofoobar', 'foo')
    "foobar"
    """
    return text.removeprefix(prefix)


@function("split", STRING, STRING, returns=ARRAY_OF_STRINGS, cost=READ, note="splits a text at every separator")
def split(runtime: Runtime, text: str, separator: str) -> JSON:
    """Split a text at every separator; an empty separator splits it into characters.

    >>> split('a,b', ',')
    ["a", "b"]
    >>> split('abc', '')
    ["a", "b", "c"]
    """
    charge_search(text, separator, runtime.budget)
    parts = text.count(separator) + 1
    runtime.budget.charge_bytes(parts, per_step=8)
    runtime.budget.produce(len(text) + _POINTER * parts)
    return text.split(separator) if separator else list(text)


@function(
    "pattern_match",
    STRING,
    (STRING, NUMBER),
    returns=BOOL,
    cost=Cost(per_step=4),
    note="matches a wildcard pattern: `*` is any text, `?` any one character",
)
def pattern_match(_runtime: Runtime, pattern: str, value: JSON) -> JSON:
    """Return whether a wildcard pattern matches a whole text or number.

    >>> pattern_match('ng*', 'nginx')
    true
    >>> pattern_match('1?', `12`)
    true
    """
    return wildcard.match(pattern, scalar_text(value))


@function(
    "label_match",
    OBJECT,
    OBJECT,
    returns=BOOL,
    cost=Cost(per_step=ITEM // 2, most=32_768 * ITEM),
    note="checks whether an object has all pairs of another",
)
def label_match(runtime: Runtime, wanted: JSONObject, labels: JSONObject) -> JSON:
    """Return whether every pair of the first object is in the second, equal.

    >>> label_match(`{"app": "web"}`, `{"app": "web", "x": "y"}`)
    true
    """
    return all(key in labels and same(labels[key], value, runtime.budget) for key, value in wanted.items())


@function("to_boolean", STRING, returns=BOOL, cost=FLAT, note="reads true or false from a text in any letter case")
def to_boolean(_runtime: Runtime, text: str) -> JSON:
    """Read `true` or `false` in any letter case.

    >>> to_boolean('TrUe')
    true
    >>> to_boolean('yes')
    error: JMESPath function 'to_boolean': lowercase argument must be 'true' or 'false': a string of 3 characters
    """
    match _map(text, str.lower, _lower) if len(text) <= len("false") else "":
        case "true":
            return True
        case "false":
            return False
    wanted = "lowercase argument must be 'true' or 'false'"
    raise failure("to_boolean", f"{wanted}: {describe(text)}", detailed=f"{wanted} (provided: '{text}')")


@function(
    "path_canonicalize", STRING, returns=STRING, cost=READ, note="shortens a path: no double slashes, no `.` and `..`"
)
def path_canonicalize(runtime: Runtime, path: str) -> JSON:
    """Return the shortest equal path; an empty one stays empty.

    >>> path_canonicalize('/a//b/../c/')
    "/a/c"
    >>> path_canonicalize('..//x')
    "../x"
    """
    if not path:
        return ""
    rooted = path.startswith("/")
    kept: list[str] = []
    count = path.count("/") + 1
    runtime.budget.charge_bytes(count, per_step=4)
    runtime.budget.produce(len(path) + _POINTER * count)
    segments = path.split("/")
    for segment in segments:
        if segment == ".." and kept and kept[-1] != "..":
            kept.pop()
        elif segment not in ("", ".") and not (segment == ".." and rooted):
            kept.append(segment)
    return "/" * rooted + "/".join(kept) or "."


@function("truncate", STRING, NUMBER, returns=STRING, cost=COPY, note="keeps the first n characters of a text")
def truncate(_runtime: Runtime, text: str, length: float) -> JSON:
    """Keep the first characters; a negative length counts as 0, a fraction is cut.

    >>> truncate('héllo', `2.9`)
    "hé"
    """
    return text[: max(min(int(length), len(text)), 0)]


@function(
    "semver_compare",
    STRING,
    STRING,
    returns=BOOL,
    cost=Cost(per_step=2, most=4096),
    note="checks whether a version is in a range of versions",
)
def semver_compare(_runtime: Runtime, version: str, versions: str) -> JSON:
    """Return whether a semantic version is in a range; a version that does not parse counts as 0.0.0.

    >>> semver_compare('4.1.3', '>=4.1.x')
    true
    >>> semver_compare('v1.2.3', '<1.0.0')
    true
    """
    try:
        accepts = semver.parse_range(versions)
    except ValueSyntaxError as error:
        raise unreadable("semver_compare", 2, versions, "a range of versions", error.message) from None
    return accepts(semver.try_version(version) or semver.parse_version("0.0.0"))


def _replace(runtime: Runtime, text: str, old: str, new: str, count: int) -> str:
    charge_search(text, old, runtime.budget)
    found = text.count(old)
    if 0 <= count < found:
        found = count
    runtime.budget.charge_bytes(found, per_step=16)
    runtime.budget.produce(len(text) + found * (len(new) - len(old)))
    return text.replace(old, new, count)


def _map(text: str, whole: Callable[[str], str], change: Callable[[str], str]) -> str:
    """Change every character by `change`: with the text as `whole`, where that gives the same for each of them."""
    if text.isascii():
        return whole(text)
    if not _odd_letters(whole, change).search(text):
        return whole(text)
    if len(text) > _LONG_TEXT:
        raise BudgetExceededError(
            f"a text with letters like `ß` may have {_LONG_TEXT} characters here", resource="bytes"
        )
    return text.translate({ord(char): change(char) for char in frozenset(text)})


@cache
def _odd_letters(whole: Callable[[str], str], change: Callable[[str], str]) -> re.Pattern[str]:
    """Return what finds the letters that Python changes otherwise than `change`: all of them are in the first plane."""
    odd = "".join(char for char in map(chr, range(128, 0x10000)) if whole(char) != change(char))
    return re.compile(f"[{odd}{_FINAL_SIGMA}]")


def _upper(char: str) -> str:
    """Return Unicode's simple upper case of one character."""
    upper = char.upper()
    if len(upper) == 1:
        return upper
    title = char.title()
    return title if len(title) == 1 else char


def _lower(char: str) -> str:
    """Return Unicode's simple lower case of one character."""
    lower = char.lower()
    return lower[0] if len(lower) > 1 else lower


def _fold(char: str) -> str:
    """Return one representative of the characters that Unicode's simple case folding takes for equal."""
    for folded in (char.casefold(), char.lower()):
        if len(folded) == 1:
            return folded
    return char


FUNCTIONS: Final = (
    compare,
    equal_fold,
    replace,
    replace_all,
    to_upper,
    to_lower,
    trim,
    trim_prefix,
    split,
    pattern_match,
    label_match,
    to_boolean,
    path_canonicalize,
    truncate,
    semver_compare,
)
