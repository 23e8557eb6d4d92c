"""One piece of work: rules of a policy, and the object that triggered them."""

from __future__ import annotations

from collections.abc import Mapping

from pyverno.controllers.state.policystore import Identity
from pyverno.engine.result import ResourceRef
from pyverno.engine.rule import Family, RuleInfo
from pyverno.policy.updaterequest import AdmissionContext, Trigger
from pyverno.value import dataclass, field

__all__ = ["GenerationKey", "Work", "rule_key"]


@dataclass(frozen=True, slots=True)
class GenerationKey:
    """The key of generated objects: a rule ("" for a policy in CEL) and its trigger."""

    policy: Identity
    rule: str
    trigger: Trigger

    def __str__(self) -> str:
        ref = ResourceRef("", self.trigger.kind, self.trigger.namespace, self.trigger.name or self.trigger.uid)
        return f"{'/'.join(part for part in self.policy[1:] if part)}{f'/{self.rule}' if self.rule else ''} for {ref}"


@dataclass(frozen=True, slots=True)
class Work:
    """Rules to bring up to date for one trigger.

    `rules` are their names, each with whether the rule no longer applies: then what it generated is deleted,
    unless it applies after all. `context` is the admission request that triggered them, None for work without a
    request. `reason` is shown on generated objects. Work that `is_late` does not wait for a change that the request
    announced: it may never come. What rules did is reported if the work `is_reported`. Unless it `adopts`, objects
    without the labels of generated ones are left alone: they may have been taken off to end the synchronization.
    `revision` is a resource version at which a deleted trigger still existed ("" = unknown).
    """

    policy: Identity
    trigger: Trigger
    rules: Mapping[str, bool] = field(default_factory=dict)
    context: AdmissionContext | None = None
    reason: str = ""
    is_late: bool = False
    is_reported: bool = False
    adopts: bool = True
    revision: str = ""


def rule_key(rule: RuleInfo) -> str:
    """Return the name of a generating rule, "" for that of a policy in CEL."""
    return rule.name if rule.policy.family is Family.RULES else ""
