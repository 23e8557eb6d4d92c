"""References `$(path)`: text of a document that repeats what is elsewhere in the same document.

They are resolved once, at load, since the document they look at is the author's own text.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator
from typing import NamedTuple

from pyverno.errors import SubstitutionError
from pyverno.kube.json import JSON, go_text, is_number
from pyverno.lang.pattern.anchors import parse_anchor
from pyverno.lang.template.location import join_path
from pyverno.lazyregex import go_regex, regex

__all__ = ["Surroundings", "find_references", "resolve_references"]

# Kyverno: pkg/engine/variables/regex; re2 because the greedy run up to the last `)` is not linear elsewhere.
_REFERENCE = go_regex(r"^\$\(.[^ ]*\)|[^\\]\$\(.[^ ]*\)")
_ESCAPED = go_regex(r"\\\$\(.[^ )]*\)")
_RANGE = regex(r"[-|+]?[0-9]+(?:\.[0-9]+)?[A-Za-z]*(!?-)[-|+]?[0-9]+(?:\.[0-9]+)?[A-Za-z]*")
_OPERATORS = (">=", "<=", ">", "<", "!")


class Surroundings(NamedTuple):
    """The document that references look at, and the path there of the part that has them: a rule and its patch.

    With `is_text` the part is one text there (`patchesJson6902`): all that is read from it has the path of the text.
    """

    document: JSON
    path: str
    is_text: bool = False


def find_references(text: str) -> list[str]:
    """Return every reference of a text together with the character before it, as Kyverno finds them.

    >>> find_references("a $(/spec/x) b")
    [' $(/spec/x)']
    """
    if "$(" not in text:
        return []
    return [match.group(0) for match in _REFERENCE.finditer(text)]


def resolve_references(document: JSON, within: Surroundings | None = None) -> JSON:
    """Return the document with all references replaced; the same object when it has none.

    They look at the document itself, or at the larger one of which it is a part. Raises SubstitutionError with
    Kyverno's text when a reference leads nowhere or to something that is no text.

    >>> resolve_references({"a": "x", "b": "$(./../a)"})
    {'a': 'x', 'b': 'x'}
    >>> rule = {"name": "limits", "mutate": {"patchesJson6902": "..."}}
    >>> resolve_references("$(./../../name)", Surroundings(rule, "/mutate/patchesJson6902"))
    'limits'
    """
    if not _mentions_references(document):
        return document
    whole, path, is_text = within or Surroundings(document, "")
    places = {_without_anchors(place): value for place, value in _leaves_and_keys(whole, "")}
    return _resolve(document, path, places, _keep if is_text else join_path)


def _mentions_references(document: JSON) -> bool:
    pending: list[JSON] = [document]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            if "$(" in item:
                return True
        elif isinstance(item, dict):
            pending.extend(item)
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
    return False


def _leaves_and_keys(value: JSON, path: str) -> Iterator[tuple[str, JSON]]:
    # COMPAT: a key is visited under the path of its map, so a reference to a map yields the name of its last key.
    pending: list[tuple[str, JSON]] = [(path, value)]
    while pending:
        path, value = pending.pop()
        if isinstance(value, dict):
            yield from ((path, key) for key in value)
            pending.extend((join_path(path, key), item) for key, item in value.items())
        elif isinstance(value, list):
            pending.extend((join_path(path, index), item) for index, item in enumerate(value))
        else:
            yield path, value


def _without_anchors(path: str) -> str:
    # Kyverno: pkg/engine/anchor RemoveAnchorsFromPath
    segments = path.removeprefix("/").split("/")
    plain = [anchor.key if (anchor := parse_anchor(segment)) else segment for segment in segments]
    joined = "/".join(segment for segment in plain if segment)
    cleaned = posixpath.normpath(joined) if joined else ""
    return f"/{cleaned}" if path.startswith("/") else cleaned


def _resolve(value: JSON, path: str, places: dict[str, JSON], join: Callable[[str, str | int], str]) -> JSON:
    if isinstance(value, str):
        return _resolve_text(value, path, places) if "$(" in value else value
    if isinstance(value, dict):
        return {
            _resolve(key, path, places, join): _resolve(item, join(path, key), places, join)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_resolve(item, join(path, index), places, join) for index, item in enumerate(value)]
    return value


def _keep(path: str, step: str | int) -> str:
    return path


def _resolve_text(text: str, path: str, places: dict[str, JSON]) -> str:
    for found in find_references(text):
        start = 0 if found.startswith("$(") else 1
        text = text.replace(found, found[:start] + _value(found[start:], path, places), 1)
    if "\\$(" in text:
        for escaped in [match.group(0) for match in _ESCAPED.finditer(text)]:
            text = text.replace(escaped, escaped[1:])
    return text


def _value(reference: str, path: str, places: dict[str, JSON]) -> str:
    target = reference.strip("$()")
    operator = _operator(target)
    target = target[len(operator) :]
    if not target:
        raise SubstitutionError(f"failed to resolve {reference} at path {path}: expected path, found empty reference")
    value = places.get(target if target.startswith("/") else _join(path, target))
    if operator:
        return operator + _operand(value, operator, reference, path)
    if value is None:
        raise SubstitutionError(f"got nil resolved variable {reference} at path {path}: <nil>")
    if not isinstance(value, str):
        raise SubstitutionError(f"NotResolvedReferenceErr,reference {reference} not resolved at path {path}")
    return value


def _operator(text: str) -> str:
    # Kyverno: pkg/engine/operator GetOperatorFromStringPattern
    if len(text) < 2:
        return ""
    for operator in _OPERATORS:
        if text.startswith(operator):
            return operator
    match = _RANGE.fullmatch(text)
    return match[1] if match else ""


def _operand(value: JSON, operator: str, reference: str, path: str) -> str:
    if isinstance(value, str):
        return value
    if is_number(value):
        return f"{value:.6f}"  # numbers of a policy are floats in Kyverno
    raise SubstitutionError(
        f"failed to resolve {reference} at path {path}: incorrect expression: operator {operator} does not match "
        f"with value {go_text(value)}"
    )


def _join(path: str, target: str) -> str:
    # Go's path.Join: cleaned, and `..` never climbs above the root
    joined = "/".join(part for part in (path, target) if part)
    cleaned = posixpath.normpath(joined)
    return "/" + cleaned.lstrip("/") if joined.startswith("/") else cleaned
