"""Paths inside a document: `/spec/containers/0`, and the JMESPath expression of the same place.

Paths are those of Kyverno's traversal: segments joined by `/`, a `/` inside a key written `\\/`. This module must never
look at the document itself.
"""

from __future__ import annotations

from pyverno.lazyregex import regex

__all__ = ["join_path", "parse_path", "path_expression", "place_expression", "shown_path"]

_MAX_INDEX = 2**64 - 1
_INDEX = regex(r"[0-9]+")
_OUTER = regex(r"/(?:mutate/foreach/\d+(?:/foreach/\d+)*(?=/)|validate(?:/foreach/\d+)*/(?:pattern|anyPattern)(?=/|$))")
_PATCH = regex(r"^((?:/mutate)?/patchesJson6902)/[\s\S]*$")
_PLAIN = regex(r"[A-Za-z_][A-Za-z0-9_)]*")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def join_path(path: str, segment: str | int) -> str:
    """Return the path of a child.

    >>> join_path("/metadata/annotations", "a/b")
    '/metadata/annotations/a\\\\/b'
    """
    if isinstance(segment, int):
        return f"{path}/{segment}"
    return f"{path}/" + segment.replace("/", "\\/")


def parse_path(path: str) -> tuple[str, ...]:
    """Split a path into its segments; a backslash takes the next character as it is, quotes protect slashes.

    >>> parse_path("/a/e\\\\/e/0")
    ('a', 'e/e', '0')
    """
    # Kyverno: pkg/utils/jsonpointer ParsePath
    segments: list[str] = []
    current: list[str] = []
    escaped = quoted = False
    for character in path:
        if escaped:
            current.append(character)
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == '"':
            quoted = not quoted
        elif character == "/" and not quoted:
            if current:
                segments.append("".join(current))
                current.clear()
        else:
            current.append(character)
    if current:
        segments.append("".join(current))
    return tuple(segments)


def path_expression(segments: tuple[str, ...]) -> str:
    """Return the JMESPath expression that selects what the segments name; digits are list indexes.

    >>> path_expression(("a", "3", "e/e"))
    'a[3]."e/e"'
    """
    text = ""
    for segment in segments:
        if _INDEX.fullmatch(segment) and int(segment[:21]) <= _MAX_INDEX and len(segment) <= 20:
            text += f"[{segment}]"
            continue
        if text:
            text += "."
        text += segment if _PLAIN.fullmatch(segment) else _quote(segment)
    return text


def _quote(segment: str) -> str:
    characters = (_ESCAPES.get(c) or (f"\\u{ord(c):04x}" if c < " " else c) for c in segment)
    return '"' + "".join(characters) + '"'


def shown_path(path: str) -> str:
    """Return the path as error texts name it: within the pattern, or the entry of a mutation's foreach, that it is in.

    >>> shown_path("/validate/foreach/0/pattern/spec"), shown_path("/mutate/patchStrategicMerge/a")
    ('/spec', '/mutate/patchStrategicMerge/a')
    """
    found = _OUTER.match(path)
    return _PATCH.sub(r"\1", path[found.end() :] if found else path)


def place_expression(path: str, root: str) -> str:
    """Return the expression for the place of `path` below `root`: what the variable `@` stands for.

    Everything through a segment `foreach` and then two segments (`mutate/patchStrategicMerge`) are dropped first.

    >>> place_expression("/mutate/overlay/spec/kind", "request.object")
    'request.object.spec.kind'
    """
    segments = parse_path(path)
    if "foreach" in segments:
        segments = segments[segments.index("foreach") + 1 :]
    segments = segments[2:] if len(segments) > 2 else ()
    return path_expression((*root.split("."), *segments))
