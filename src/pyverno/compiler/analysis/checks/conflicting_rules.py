"""No object satisfies both of two rules.

Of the objects that both rules match, none passed both, though each rule passes some that the other refuses. Whoever
satisfies one rule breaks the other. Objects of both sides are merged and varied before the rules count as a conflict.

Example::

    - name: team-in-labels
      match: {any: [{resources: {kinds: [Pod]}}]}
      validate: {pattern: {metadata: {labels: {team: "?*"}}}}
    - name: no-team-in-labels      # no Pod passes both
      match: {any: [{resources: {kinds: [Pod]}}]}
      validate: {pattern: {metadata: {X(labels): {team: "?*"}}}}
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final

from pyverno.compiler.analysis.finding import Observation, Witness
from pyverno.compiler.analysis.workspace import RuleKey, Workspace, count, key_of, origin_of, title_of
from pyverno.engine.result import Status
from pyverno.engine.rule import CompiledRule, Stage
from pyverno.kube.json import JSONObject

__all__ = ["check"]

_FEWEST: Final = 2
"""Objects that each rule alone must pass before a finding counts."""


def check(workspace: Workspace) -> Iterator[Observation]:
    """Yield pairs of rules of which no object satisfied both; a pair is reported for the first kind it occurs in."""
    rules = [rule for rule in workspace.rules(Stage.VALIDATE) if key_of(rule.info) in workspace.verdicts]
    seen: set[tuple[RuleKey, RuleKey]] = set()
    for kind, of_kind in workspace.kinds.items():
        choosy = [rule for rule in rules if _is_choosy(workspace, rule, of_kind)]
        passed = [workspace.verdicts[key_of(rule.info)].passed & of_kind for rule in choosy]
        for (one, first), (other, second) in combinations(zip(choosy, passed, strict=True), 2):
            if first & second:
                continue  # said of most of n² pairs, before anything is called
            pair = origin_of(one.info), origin_of(other.info)
            if pair[0] != pair[1] and pair not in seen:
                found = _conflict(workspace, kind, of_kind, one, other)
                if found is not None:
                    seen.add(pair)
                    yield found


def _is_choosy(workspace: Workspace, rule: CompiledRule, of_kind: int) -> bool:
    verdicts = workspace.verdicts[key_of(rule.info)]
    return count(verdicts.passed & of_kind) >= _FEWEST and bool(verdicts.failed & of_kind)


def _conflict(
    workspace: Workspace, kind: str, of_kind: int, one: CompiledRule, other: CompiledRule
) -> Observation | None:
    first, second = (workspace.verdicts[key_of(rule.info)] for rule in (one, other))
    common = first.judged & second.judged & of_kind
    only_first, only_second = common & first.passed, common & second.passed
    if min(count(only_first), count(only_second)) < _FEWEST:
        return None
    if not workspace.sample.take():
        return None
    both = (one, other)

    def satisfies_both(body: JSONObject) -> bool:
        return all(_passes(workspace, rule, body) for rule in both)

    found, tried = workspace.search(only_first, only_second, satisfies_both)
    if found is not None:
        return None
    return Observation(
        f"{title_of(one.info)} and {title_of(other.info)}: none of {count(common) + tried} objects of {kind} "
        "satisfied both",
        tuple(title_of(rule.info) for rule in both),
        (
            _witness(workspace, both, workspace.some(only_first, 1), one, other),
            _witness(workspace, both, workspace.some(only_second, 1), other, one),
        ),
        one.info.location,
    )


def _witness(
    workspace: Workspace,
    both: Sequence[CompiledRule],
    bodies: Sequence[JSONObject],
    one: CompiledRule,
    other: CompiledRule,
) -> Witness:
    def shows(body: JSONObject) -> bool:
        return _passes(workspace, one, body) and workspace.status(other, body) is Status.FAIL

    text = f"satisfies {title_of(one.info)}, breaks {title_of(other.info)}"
    return workspace.witness(text, both, workspace.smallest(bodies[0], shows))


def _passes(workspace: Workspace, rule: CompiledRule, body: JSONObject) -> bool:
    return workspace.status(rule, body) in (Status.PASS, Status.SKIP)
