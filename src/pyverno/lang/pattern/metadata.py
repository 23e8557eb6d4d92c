"""Wildcard keys under metadata.labels and metadata.annotations of a pattern.

Such a key stands for every key of the resource that it matches, in the order of their texts; without a match it keeps
its wildcard and is a missing key. Where the resource has the map, entries of the pattern whose value is no text are
dropped. This module finds which keys stand for which; it must not match values (see `checks`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.wildcard import compile_wildcard, has_wildcard
from pyverno.lang.pattern.anchors import Anchor, parse_anchor
from pyverno.lang.pattern.literal import Literal

__all__ = ["TAGS", "KeyResolver", "ResolvedKey", "compile_key", "find_tag", "text_entries"]

TAGS = ("labels", "annotations")
"""The maps under `metadata` whose keys may hold wildcards."""

ResolvedKey = tuple[str, Anchor | None]
"""A key as it sorts among others, and the anchor that the pattern gave it."""
KeyResolver = Callable[[Mapping[str, JSON]], Sequence[ResolvedKey]]


def find_tag(pattern: JSONObject, tag: str) -> str | None:
    """Return the key of a pattern for a tag: the plain one, else the first anchored one.

    >>> find_tag({"=(metadata)": {}}, "metadata")
    '=(metadata)'
    """
    if tag in pattern:
        return tag
    for key in sorted(pattern):
        anchor = parse_anchor(key)
        if anchor is not None and anchor.key == tag:
            return key
    return None


def text_entries(entries: Mapping[str, JSON]) -> dict[str, str]:
    """Return the entries whose value is a text.

    >>> text_entries({"a": "b", "c": None})
    {'a': 'b'}
    """
    return {key: value for key, value in entries.items() if isinstance(value, str)}


def compile_key(key: str) -> KeyResolver | None:
    """Compile a key with wildcards into what it becomes for the labels of a resource; None for any other key.

    Keys of the resource are names, whatever they look like: only the pattern has anchors.

    >>> [text for text, _ in compile_key("=(app*)")({"app.kubernetes.io/name": "x", "app": "y"})]
    ['=(app)', '=(app.kubernetes.io/name)']
    >>> compile_key("*")({"(app)": "x"})
    [('(app)', None)]
    >>> compile_key("app*")({})
    [('app*', None)]
    """
    if not has_wildcard(key) or isinstance(key, Literal):
        return None
    anchor = parse_anchor(key)
    matches = compile_wildcard(key if anchor is None else anchor.key)
    missing = [(key if anchor is None else str(anchor), anchor)]

    def resolve(labels: Mapping[str, JSON]) -> Sequence[ResolvedKey]:
        # Kyverno: pkg/engine/wildcards judges one match of a Go map only, so that a second key escapes the pattern
        texts = (name for name in filter(matches, labels) if isinstance(labels[name], str))
        found = sorted(texts)  # guard: a wildcard key stands for every key
        if not found:
            return missing
        if anchor is None:
            return [(name, None) for name in found]  # guard: a key of a resource is no anchor
        return [(str(each), each) for name in found if (each := Anchor(anchor.modifier, name))]

    return resolve
