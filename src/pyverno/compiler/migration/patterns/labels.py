"""Keys with wildcards under metadata.labels and metadata.annotations: every key that matches is judged."""

from __future__ import annotations

from collections.abc import Mapping

from pyverno.compiler.migration.outcome import UnconvertibleError, join_path
from pyverno.compiler.migration.patterns.leaves import leaf_test
from pyverno.compiler.migration.patterns.wildcards import text_matches
from pyverno.compiler.migration.schema import Shape
from pyverno.compiler.migration.text import TRUE, Cel, CelType, Reference, all_of, any_of
from pyverno.kube.wildcard import has_wildcard
from pyverno.lang.pattern.anchors import Modifier, parse_anchor

__all__ = ["label_entries"]


def label_entries(entries: Mapping[str, str], labels: Reference, path: str) -> tuple[dict[str, str], list[Cel]]:
    """Return the entries with fixed keys, and tests for those with wildcards, given that the map is there.

    >>> fixed, tests = label_entries({"a": "b", "corp/*": "?*"}, Reference("m"), "labels")
    >>> fixed, str(tests[0])
    ({'a': 'b'}, "m.exists(k, k.startsWith('corp/')) && m.all(k, !k.startsWith('corp/') || m[k] != '')")
    """
    fixed = {key: text for key, text in entries.items() if not has_wildcard(key)}
    tests = [_wild(key, text, labels, path) for key, text in entries.items() if has_wildcard(key)]
    return fixed, tests


def _wild(key: str, pattern: str, labels: Reference, path: str) -> Cel:
    anchor = parse_anchor(key)
    place = join_path(path, key)
    if anchor is not None and anchor.modifier not in (Modifier.EQUALITY, Modifier.NEGATION, Modifier.ADD_IF_ABSENT):
        raise UnconvertibleError("label-wildcard", place, "a condition has a key with wildcards", "write the full key")
    map_ = labels.assumed().value()
    wanted = key if anchor is None else anchor.key
    fits = text_matches(Cel("k", CelType.STRING), wanted)
    some = map_.macro("exists", "k", fits)
    if anchor is not None and anchor.modifier is Modifier.NEGATION:
        return some.not_()
    if pattern == "*":
        return some if anchor is None else TRUE
    test = leaf_test(pattern, Shape.STRING, place)
    every = map_.macro("all", "k", any_of([fits.not_(), test.test(Cel(f"{map_.text}[k]", CelType.STRING))]))
    # a missing key satisfies an anchor, and a pattern that accepts nothing
    return all_of([some, every]) if anchor is None and not test.accepts_missing else every
