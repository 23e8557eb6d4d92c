"""A rule sets itself off with what it makes or changes.

A generate rule, or one that mutates existing objects, makes an object that triggers it, or a rule that leads back to
it, again: objects are made without end. Only rules with `skipBackgroundRequests: false` see what controllers write.

Example::

    - name: copy      # each ConfigMap gets a copy, and the copy gets one
      skipBackgroundRequests: false
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      generate:
        apiVersion: v1
        kind: ConfigMap
        name: "{{ request.object.metadata.name }}-copy"
        namespace: default
        data: {data: {a: b}}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from pyverno.compiler.analysis.finding import Observation, Witness
from pyverno.compiler.analysis.workspace import USER, RuleKey, Workspace, key_of, origin_of, title_of
from pyverno.engine.effects import CreateEffect, PatchEffect
from pyverno.engine.engine import Engine
from pyverno.engine.phases import GENERATING, MUTATING_EXISTING
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Operation, Request
from pyverno.engine.result import ResourceRef, Status
from pyverno.engine.rule import CompiledPolicy, CompiledRule, Stage
from pyverno.kube.json import JSONObject, equal
from pyverno.kube.resource import Resource
from pyverno.value import dataclass

__all__ = ["check"]

_STAGES: Final = (Stage.GENERATE, Stage.MUTATE_EXISTING)
_ROUNDS: Final = 5
_MOST_STARTS: Final = 30
_MOST_CHAINS: Final = 1000
"""Objects that are followed for all rules together."""


@dataclass(frozen=True, slots=True)
class _Step:
    """An object that a rule has written: the rule, the object, and what it replaced."""

    rule: CompiledRule | None
    body: JSONObject
    old: JSONObject | None = None


def check(workspace: Workspace) -> Iterator[Observation]:
    """Yield rules that still write after several rounds of their own writes."""
    rules = [
        rule
        for policy in workspace.policies
        for rule in policy.rules
        if (rule.stage in _STAGES or rule.mutates_existing) and not rule.skips_background_requests
    ]
    seen: set[RuleKey] = set()
    policies = PolicySet(
        [CompiledPolicy(each.info.policy, (each,)) for each in rules], workspace.exceptions, asks_all=True
    )
    by_key = {key_of(rule.info): rule for rule in rules}
    starts_each = max(1, min(_MOST_STARTS, _MOST_CHAINS // max(len(rules), 1)))
    for rule in rules:
        if origin_of(rule.info) in seen:
            continue
        bodies = (workspace.objects[number] for number in workspace.some_numbers)
        starts = (body for body in bodies if rule.matcher.mismatch(_create(body), Resource(body)) is None)
        for body in islice(starts, starts_each):
            if not workspace.sample.take(_MOST_CHAINS):
                break
            chain = _chain(workspace, policies, by_key, rule, body)
            if chain is not None:
                seen |= {origin_of(step.rule.info) for step in chain if step.rule is not None}
                yield _observation(chain, body)
                break


def _chain(
    workspace: Workspace,
    policies: PolicySet,
    by_key: Mapping[RuleKey, CompiledRule],
    rule: CompiledRule,
    body: JSONObject,
) -> list[_Step] | None:
    """Return the chain of objects that rules write from a trigger; None if the chain ends."""
    chain = [_Step(None, body)]
    world = {ResourceRef.of(body): body}
    own = workspace.engine_of(rule).policies
    host = workspace.host
    for number in range(_ROUNDS):
        # the rule itself first: most loops are of one rule, and all rules together cost as much as there are
        sets = (own, policies) if number else (own,)
        steps = (step for each in sets for step in _steps(Engine(each, host), by_key, chain[-1]))
        step = next((step for step in steps if _is_new(step, world)), None)
        if step is None:
            return None
        chain.append(step)
        world[ResourceRef.of(step.body)] = step.body
        host = workspace.host_of([*world.values(), *workspace.objects])
    return chain


def _is_new(step: _Step, world: Mapping[ResourceRef, JSONObject]) -> bool:
    before = world.get(ResourceRef.of(step.body))
    return before is None or (step.old is not None and not equal(before, step.body))


def _steps(engine: Engine, by_key: Mapping[RuleKey, CompiledRule], last: _Step) -> Iterator[_Step]:
    """Yield the objects that rules write for a trigger."""
    request = _create(last.body) if last.old is None else _update(last.body, last.old)
    for result in engine.review(request, (*MUTATING_EXISTING, *GENERATING)).results:
        rule = by_key[key_of(result.rule)]
        if result.status is Status.PASS:
            for effect in result.effects:
                match effect:
                    case CreateEffect():
                        yield _Step(rule, effect.resource)
                    case PatchEffect(after=dict(after), before=dict(before)):
                        yield _Step(rule, after, before)


def _create(body: JSONObject) -> Request:
    return Request.from_manifest(body, user=USER)


def _update(body: JSONObject, old: JSONObject) -> Request:
    return Request.from_manifest(body, operation=Operation.UPDATE, old=old, user=USER)


def _observation(chain: Sequence[_Step], body: JSONObject) -> Observation:
    rules = [step.rule for step in chain if step.rule is not None]
    titles = tuple(dict.fromkeys(title_of(rule.info) for rule in rules))
    what = f"{titles[0]} sets itself off" if len(titles) == 1 else " and ".join(titles) + " set each other off"
    written = tuple(step.body for step in chain[1:])
    names = ", ".join(str(ResourceRef.of(each)) for each in written)
    return Observation(
        f"{what}: {len(written)} rounds wrote {names}"
        if len({ResourceRef.of(each) for each in written}) > 1
        else f"{what}: {len(written)} rounds changed {ResourceRef.of(written[0])}",
        titles,
        (Witness("the first object, and what rules wrote after it", body, after=written),),
        rules[0].info.location,
    )
