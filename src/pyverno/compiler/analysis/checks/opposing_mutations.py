"""Two mutations undo each other.

Each changes what the other one leaves, again and again: the order in which policies run decides, and every update of
the object changes it back and forth.

Example::

    - name: tier-gold
      match: {any: [{resources: {kinds: [Pod]}}]}
      mutate: {patchStrategicMerge: {metadata: {labels: {tier: gold}}}}
    - name: tier-silver      # the last of the two wins
      match: {any: [{resources: {kinds: [Pod]}}]}
      mutate: {patchStrategicMerge: {metadata: {labels: {tier: silver}}}}
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final

from pyverno.compiler.analysis.checks.unsettled_mutation import is_unsettled
from pyverno.compiler.analysis.finding import Observation, Witness
from pyverno.compiler.analysis.workspace import RuleKey, Workspace, key_of, origin_of, title_of
from pyverno.engine.rule import CompiledRule, Stage
from pyverno.kube.json import JSONObject
from pyverno.kube.patch.jsondiff import create_patch

__all__ = ["check"]

_ROUNDS: Final = 2
_FEW: Final = 3
_MOST_PAIRS: Final = 5000
"""Pairs of mutations that are tried: one takes milliseconds."""


def check(workspace: Workspace) -> Iterator[Observation]:
    """Yield pairs of mutations that undo each other without end; a pair is reported once, not for each copy."""
    seen: set[tuple[RuleKey, RuleKey]] = set()
    rules = [rule for rule in workspace.rules(Stage.MUTATE) if workspace.changed[key_of(rule.info)]]
    for one, other in _pairs(workspace, rules):
        pair = origin_of(one.info), origin_of(other.info)
        if pair[0] == pair[1] or pair in seen:
            continue
        numbers = {*workspace.changed[key_of(one.info)], *workspace.changed[key_of(other.info)]}
        bodies = (workspace.objects[number] for number in sorted(numbers))
        body = next((body for body in bodies if _oppose(workspace, one, other, body)), None)
        if body is not None:
            seen.add(pair)
            yield _observation(workspace, one, other, body)


def _pairs(workspace: Workspace, rules: Sequence[CompiledRule]) -> Iterator[tuple[CompiledRule, CompiledRule]]:
    """Yield the pairs to try: all of them, or of too many those that change the same field, while there is room."""
    possible = len(rules) * (len(rules) - 1) // 2
    if possible <= _MOST_PAIRS:
        yield from combinations(rules, 2)
        return
    sample, by_path = workspace.sample, dict[str, list[int]]()
    sample.possible = possible
    for number, rule in enumerate(rules):
        before = {each: None for path in _paths(workspace, rule) for each in by_path.setdefault(path, [])}
        for each in before:
            if sample.tried == _MOST_PAIRS:
                return
            sample.tried += 1
            yield rules[each], rule
        for path in _paths(workspace, rule):
            by_path[path].append(number)


def _paths(workspace: Workspace, rule: CompiledRule) -> list[str]:
    """Return the paths that a rule changes in the first objects that it changes."""
    bodies = (workspace.objects[number] for number in workspace.changed[key_of(rule.info)][:_FEW])
    engine = workspace.engine_of(rule)
    steps = (step for body in bodies for step in create_patch(body, workspace.mutated(engine, body)))
    return [*dict.fromkeys(str(step["path"]) for step in steps)]


def _oppose(workspace: Workspace, one: CompiledRule, other: CompiledRule, body: JSONObject) -> bool:
    """Return whether each rule changes what the other one left, though neither changes its own result."""
    current = body
    for number in range(2 * _ROUNDS):
        after = workspace.mutated(workspace.engine_of((one, other)[number % 2]), current)
        if after is current and number:
            return False
        current = after
    return not any(is_unsettled(workspace, rule, body) for rule in (one, other))


def _observation(workspace: Workspace, one: CompiledRule, other: CompiledRule, body: JSONObject) -> Observation:
    body = workspace.smallest(body, lambda each: _oppose(workspace, one, other, each))
    first = workspace.mutated(workspace.engine_of(one), body)
    second = workspace.mutated(workspace.engine_of(other), first)
    titles = title_of(one.info), title_of(other.info)
    return Observation(
        f"{titles[0]} and {titles[1]} undo each other",
        titles,
        (
            Witness(
                f"as {titles[0]} leaves it, then {titles[1]}, then {titles[0]} again",
                body,
                after=(first, second, workspace.mutated(workspace.engine_of(one), second)),
            ),
        ),
        one.info.location,
    )
