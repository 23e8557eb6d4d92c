"""Wildcards of Kyverno as tests in CEL: `*` is any run of characters, `?` exactly one."""

from __future__ import annotations

import re

from pyverno.compiler.migration.text import TRUE, Cel, CelType, Level, call, compare, literal

__all__ = ["computed_regex", "fits", "fits_either_way", "regex_of"]

_SPECIAL = re.compile(r"([\\.+^$()\[\]{}|*?])")


def fits(text: Cel, pattern: str) -> Cel:
    r"""Return whether a text fits a wildcard.

    >>> str(fits(Cel("c.image"), "r.io/*")), str(fits(Cel("c.image"), "*:latest")), str(fits(Cel("x"), "a*b?"))
    ("c.image.startsWith('r.io/')", "c.image.endsWith(':latest')", "x.matches('(?s)^a.*b.$')")
    """
    bare = pattern.strip("*")
    if "?" not in pattern and "*" not in bare:
        if pattern == "":
            return compare(text, "==", literal(""))
        if not bare:
            return TRUE
        starts, ends = not pattern.startswith("*"), not pattern.endswith("*")
        if starts and ends:
            return compare(text, "==", literal(pattern))
        name = "startsWith" if starts else "endsWith" if ends else "contains"
        return text.method(name, literal(bare), returns=CelType.BOOL)
    if pattern.replace("*", "") == "?" and "*" in pattern:
        return compare(text, "!=", literal(""))
    if pattern.strip("?") == "":
        return compare(call("size", text, returns=CelType.INT), "==", literal(len(pattern)))
    return text.method("matches", literal(regex_of(pattern)), returns=CelType.BOOL)


def regex_of(pattern: str) -> str:
    r"""Return the regular expression of a wildcard, for the whole text.

    >>> print(regex_of("a*.b?"))
    (?s)^a.*\.b.$
    """
    inner = _SPECIAL.sub(lambda found: {"*": ".*", "?": "."}.get(found[1], "\\" + found[1]), pattern)
    return f"(?s)^{inner}$"


def fits_either_way(text: Cel, constants: list[str]) -> Cel:
    """Return whether a text that is a wildcard itself fits one of some constants.

    Kyverno: the operators AnyIn and AllIn take wildcards on both sides.
    """
    expanded = computed_regex(text)
    # a wildcard with a backslash fits no constant without one
    has_wildcard = text.method("matches", literal(r"^[^\\]*[*?][^\\]*$"), returns=CelType.BOOL)
    if len(constants) == 1:
        found = Cel(f"{literal(constants[0]).text}.matches({expanded})", CelType.BOOL)
    else:
        found = literal(list(constants)).macro("exists", "option", Cel(f"option.matches({expanded})", CelType.BOOL))
    return Cel(f"{has_wildcard.text} && {found.text}", CelType.BOOL, Level.AND)


def computed_regex(pattern: Cel) -> str:
    """Return the expression of the regular expression for a wildcard that is only known at run time."""
    stars = pattern.method("replace", literal("*"), literal("\\E.*\\Q"))
    expanded = stars.method("replace", literal("?"), literal("\\E.\\Q"))
    return f"{literal('(?s)^' + chr(92) + 'Q').text} + {expanded.text} + {literal(chr(92) + 'E$').text}"
