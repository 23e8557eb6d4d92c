"""The verdict of a rule from its trace alone: written plainly, from the leaves up, with no help of the engine.

A node's own outcome is not read where its parts allow to recompute it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyverno.engine.explain.nodes import (
    BlockNode,
    CheckNode,
    ConditionNode,
    ConditionsNode,
    ControlNode,
    ElementNode,
    ExceptionNode,
    ExpressionNode,
    ForeachNode,
    GroupNode,
    MatchNode,
    PatchNode,
    PatternNode,
    RuleTrace,
    Shown,
)
from pyverno.engine.rule import Family
from pyverno.lang.pattern.leaf import compile_leaf

__all__ = ["naive_statuses"]

PASS, FAIL, SKIP, ERROR = "pass", "fail", "skip", "error"


def naive_statuses(trace: RuleTrace) -> list[str]:
    """Return the statuses of the results that a rule must have, going by its trace."""
    match = next((node for node in trace.children if isinstance(node, MatchNode)), None)
    if match is None or not _matches(match):
        return []  # a rule that was not evaluated has no nodes
    for node in trace.children:
        if isinstance(node, ConditionsNode):
            met = _met(node)
            if met is not True:
                return [ERROR if met is None else SKIP]
        if isinstance(node, ExceptionNode) and node.applies:
            return [SKIP]
        if isinstance(node, CheckNode):
            return _checked(node, trace)
    return []


def _matches(node: MatchNode) -> bool:
    groups: dict[tuple[object, ...], list[BlockNode]] = {}
    for block in node.children:
        groups.setdefault(block.place[-3:-1], []).append(block)
    fits = {key: [all(field.holds for field in block.children) for block in blocks] for key, blocks in groups.items()}
    if not fits:
        return node.matched
    if any(fits.get(("exclude", "any"), [])) or (fits.get(("exclude", "all")) and all(fits["exclude", "all"])):
        return False
    if ("match", "any") in fits:
        return any(fits["match", "any"])
    return ("match", "all") in fits and all(fits["match", "all"])


def _checked(node: CheckNode, trace: RuleTrace) -> list[str]:
    patterns = [child for child in node.children if isinstance(child, PatternNode)]
    match node.kind:
        case "pattern":
            return [_root(patterns[0])] if patterns else [ERROR]
        case "anyPattern":
            return [_any([_root(each, floats=True) for each in patterns])] if patterns else [ERROR]
        case "deny":
            return [_denied(node)]
        case "foreach":
            status = _foreach(node)
            return [status] if status else []
        case "podSecurity":
            controls = [child for child in node.children if isinstance(child, ControlNode)]
            if not controls:
                return [ERROR]  # a pod that cannot be read
            return [PASS if all(child.allowed for child in controls) else FAIL]
    if trace.rule.type.value == "Mutation":
        return [PASS if any(isinstance(child, PatchNode) for child in node.children) else SKIP]
    return [_expressions(node, trace)]


# --- CEL ------------------------------------------------------------------------------------------------------------


def _expressions(node: CheckNode, trace: RuleTrace) -> str:
    found = [child for child in node.children if isinstance(child, ExpressionNode)]
    conditions = [child for child in found if "matchConditions" in child.place]
    validations = [child for child in found if child.place[-1] == "expression" and child not in conditions]
    validations = [child for child in validations if "variables" not in child.place]
    if any(_truth(each) is False for each in conditions):
        return SKIP
    if any(_truth(each) is None for each in conditions):
        return FAIL if trace.rule.policy.family is Family.RULES else ERROR
    for each in validations:
        truth = _truth(each)
        if truth is not True:
            is_rule = trace.rule.policy.family is Family.RULES
            return FAIL if truth is False or is_rule else ERROR
    return PASS


def _truth(node: ExpressionNode) -> bool | None:
    if node.error or not isinstance(node.value, Shown):
        return None
    return node.value.value is True


# --- conditions -----------------------------------------------------------------------------------------------------


def _denied(node: CheckNode) -> str:
    for child in node.children:
        if isinstance(child, ConditionsNode):
            met = _met(child)
            return ERROR if met is None else FAIL if met else PASS
    return FAIL


def _met(node: ConditionsNode) -> bool | None:
    for child in node.children:
        if isinstance(child, GroupNode):
            met = _group(child)
        elif isinstance(child, ConditionNode):
            met = child.holds
        else:
            continue
        if met is not True:
            return met
    return True


def _group(node: GroupNode) -> bool | None:
    any_of = [child.holds for child in node.children if "any" in child.place[-2:]]
    all_of = [child.holds for child in node.children if "any" not in child.place[-2:]]
    if None in any_of or None in all_of:
        return None
    return (not node.has_any or True in any_of) and False not in all_of


def _foreach(node: CheckNode) -> str:
    applied = False
    problem = ""
    for child in node.children:
        if isinstance(child, ForeachNode) and child.count is None and "Unknown key" not in child.error:
            problem = problem or ERROR
        if not isinstance(child, ElementNode):
            continue
        for part in child.children:
            if isinstance(part, ConditionsNode):
                met = _met(part)
                if met is None:
                    return ERROR
                if not met:
                    break
            if isinstance(part, CheckNode):
                status = _denied(part)
                if status in (FAIL, ERROR):
                    return status
                applied = True
    return PASS if applied else problem


# --- patterns -------------------------------------------------------------------------------------------------------

_Outcome = tuple[str, str]
"""Pass, fail or skip, and the cause."""

_OK: _Outcome = (PASS, "")


def _any(statuses: Sequence[str]) -> str:
    if PASS in statuses:
        return PASS
    return SKIP if all(each == SKIP for each in statuses) else FAIL


def _root(node: PatternNode, *, floats: bool = False) -> str:
    outcome, cause = _Fold(floats).of(node)
    if outcome != FAIL:
        return outcome
    return ERROR if cause == "length" or (cause != "negation" and node.absent) else FAIL


class _Fold:
    """Outcomes from the leaves up."""

    def __init__(self, floats: bool) -> None:
        self._floats = floats

    def of(self, node: PatternNode) -> _Outcome:
        match node.part:
            case "value":
                return self._value(node)
            case "map":
                return self._map(node) if node.is_present else (FAIL, "mismatch")
            case "list":
                return self._list(node)
        return self._key(node)

    def _children(self, node: PatternNode) -> list[PatternNode]:
        return [child for child in node.children if isinstance(child, PatternNode)]

    def _value(self, node: PatternNode) -> _Outcome:
        assert isinstance(node.wanted, Shown)
        assert isinstance(node.found, Shown)
        leaf = compile_leaf(node.wanted.value, float_numbers=self._floats)
        found = node.found.value
        holds = all(map(leaf, found)) if isinstance(found, list) else leaf(found)
        return _OK if holds else (FAIL, "mismatch")

    def _map(self, node: PatternNode) -> _Outcome:
        keys = [(child.anchor, self.of(child)) for child in self._children(node)]
        first = [outcome for anchor, outcome in keys if anchor in ("(", "=", "^", "X")]
        skips = [cause for outcome, cause in first if outcome == SKIP]
        applied = False
        is_skipped = False
        for outcome, cause in first:
            if outcome == SKIP:
                is_skipped = is_skipped or cause == "condition"
            elif outcome == PASS:
                applied = True
            elif not is_skipped:
                return outcome, cause
        if skips and (is_skipped or not applied):
            return SKIP, "all skipped"
        for anchor, (outcome, cause) in keys:
            if anchor not in ("(", "=", "^", "X") and outcome != PASS:
                return outcome, cause
        return _OK

    def _list(self, node: PatternNode) -> _Outcome:
        assert isinstance(node.wanted, Shown)
        pattern = node.wanted.value
        if not node.is_present or not pattern:
            return FAIL, "mismatch"
        children = [self.of(child) for child in self._children(node)]
        if isinstance(pattern[0], list) and not children:
            return FAIL, "length"
        failed = next((each for each in children if each[0] == FAIL), None)
        if failed is not None:
            return failed
        return (SKIP, "all skipped") if children and all(each[0] == SKIP for each in children) else _OK

    def _key(self, node: PatternNode) -> _Outcome:
        children = self._children(node)
        inner = self.of(children[0]) if children else _OK
        match node.anchor:
            case "(":
                return _OK if node.is_present and inner == _OK else (SKIP, "condition")
            case "<":
                return _OK if not node.is_present or inner == _OK else (SKIP, "condition")
            case "=":
                return inner if node.is_present else _OK
            case "X":
                return (FAIL, "negation") if node.is_present else _OK
            case "^":
                return self._existence(node, children) if node.is_present else _OK
        if isinstance(node.wanted, Shown) and node.wanted.value == "*":
            return _OK if node.is_present and node.found is None else (FAIL, "mismatch")
        return inner

    def _existence(self, node: PatternNode, children: Sequence[PatternNode]) -> _Outcome:
        wanted = node.wanted.value if isinstance(node.wanted, Shown) else None
        if not isinstance(wanted, list) or node.cause == "type":
            return FAIL, "mismatch"
        items = iter(children)
        for each in wanted:
            if not isinstance(each, dict) or not self._found(items):
                return FAIL, "mismatch"
        return _OK

    def _found(self, items: Iterator[PatternNode]) -> bool:
        """Return whether some item passes; the items of the next pattern start after the one that does."""
        return any(self.of(item)[0] == PASS for item in items)
