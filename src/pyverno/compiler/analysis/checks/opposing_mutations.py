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

from collections.abc import Iterator
from itertools import combinations
from typing import Final

from pyverno.compiler.analysis.checks.unsettled_mutation import is_unsettled
from pyverno.compiler.analysis.finding import Observation, Witness
from pyverno.compiler.analysis.workspace import RuleKey, Workspace, key_of, origin_of, title_of
from pyverno.engine.rule import CompiledRule, Stage
from pyverno.kube.json import JSONObject

__all__ = ["check"]

_ROUNDS: Final = 2


def check(workspace: Workspace) -> Iterator[Observation]:
    """Yield pairs of mutations that undo each other without end; a pair is reported once, not for each copy."""
    seen: set[tuple[RuleKey, RuleKey]] = set()
    rules = [rule for rule in workspace.rules(Stage.MUTATE) if workspace.changed[key_of(rule.info)]]
    for one, other in combinations(rules, 2):
        pair = origin_of(one.info), origin_of(other.info)
        if pair[0] == pair[1] or pair in seen:
            continue
        numbers = {*workspace.changed[key_of(one.info)], *workspace.changed[key_of(other.info)]}
        bodies = (workspace.objects[number] for number in sorted(numbers))
        body = next((body for body in bodies if _oppose(workspace, one, other, body)), None)
        if body is not None:
            seen.add(pair)
            yield _observation(workspace, one, other, body)


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
