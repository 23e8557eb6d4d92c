"""A key of a pattern looks like an anchor and is none.

Anchors are `(key)`, `=(key)`, `^(key)`, `X(key)`, `<(key)` and `+(key)`. Every other key is the name of a field, so
that `(hostPID` or `x(hostPID)` asks for a field of that name, which no object has.

Example::

    pattern:
      spec:
        (=hostPID): false
        x(hostNetwork): "null"

Write instead::

    pattern:
      spec:
        =(hostPID): false
        X(hostNetwork): "null"
"""

from __future__ import annotations

from collections.abc import Iterator

from pyverno.compiler.lints.lint import Edit, Problem, Subject, Workspace
from pyverno.compiler.lints.walking import maps, overlays, patterns
from pyverno.lang.pattern.anchors import parse_anchor
from pyverno.lazyregex import regex
from pyverno.policy.clusterpolicy import ClusterPolicy

__all__ = ["check"]

_INSIDE = regex(r"\(([+<=^])([A-Za-z][\w.-]*)\)")
_PREFIX = regex(r"(\S{1,2}?)\(([A-Za-z][\w.-]*)\)")
_SPACED = regex(r"([+<=X^]) +\((.+)\)")
_OPEN = regex(r"[+<=X^]?\([^()]+")
_CLOSED = regex(r"[+<=X^]?[A-Za-z][\w.-]*\)")
_MEANT = {"x": "X", "!": "X", "==": "=", "=>": "=", "=<": "<", "++": "+", "^^": "^"}


def check(subject: Subject, _workspace: Workspace) -> Iterator[Problem]:
    """Yield the keys of patterns and patches that are almost anchors."""
    if not isinstance(subject.written, ClusterPolicy):
        return
    for rule in subject.written.spec.rules:
        for pattern, path, _ in (*patterns(rule), *overlays(rule)):
            for found, place in maps(pattern, path):
                for key in found:
                    if "(" in key or ")" in key:
                        yield from _problems(key, (*place, key))


def _problems(key: str, path: tuple[str | int, ...]) -> Iterator[Problem]:
    inside = _INSIDE.fullmatch(key)
    if inside is not None:
        yield _problem(key, f"{inside[1]}({inside[2]})", path)
        return
    if parse_anchor(key) is not None:
        return
    for form in (_PREFIX, _SPACED):
        found = form.fullmatch(key)
        if found is not None:
            meant = _MEANT.get(found[1], found[1] if form is _SPACED else "")
            yield _problem(key, f"{meant}({found[2]})" if meant else "", path)
            return
    if _OPEN.fullmatch(key) or _CLOSED.fullmatch(key):
        text = f"`{key}` is no anchor but the name of a field: a parenthesis is missing"
        yield Problem(path, text, key=True)


def _problem(key: str, meant: str, path: tuple[str | int, ...]) -> Problem:
    hint = f": did you mean `{meant}`?" if meant else ""
    edit = Edit(path, key, meant, key=True) if meant else None
    return Problem(path, f"`{key}` is no anchor but the name of a field{hint}", key=True, edit=edit)
