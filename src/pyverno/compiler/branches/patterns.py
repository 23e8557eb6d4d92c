"""Branches of validation patterns: keys with anchors, and values that pass or fail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyverno.compiler.branches.branch import ABSENT, APPLIES, FAIL, NOT_APPLIED, PASS, PRESENT, Branch
from pyverno.engine.explain.nodes import FieldPath, Node, PatternNode
from pyverno.kube.json import JSON
from pyverno.lang.pattern.anchors import Modifier, parse_anchor

__all__ = ["pattern_branches", "taken_of_pattern"]

_OPAQUE = (Modifier.CONDITION, Modifier.GLOBAL, Modifier.NEGATION, Modifier.EXISTENCE, Modifier.ADD_IF_ABSENT)
_OUTCOMES = {
    Modifier.CONDITION: (APPLIES, NOT_APPLIED),
    Modifier.GLOBAL: (APPLIES, NOT_APPLIED),
    Modifier.NEGATION: (ABSENT, PRESENT),
    Modifier.EXISTENCE: (PASS, FAIL),
    Modifier.ADD_IF_ABSENT: (),
}


def pattern_branches(pattern: JSON, place: FieldPath, rule: str) -> Iterator[Branch]:
    """Yield the branches of a pattern at a place.

    >>> pattern = {"spec": {"=(hostPID)": False, "X(nodeName)": "null"}}
    >>> [(each.place[-1], each.outcome) for each in pattern_branches(pattern, (), "r")]
    [('=(hostPID)', 'absent'), ('=(hostPID)', 'pass'), ('=(hostPID)', 'fail'), ('X(nodeName)', 'absent'), \
('X(nodeName)', 'present')]
    """
    if isinstance(pattern, list):
        if pattern and isinstance(pattern[0], dict):
            yield from pattern_branches(pattern[0], (*place, 0), rule)
        elif pattern and isinstance(pattern[0], list):
            for index, each in enumerate(pattern):
                yield from pattern_branches(each, (*place, index), rule)
        return
    if not isinstance(pattern, dict):
        return
    for key, value in pattern.items():
        here = (*place, key)
        anchor = parse_anchor(key)
        modifier = None if anchor is None else anchor.modifier
        if any(sign in key for sign in "*?"):
            continue  # such a key stands for others, which traces name
        yield from (Branch(here, outcome, "pattern", key, rule) for outcome in _outcomes(modifier, value))
        if modifier not in _OPAQUE:
            yield from pattern_branches(value, here, rule)


def _outcomes(modifier: Modifier | None, value: JSON) -> Sequence[str]:
    if modifier in _OPAQUE:
        return _OUTCOMES[modifier]
    is_leaf = not isinstance(value, dict) and not (isinstance(value, list) and value and _is_nested(value[0]))
    if modifier is Modifier.EQUALITY:
        return (ABSENT, PASS, FAIL) if is_leaf else (ABSENT, PRESENT)
    return (PASS, FAIL) if is_leaf else ()


def _is_nested(value: JSON) -> bool:
    return isinstance(value, (dict, list))


def taken_of_pattern(nodes: Sequence[Node], place: FieldPath) -> Iterator[tuple[FieldPath, str]]:
    """Yield the places of a pattern that a trace reached with their outcomes, also those that are no branches."""
    for position, node in enumerate(nodes):
        if not isinstance(node, PatternNode):
            continue
        if node.part != "key":
            is_map = node.part == "map"
            for child in node.children:
                # a list of maps has one pattern for all elements; lists in lists are matched by position
                at = (*place, 0 if getattr(child, "part", "") == "map" else position) if not is_map else place
                yield from taken_of_pattern((child,), at)
            continue
        here = (*place, node.key)
        for outcome in (PRESENT if node.is_present else ABSENT, *_words(node)):
            yield here, outcome
        yield from taken_of_pattern(node.children, here)


def _words(node: PatternNode) -> Sequence[str]:
    if not node.is_present and node.anchor == "=":
        return ()  # an absent key passes without a look at its value
    return {"pass": (PASS, APPLIES), "fail": (FAIL,), "skip": (NOT_APPLIED,)}[node.outcome]
