"""Changes of validation patterns and of overlays: keys dropped, anchors changed, values changed."""

from __future__ import annotations

from pyverno.compiler.mutants.mutant import Changes, removed, renamed
from pyverno.compiler.mutants.values import constant_changes
from pyverno.engine.explain.nodes import FieldPath
from pyverno.kube.json import JSON
from pyverno.lang.pattern.anchors import Modifier, parse_anchor

__all__ = ["overlay_changes", "pattern_changes"]


def pattern_changes(pattern: JSON, place: FieldPath) -> Changes:
    """Yield the changes of a validation pattern."""
    if isinstance(pattern, list):
        nested = [index for index, each in enumerate(pattern) if isinstance(each, (dict, list))]
        # of a list of maps the engine reads the first one
        for index in nested[:1] if pattern and isinstance(pattern[0], dict) else nested:
            yield from pattern_changes(pattern[index], (*place, index))
        if pattern and not nested:
            yield from constant_changes(pattern[0], (*place, 0))
        return
    if not isinstance(pattern, dict):
        return
    for key, value in pattern.items():
        here = (*place, key)
        anchor = parse_anchor(key)
        modifier = None if anchor is None else anchor.modifier
        is_leaf = not isinstance(value, (dict, list))
        if modifier is not None or is_leaf:
            yield removed(here, f"key `{key}` is dropped")
        if modifier is Modifier.NEGATION:
            continue  # the value of such a key is never read
        if anchor is not None:
            yield renamed(here, anchor.key)
        elif is_leaf:
            yield renamed(here, f"=({key})")
        if is_leaf:
            yield from constant_changes(value, here)
        else:
            yield from pattern_changes(value, here)


def overlay_changes(overlay: JSON, place: FieldPath) -> Changes:
    """Yield the changes of a strategic merge patch, or of the data of a generate rule."""
    if isinstance(overlay, list):
        for index, each in enumerate(overlay):
            if isinstance(each, (dict, list)):
                yield from overlay_changes(each, (*place, index))
        yield from constant_changes(overlay, place)
        return
    if not isinstance(overlay, dict):
        return
    for key, value in overlay.items():
        here = (*place, key)
        anchor = parse_anchor(key)
        if anchor is not None:
            yield renamed(here, anchor.key)
        if not isinstance(value, (dict, list)):
            yield removed(here, f"key `{key}` is dropped")
            yield from constant_changes(value, here)
        else:
            yield from overlay_changes(value, here)
