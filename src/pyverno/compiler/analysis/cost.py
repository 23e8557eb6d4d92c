"""The cost of each rule: the evaluation steps that it takes on the objects that it matches.

Steps are those that the budget of a review counts, with every rule evaluated in full: the same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pyverno.compiler.analysis.workspace import USER, Workspace, title_of
from pyverno.engine.engine import Engine
from pyverno.engine.phases import ADMISSION
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Request
from pyverno.engine.rule import CompiledPolicy, CompiledRule
from pyverno.kube.json import JSONObject
from pyverno.kube.resource import Resource
from pyverno.lang.runtime import Budget
from pyverno.value import dataclass, replace

__all__ = ["RuleCost", "rule_costs"]

_MOST: Final = 40


@dataclass(frozen=True, slots=True)
class RuleCost:
    """The steps of a rule: the mean and the most, over so many objects, and the object that took the most."""

    rule: str
    objects: int
    mean: int
    most: int
    witness: JSONObject

    def to_json(self) -> JSONObject:
        """Return the cost as an object."""
        return {
            "rule": self.rule,
            "objects": self.objects,
            "meanSteps": self.mean,
            "mostSteps": self.most,
            "witness": self.witness,
        }


def rule_costs(workspace: Workspace) -> list[RuleCost]:
    """Return the costs of all rules that match an object, the highest first; copies for workloads are left out."""
    rules = ((policy, rule) for policy in workspace.policies for rule in policy.rules if not rule.info.origin)
    found = (cost for policy, rule in rules for cost in _cost(workspace, policy, rule))
    return sorted(found, key=lambda each: (-each.most, each.rule))


def _cost(workspace: Workspace, policy: CompiledPolicy, rule: CompiledRule) -> Iterator[RuleCost]:
    whole = CompiledPolicy(policy.info, (replace(rule, fast_tier=None),))
    engine = Engine(PolicySet([whole], workspace.exceptions, asks_all=True), workspace.host)
    steps: list[tuple[int, JSONObject]] = []
    for body in workspace.objects:
        request = Request.from_manifest(body, user=USER)
        if rule.matcher.mismatch(request, Resource(body)) is None:
            budget = Budget()
            before = budget.steps
            engine.review(request, ADMISSION, budget=budget)
            steps.append((before - budget.steps, body))
            if len(steps) == _MOST:
                break
    if steps:
        most, witness = max(steps, key=lambda each: each[0])
        yield RuleCost(title_of(rule.info), len(steps), sum(each for each, _ in steps) // len(steps), most, witness)
