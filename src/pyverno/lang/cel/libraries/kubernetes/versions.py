"""Kubernetes' library of semantic versions."""

from __future__ import annotations

from typing import Final

from pyverno.errors import EvaluationError, ValueSyntaxError
from pyverno.kube.semver import Version, parse_version
from pyverno.lang.cel.declarations import Library, function
from pyverno.lang.cel.faults import OperandError
from pyverno.lang.cel.libraries.costs import by_size
from pyverno.lang.cel.types import opaque
from pyverno.lang.cel.values import Value
from pyverno.lang.cel.work import instant, walking

__all__ = ["SEMVER"]


def _version(text: str, normalize: Value = False) -> Version:
    try:
        return parse_version(_normalize(text) if normalize else text)
    except ValueSyntaxError as error:
        quotes = '"' in error.message
        raise OperandError("the text is no semantic version" if quotes else error.message, error.message) from None


def _normalize(text: str) -> str:
    """Drop a leading v and leading zeros, and fill up missing parts."""
    parts = text.removeprefix("v").split(".", 2)
    for position, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[position] = stripped if stripped[:1].isdigit() and stripped[:1].isascii() else "0" + stripped
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise EvaluationError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


def _comparing_versions(operands: tuple[Value, ...]) -> int:
    """Compare the identifiers of two pre-releases, one after the other."""
    return sum(len(each.prerelease) for each in operands if isinstance(each, Version))


@function("semver", "(string) -> kubernetes.Semver", cost=by_size(), work=walking())
def semver(text: str) -> Version:
    """The semantic version that a text names.

    CEL: semver('1.2.3').minor() ⇒ 2
    """
    return _version(text)


@function("semver", "(string, bool) -> kubernetes.Semver", cost=by_size(), since=(1,), work=walking())
def semver_normalized(text: str, normalize: Value) -> Version:
    """The version, after dropping a leading v and leading zeros and filling up missing parts.

    CEL: semver('v1.2', true).minor() ⇒ 2
    """
    return _version(text, normalize)


def _is_version(text: str, normalize: Value = False) -> bool:
    try:
        _version(text, normalize)
    except EvaluationError:
        return False
    return True


@function("isSemver", "(string) -> bool", cost=by_size(), work=walking())
def is_semver(text: str) -> bool:
    """Whether a text names a semantic version.

    CEL: isSemver('v1.2.0') ⇒ false
    """
    return _is_version(text)


@function("isSemver", "(string, bool) -> bool", cost=by_size(), since=(1,), work=walking())
def is_semver_normalized(text: str, normalize: Value) -> bool:
    """Whether a text names a version after normalizing.

    CEL: isSemver('v1.2', true) ⇒ true
    """
    return _is_version(text, normalize)


def _version_order(one: Version, other: Version) -> int:
    return (one > other) - (one < other)


@function("isGreaterThan", "kubernetes.Semver.(kubernetes.Semver) -> bool", work=_comparing_versions)
def version_is_greater_than(value: Version, other: Version) -> bool:
    """Whether a version comes after another.

    CEL: semver('1.10.0').isGreaterThan(semver('1.9.0')) ⇒ true
    """
    return _version_order(value, other) > 0


@function("isLessThan", "kubernetes.Semver.(kubernetes.Semver) -> bool", work=_comparing_versions)
def version_is_less_than(value: Version, other: Version) -> bool:
    """Whether a version comes before another.

    CEL: semver('1.0.0-rc.1').isLessThan(semver('1.0.0')) ⇒ true
    """
    return _version_order(value, other) < 0


@function("compareTo", "kubernetes.Semver.(kubernetes.Semver) -> int", work=_comparing_versions)
def version_compare_to(value: Version, other: Version) -> int:
    """-1, 0 or 1 for before, equal and after.

    CEL: semver('1.0.0').compareTo(semver('1.0.0+build')) ⇒ 0
    """
    return _version_order(value, other)


@function("major", "kubernetes.Semver.() -> int", work=instant)
def major(value: Version) -> int:
    """The first number.

    CEL: semver('1.2.3').major() ⇒ 1
    """
    return value.major


@function("minor", "kubernetes.Semver.() -> int", work=instant)
def minor(value: Version) -> int:
    """The second number.

    CEL: semver('1.2.3').minor() ⇒ 2
    """
    return value.minor


@function("patch", "kubernetes.Semver.() -> int", work=instant)
def patch(value: Version) -> int:
    """The third number.

    CEL: semver('1.2.3').patch() ⇒ 3
    """
    return value.patch


SEMVER: Final = Library(
    "kubernetes.Semver",
    (
        semver, semver_normalized, is_semver, is_semver_normalized, version_is_greater_than, version_is_less_than,
        version_compare_to, major, minor, patch,
    ),
    types=(opaque("kubernetes.Semver"),),
    introduced="1.33",
    doc="Semantic versions.",
)  # fmt: skip
