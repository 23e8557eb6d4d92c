"""Semantic versions and version ranges with the grammar and the error texts of blang/semver v4.

A version has exactly three numbers; ranges are comparators joined by blanks (and) or `||` (or), with `x` as wildcard.
Forms that blang refuses (`v1.2.3`, `1.2`, `^1.0.0`, `~1.2`) are errors.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import lru_cache, total_ordering

from pyverno.errors import ValueSyntaxError
from pyverno.kube.names import MAX_NAME
from pyverno.lazyregex import regex
from pyverno.value import dataclass

__all__ = ["Range", "Version", "parse_range", "parse_version", "try_version"]

Range = Callable[["Version"], bool]
"""A compiled range: returns whether a version is in it."""

_DIGITS = regex(r"[0-9]*")
_WORD = regex(r"[0-9A-Za-z-]*")
_UINT64_MAX = 2**64 - 1
_COMPARATORS: dict[str, Callable[[Version, Version], bool]] = {
    "": operator.eq,
    "=": operator.eq,
    "==": operator.eq,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "!": operator.ne,
    "!=": operator.ne,
}


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """One version; order and equality follow precedence, so build metadata does not count.

    >>> parse_version("1.2.3-rc.1") < parse_version("1.2.3")
    True
    """

    major: int = 0
    minor: int = 0
    patch: int = 0
    prerelease: tuple[int | str, ...] = ()
    build: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = f"{self.major}.{self.minor}.{self.patch}"
        if self.prerelease:
            text += "-" + ".".join(map(str, self.prerelease))
        return text + ("+" + ".".join(self.build) if self.build else "")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self._order() == other._order()

    def __lt__(self, other: Version) -> bool:
        return self._order() < other._order()

    def __hash__(self) -> int:
        return hash(self._order())

    def _order(self) -> tuple[int, int, int, bool, tuple[tuple[int, int, str], ...]]:
        # A release follows its pre-releases; numbers precede words.
        parts = tuple((0, part, "") if isinstance(part, int) else (1, 0, part) for part in self.prerelease)
        return self.major, self.minor, self.patch, not self.prerelease, parts


def parse_version(text: str) -> Version:
    """Read `major.minor.patch[-prerelease][+build]`; raises `ValueSyntaxError` with blang's text.

    >>> parse_version("1.2.3-rc.1").prerelease
    ('rc', 1)
    """
    if not text:
        raise ValueSyntaxError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise ValueSyntaxError("No Major.Minor.Patch elements found")
    major = _part(parts[0], "major", "Major")
    minor = _part(parts[1], "minor", "Minor")
    rest, has_build, build = parts[2].partition("+")
    patch_text, has_prerelease, prerelease = rest.partition("-")
    patch = _part(patch_text, "patch", "Patch")
    identifiers = tuple(map(_prerelease, prerelease.split("."))) if has_prerelease else ()
    metadata = tuple(build.split(".")) if has_build else ()
    for item in metadata:
        if not item:
            raise ValueSyntaxError("Build meta data is empty")
        if not _WORD.fullmatch(item):
            raise ValueSyntaxError(f"Invalid character(s) found in build meta data {_quote(item)}")
    return Version(major, minor, patch, identifiers, metadata)


def try_version(text: str) -> Version | None:
    """Read a version; None when the text is not one.

    >>> try_version("v1.2.3") is None
    True
    """
    try:
        return parse_version(text)
    except ValueSyntaxError:
        return None


def parse_range(text: str) -> Range:
    """Compile a range; raises `ValueSyntaxError` with blang's text.

    >>> parse_range(">=1.2.x <2.0.0 || 3.x")(parse_version("3.4.5"))
    True
    """
    return _parse_range(text) if len(text) <= MAX_NAME else _read_range(text)


def _read_range(text: str) -> Range:
    alternatives: list[tuple[tuple[Callable[[Version, Version], bool], Version], ...]] = []
    for group in [_expand(group) for group in _alternatives(_pieces(text))]:
        terms = []
        for piece in group:
            sign, version = _split_comparator(piece)
            try:
                terms.append((_comparator(sign, version), _bound(sign, version)))
            except ValueSyntaxError as error:
                raise ValueSyntaxError(f"Could not parse Range {_quote(piece)}: {error.message}") from None
        alternatives.append(tuple(terms))

    if not any(alternatives):
        # COMPAT: blang returns a range without a function here, which crashes when called.
        raise ValueSyntaxError(f"Could not parse Range {_quote(text)}: Version string empty")
    # An empty alternative between two `||` is a function that crashes in blang; here it holds for nothing.
    filled = tuple(filter(None, alternatives))

    def is_inside(version: Version) -> bool:
        return any(all(compare(version, bound) for compare, bound in terms) for terms in filled)

    return is_inside


_parse_range = lru_cache(maxsize=512)(_read_range)


def _part(text: str, name: str, title: str) -> int:
    if not _DIGITS.fullmatch(text):
        raise ValueSyntaxError(f"Invalid character(s) found in {name} number {_quote(text)}")
    if len(text) > 1 and text[0] == "0":
        raise ValueSyntaxError(f"{title} number must not contain leading zeroes {_quote(text)}")
    return _uint(text)


def _uint(text: str) -> int:
    if not text:
        raise ValueSyntaxError('strconv.ParseUint: parsing "": invalid syntax')
    if len(text) > 20 or int(text) > _UINT64_MAX:
        raise ValueSyntaxError(f"strconv.ParseUint: parsing {_quote(text)}: value out of range")
    return int(text)


def _prerelease(text: str) -> int | str:
    if not text:
        raise ValueSyntaxError("Prerelease is empty")
    if _DIGITS.fullmatch(text):
        if len(text) > 1 and text[0] == "0":
            raise ValueSyntaxError(f"Numeric PreRelease version must not contain leading zeroes {_quote(text)}")
        return _uint(text)
    if not _WORD.fullmatch(text):
        raise ValueSyntaxError(f"Invalid character(s) found in prerelease {_quote(text)}")
    return text


def _pieces(text: str) -> list[str]:
    """Cut at blanks that do not follow `<`, `>` or `=`; pieces of a single character are dropped, as in blang."""
    pieces: list[str] = []
    start, last = 0, ""
    for index, character in enumerate(text):
        if character != " ":
            last = character
        elif last not in ("<", ">", "="):
            if start < index - 1:
                pieces.append(text[start:index])
            start = index + 1
    if start < len(text) - 1:
        pieces.append(text[start:])
    return [piece.replace(" ", "") for piece in pieces]


def _alternatives(pieces: list[str]) -> list[list[str]]:
    groups: list[list[str]] = [[]]
    for index, piece in enumerate(pieces):
        if piece != "||":
            groups[-1].append(piece)
        elif index == 0:
            raise ValueSyntaxError("First element in range is '||'")
        else:
            groups.append([])
    if not groups[-1]:
        raise ValueSyntaxError("Last element in range is '||'")
    return groups


def _split_comparator(piece: str) -> tuple[str, str]:
    for index, character in enumerate(piece):
        if character.isdecimal():
            return piece[:index].strip(), piece[index:]
    raise ValueSyntaxError(f"Could not get version from string: {_quote(piece)}")


def _comparator(sign: str, version: str) -> Callable[[Version, Version], bool]:
    found = _COMPARATORS.get(sign)
    if found is None:
        raise ValueSyntaxError(f"Could not parse comparator {_quote(sign)} in {_quote(sign + version)}")
    return found


def _bound(sign: str, version: str) -> Version:
    try:
        return parse_version(version)
    except ValueSyntaxError as error:
        where = f"{_quote(version)} in {_quote(sign + version)}"
        raise ValueSyntaxError(f"Could not parse version {where}: {error.message}") from None


def _expand(group: list[str]) -> list[str]:
    """Replace each piece with `x` by comparators without it."""
    expanded: list[str] = []
    for piece in group:
        if "x" not in piece:
            expanded.append(piece)
            continue
        sign, version = _split_comparator(piece)
        flat = version.replace(".x.x", ".x", 1).replace(".x", ".0", 1)
        if flat.count(".") == 1:
            flat += ".0"
        result = {">": ">=", ">=": ">=", "<": "<", "<=": "<", "!": ">=", "!=": ">=", "": "<", "=": "<", "==": "<"}.get(
            sign, ""
        )
        if sign in ("", "=", "=="):
            expanded.append(">=" + flat)
        elif sign in ("!", "!="):
            expanded.append("<" + flat)
        is_raised = sign in (">", "<=", "", "=", "==", "!", "!=")
        expanded.append(result + (_raised(version, flat) if is_raised else flat))
    return expanded


def _raised(version: str, flat: str) -> str:
    """Return the first version behind what the wildcard covers; empty when it is not a wildcard after all."""
    parts = version.split(".")
    numbers = flat.split(".")
    if parts[-1] != "x" or len(parts) not in (2, 3):
        return ""
    index = len(parts) - 2
    if not numbers[index] or not _DIGITS.fullmatch(numbers[index]) or len(numbers[index]) > 18:
        return ""
    numbers[index] = str(int(numbers[index]) + 1)
    return ".".join(numbers)


def _quote(text: str) -> str:
    import json  # for texts of errors only

    return json.dumps(text, ensure_ascii=False)
