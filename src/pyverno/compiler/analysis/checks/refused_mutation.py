"""A rule refuses what a mutation leaves.

The rule accepts the object as its user sent it. All mutations together leave an object that it refuses, and the
mutation that is named does so alone: the user is refused for what another policy wrote.

Example::

    - name: pull-always
      match: {any: [{resources: {kinds: [Pod]}}]}
      mutate: {patchStrategicMerge: {spec: {containers: [{(name): "*", imagePullPolicy: Always}]}}}
    - name: never-pull-always      # refuses every Pod that the other rule has changed
      match: {any: [{resources: {kinds: [Pod]}}]}
      validate: {pattern: {spec: {containers: [{imagePullPolicy: "!Always"}]}}}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyverno.compiler.analysis.finding import Observation, Witness
from pyverno.compiler.analysis.workspace import RuleKey, Workspace, key_of, origin_of, title_of
from pyverno.engine.result import Status
from pyverno.engine.rule import CompiledRule, Stage
from pyverno.kube.json import JSONObject

__all__ = ["check"]


def check(workspace: Workspace) -> Iterator[Observation]:
    """Yield pairs of a mutation and a rule that refuses its result; a pair is reported once, not for each copy."""
    validations = {key_of(rule.info): rule for rule in workspace.rules(Stage.VALIDATE)}
    seen: set[tuple[RuleKey, RuleKey]] = set()
    newly = _NewlyFailed(workspace)
    for mutation in workspace.rules(Stage.MUTATE):
        refused, changed = _refused(workspace, mutation, newly, validations)
        for key, numbers in refused.items():
            rule = validations[key]
            pair = origin_of(mutation.info), origin_of(rule.info)
            if pair not in seen:
                seen.add(pair)
                yield _observation(workspace, mutation, rule, numbers, changed)


class _NewlyFailed:
    """The rules that accept an object, and fail it as all mutations together leave it; found once for each object."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._found: dict[int, tuple[RuleKey, ...]] = {}

    def of(self, number: int) -> tuple[RuleKey, ...]:
        """Return the rules for the object of a number."""
        found = self._found.get(number)
        if found is None:
            workspace = self._workspace
            before, body = workspace.verdicts, workspace.objects[number]
            after = workspace.statuses(workspace.whole, workspace.mutated(workspace.whole, body))
            failed = (key for key, status in after.items() if status is Status.FAIL and key in before)
            found = self._found[number] = tuple(key for key in failed if before[key].passed >> number & 1)
        return found


def _refused(
    workspace: Workspace, mutation: CompiledRule, newly: _NewlyFailed, validations: Mapping[RuleKey, CompiledRule]
) -> tuple[dict[RuleKey, list[int]], int]:
    """Return the objects that each rule accepts before the mutation only, and how many the mutation changes."""
    found: dict[RuleKey, list[int]] = {}
    tried: dict[RuleKey, bool] = {}
    numbers = workspace.changed[key_of(mutation.info)]
    for number in numbers:
        keys = newly.of(number)
        alone = workspace.mutated(workspace.engine_of(mutation), workspace.objects[number]) if keys else None
        for key in keys:
            if key not in tried:
                tried[key] = workspace.sample.take()
            if tried[key] and alone is not None and workspace.status(validations[key], alone) is Status.FAIL:
                found.setdefault(key, []).append(number)
    return found, len(numbers)


def _observation(
    workspace: Workspace, mutation: CompiledRule, rule: CompiledRule, numbers: list[int], changed: int
) -> Observation:
    def shows(body: JSONObject) -> bool:
        after = workspace.mutated(workspace.engine_of(mutation), body)
        return (
            after is not body
            and workspace.status(rule, body) in (Status.PASS, Status.SKIP)
            and workspace.status(rule, after) is Status.FAIL
        )

    body = workspace.smallest(workspace.objects[numbers[0]], shows)
    after = workspace.mutated(workspace.engine_of(mutation), body)
    title, changer = title_of(rule.info), title_of(mutation.info)
    before = workspace.witness(f"accepted by {title} as it is; refused as {changer} leaves it", (rule,), body)
    return Observation(
        f"{title} refuses what {changer} leaves: {len(numbers)} of {changed} objects that it changed",
        (changer, title),
        (
            Witness(before.text, body, before.results, (after,)),
            workspace.witness(f"as {changer} leaves it", (rule,), after),
        ),
        mutation.info.location,
    )
