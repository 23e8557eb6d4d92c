"""Ranges of versions (`>=1.2.0 <2.0.0 || 3.x`) as tests in CEL."""

from __future__ import annotations

import re
from typing import Final

from pyverno.compiler.migration.text import TRUE, Cel, CelType, Level, all_of, any_of, call, literal, ternary

__all__ = ["in_range", "version"]

_ONE: Final = re.compile(r"(>=|<=|!=|=|==|>|<|!)?\s*v?(\d+)\.(\d+)\.(\d+)")
_LESS: Final = {"<": "isLessThan", ">": "isGreaterThan"}


def version(text: Cel) -> Cel:
    """Return a version; a text that is none counts as 0.0.0."""
    zero = call("semver", literal("0.0.0"))
    return ternary(call("isSemver", text, returns=CelType.BOOL), call("semver", text), zero)


def in_range(text: Cel, written: str) -> Cel | None:
    """Return whether a version is in a range; None for forms of ranges that are not taken apart.

    >>> in_range(Cel("v"), ">=1.2.3").text
    "!(isSemver(v) ? semver(v) : semver('0.0.0')).isLessThan(semver('1.2.3'))"
    """
    groups = []
    for alternative in written.split("||"):
        parts = [_comparison(text, part) for part in alternative.replace(",", " ").split()]
        if not parts or any(part is None for part in parts):
            return None
        groups.append(all_of(part for part in parts if part is not None))
    return any_of(groups)


def _comparison(text: Cel, written: str) -> Cel | None:
    found = _ONE.fullmatch(written.strip())
    if found is None:
        return None
    operator = found[1] or "="
    limit = call("semver", literal(f"{found[2]}.{found[3]}.{found[4]}"))
    subject = version(text)

    def test(method: str) -> Cel:
        return Cel(f"{subject.within(TRUE.level)}.{method}({limit.text})", CelType.BOOL)

    match operator:
        case "<" | ">":
            return test(_LESS[operator])
        case "<=":
            return test("isGreaterThan").not_()
        case ">=":
            return test("isLessThan").not_()
    same = Cel(f"{subject.within(TRUE.level)}.compareTo({limit.text}) == 0", CelType.BOOL, Level.RELATION)
    return same.not_() if operator in ("!=", "!") else same
