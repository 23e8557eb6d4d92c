"""Another rule refuses everything that a rule refuses.

Every object that the rule fails is failed by a stricter one, which matches all its objects and is not weaker (it does
not audit what the rule enforces). The rule changes no decision. Some of these objects are changed as little as
satisfies the stricter rule, in several ways: all of them must then pass the rule, too, and there must be some.

Example::

    - name: no-latest
      match: {any: [{resources: {kinds: [Pod]}}]}
      validate: {pattern: {spec: {containers: [{image: "!*:latest"}]}}}
    - name: by-digest      # refuses every tag, :latest among them
      match: {any: [{resources: {kinds: [Pod]}}]}
      validate: {pattern: {spec: {containers: [{image: "*@sha256:*"}]}}}
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, permutations
from typing import Final

from pyverno.compiler.analysis.finding import Observation
from pyverno.compiler.analysis.workspace import Workspace, count, key_of, numbers, title_of
from pyverno.engine.result import FailureAction, Status
from pyverno.engine.rule import CompiledRule
from pyverno.kube.json import JSONObject

__all__ = ["check"]

_FEWEST: Final = 2
_FEW: Final = 4
_SATISFIED: Final = 8
"""Objects that are changed to satisfy the stricter rule."""


def check(workspace: Workspace) -> Iterator[Observation]:
    """Yield rules, as their authors wrote them, with the first rule that shadows each."""
    verdicts = workspace.verdicts
    rules = workspace.comparable(_FEWEST)
    shadowed: set[int] = set()
    sets = [(rule, found.judged, found.failed) for rule in rules for found in (verdicts[key_of(rule.info)],)]
    for (one, judged, failed), (other, judged_too, failed_too) in permutations(sets, 2):
        if failed & ~failed_too or failed == failed_too or judged & ~judged_too:
            continue  # said of most of n² pairs, before anything is called
        if id(one) in shadowed or _is_weaker(other, one):
            continue
        found = None if not workspace.sample.take() else _shadow(workspace, one, other)
        if found is not None:
            shadowed.add(id(one))
            yield found


def _is_weaker(rule: CompiledRule, than: CompiledRule) -> bool:
    if rule.overrides or than.overrides:
        return True
    return rule.failure_action is FailureAction.AUDIT and than.failure_action is FailureAction.ENFORCE


def _shadow(workspace: Workspace, one: CompiledRule, other: CompiledRule) -> Observation | None:
    def escapes(body: JSONObject) -> bool:
        return workspace.status(one, body) is Status.FAIL and workspace.status(other, body) is not Status.FAIL

    first, second = (workspace.verdicts[key_of(rule.info)] for rule in (one, other))
    found, tried = workspace.search(first.failed, second.passed, escapes)
    if found is not None or not _is_proved(workspace, one, other):
        return None
    pairs = workspace.status_pairs(one, other, workspace.some(first.failed, _FEW))
    if any(mine is Status.FAIL and its is not Status.FAIL for mine, its in pairs):
        return None  # for some users or namespaces only
    both = (one, other)

    def fails_both(body: JSONObject) -> bool:
        return all(workspace.status(rule, body) is Status.FAIL for rule in both)

    def fails_other(body: JSONObject) -> bool:
        return workspace.status(one, body) is not Status.FAIL and workspace.status(other, body) is Status.FAIL

    titles = tuple(title_of(rule.info) for rule in both)
    refused = workspace.smallest(workspace.some(first.failed, 1)[0], fails_both)
    more = workspace.smallest(workspace.some(second.failed & ~first.failed, 1)[0], fails_other)
    return Observation(
        f"{titles[1]} refused all {count(first.failed)} objects that {titles[0]} refused; "
        f"{tried} more between them showed no other",
        titles,
        (
            workspace.witness("refused by both", both, refused),
            workspace.witness(f"refused by {titles[1]} only", both, more),
        ),
        one.info.location,
    )


def _is_proved(workspace: Workspace, one: CompiledRule, other: CompiledRule) -> bool:
    """Return whether objects that satisfy the stricter rule pass the other: some do, and none fails it."""
    has_passed = False
    for number in islice(numbers(workspace.verdicts[key_of(one.info)].failed), _SATISFIED):
        for changed in workspace.satisfied(other, number):
            status = workspace.status(one, changed)
            if status is Status.FAIL and workspace.status(other, changed) is not Status.FAIL:
                return False
            has_passed = has_passed or status is Status.PASS
    return has_passed
