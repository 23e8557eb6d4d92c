"""The branches of a policy document that one explained review took, read from the traces of its rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pyverno.compiler.branches.branch import FAIL, FALSE, FITS, NOT_FITTING, PASS, RUNS, TRUE, BranchKey
from pyverno.compiler.branches.expressions import deciding_parts
from pyverno.compiler.branches.patterns import taken_of_pattern
from pyverno.engine.explain.nodes import (
    BlockNode,
    CheckNode,
    ConditionNode,
    ExpressionNode,
    FieldPath,
    ForeachNode,
    MatchNode,
    Node,
    PartNode,
    PatternNode,
    RuleTrace,
    Shown,
)
from pyverno.engine.result import Status
from pyverno.kube.json import JSON, JSONObject

__all__ = ["rule_path", "taken_branches"]

_TEMPLATES: Final = (("spec", "jobTemplate", "spec", "template"), ("spec", "template"))
_RULE: Final = {Status.PASS: PASS, Status.FAIL: FAIL, Status.WARN: FAIL}


def taken_branches(trace: RuleTrace, policy: JSON) -> frozenset[BranchKey]:
    """Return the keys of what a rule took; keys that are no branch of the document are among them.

    A copy of a rule for kinds that create Pods counts for the rule as written.
    """
    root = rule_path(policy, trace)
    rule = _value_at(policy, root)
    found: set[BranchKey] = set()
    for place, part, outcome in _taken(trace, rule if isinstance(rule, dict) else {}):
        at = _without_template(place) if trace.rule.origin else place
        found.add(((*root, *at), part, outcome))
    return frozenset(found)


def rule_path(policy: JSON, trace: RuleTrace) -> FieldPath:
    """Return the path of a rule in its document; () for policies that are one rule."""
    rules = _value_at(policy, ("spec", "rules"))
    names = [rule.get("name") if isinstance(rule, dict) else None for rule in rules] if isinstance(rules, list) else []
    name = trace.rule.origin or trace.rule.name
    return ("spec", "rules", names.index(name)) if name in names else ()


def _value_at(value: JSON, path: FieldPath) -> JSON:
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _taken(trace: RuleTrace, rule: JSONObject) -> Iterator[BranchKey]:
    for result in trace.results:
        outcome = _RULE.get(result.status)
        if outcome is not None:
            yield (), -1, outcome
    pending: list[Node] = list(trace.children)
    while pending:
        node = pending.pop()
        pending.extend(getattr(node, "children", ()))
        match node:
            case MatchNode(role="rule"):
                yield from _of_match(node, rule)
            case ConditionNode() if node.holds is not None:
                yield node.place, -1, TRUE if node.holds else FALSE
            case CheckNode(kind="pattern"):
                yield from ((place, -1, word) for place, word in taken_of_pattern(node.children, node.place))
            case CheckNode(kind="anyPattern"):
                patterns = [each for each in node.children if isinstance(each, PatternNode)]
                for index, each in enumerate(patterns):
                    yield from ((place, -1, word) for place, word in taken_of_pattern((each,), (*node.place, index)))
            case ForeachNode() if node.count:
                yield node.place, -1, RUNS
            case ExpressionNode():
                yield from _of_expression(node)


def _of_match(node: MatchNode, rule: JSONObject) -> Iterator[BranchKey]:
    blocks = [each for each in node.children if isinstance(each, BlockNode)]
    matches = any(each.holds for each in blocks if each.place[:1] == ("match",))
    for block in blocks:
        word = str(block.place[0]) if block.place else ""
        written = rule.get(word)
        is_flat = isinstance(written, dict) and not written.get("any") and not written.get("all")
        place: FieldPath = (word,) if is_flat else block.place
        if word == "exclude" and not matches:
            continue  # the exclude block counts only for objects that the rule matches
        if block.holds:
            yield place, -1, FITS
        elif word == "exclude" or any(not each.holds and each.field != "kinds" for each in block.children):
            yield place, -1, NOT_FITTING


def _of_expression(node: ExpressionNode) -> Iterator[BranchKey]:
    if isinstance(node.value, Shown) and isinstance(node.value.value, bool):
        yield node.place, -1, TRUE if node.value.value else FALSE
    parts = {part.node: part.number for part in deciding_parts(node.text)}
    if not parts:
        return
    for child in node.children:
        if not isinstance(child, PartNode) or child.offset not in parts or not isinstance(child.value, Shown):
            continue
        if isinstance(child.value.value, bool):
            yield node.place, parts[child.offset], TRUE if child.value.value else FALSE


def _without_template(place: Sequence[str | int]) -> FieldPath:
    """Return the place in the rule as written, of a place in its copy for kinds that create Pods."""
    for template in _TEMPLATES:
        for start in range(len(place) - len(template) + 1):
            if tuple(place[start : start + len(template)]) == template:
                return (*place[:start], *place[start + len(template) :])
    return tuple(place)
