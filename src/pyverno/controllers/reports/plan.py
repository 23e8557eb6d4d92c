"""The plan of background scans: which policies, on which kinds, and what makes a result out of date.

Derived from compiled policies, autogen included. Admission-only policies, those that the API server has a copy of, and
those that are not to be reported are left out, and so are exceptions that are not for background scans.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pyverno.controllers.state.scannedkinds import (
    CREATE,
    index_key,
    is_scannable,
    is_scanned_rule,
    matched_kinds,
    scanned_rules,
)
from pyverno.engine.match import IndexKey
from pyverno.engine.policyset import PolicySet
from pyverno.engine.rule import CompiledPolicy, Exemption, Family, Stage
from pyverno.engine.rules.exceptions import CompiledException
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindInfo, KindTable
from pyverno.value import dataclass, field

__all__ = ["ENABLED_LABEL", "ScanPlan", "make_plan"]

ENABLED_LABEL: Final = "reports.kyverno.io/enabled"
_OTHER_OPERATIONS: Final = ("UPDATE", "DELETE", "CONNECT")


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """The policies of a moment, and the kinds that they match; compared with the one before it finds what changed.

    `checks` are the policies that validate, `mutations` those whose changes objects should have, each by itself.
    """

    policies: tuple[CompiledPolicy, ...] = ()
    exceptions: tuple[Exemption, ...] = ()
    kinds: tuple[KindInfo, ...] = ()
    checks: PolicySet = field(default_factory=PolicySet)
    mutations: tuple[tuple[CompiledPolicy, PolicySet], ...] = ()
    by_key: dict[tuple[str, str], CompiledPolicy] = field(default_factory=dict)

    def matches(self, policy: CompiledPolicy, key: IndexKey) -> bool:
        """Return whether a policy may be about objects of a kind and namespace."""
        return _may_match(policy, key)

    def changes(self, before: ScanPlan) -> tuple[CompiledPolicy, ...]:
        """Return the policies, old and new, whose results may differ from those of another plan."""
        old, new = {id(each): each for each in before.policies}, {id(each): each for each in self.policies}
        found = {key: each for key, each in (*old.items(), *new.items()) if (key in old) != (key in new)}
        changed = PolicySet((), _differing(before.exceptions, self.exceptions))
        for key, policy in new.items():
            if key not in found and any(changed.exceptions_for(rule.info) for rule in policy.rules):
                found[key] = policy
        return tuple(found.values())

    def decides(self, item: JSONObject, info: KindInfo, namespace: str) -> bool:
        """Return whether the scan alone decides about a result for an object of a kind.

        It does unless the rule is for other operations than CREATE, as which objects are scanned.
        """
        policy = self.by_key.get((str(item.get("source") or ""), str(item.get("policy") or "")))
        if policy is None:
            return False
        rules = [rule for rule in policy.rules if is_scanned_rule(rule)]
        if policy.info.family is Family.RULES:
            own = [rule for rule in rules if rule.info.name == item.get("rule")]
            if not own:  # mutate and generate rules are reported by what carries them out
                return all(rule.info.name != item.get("rule") for rule in policy.rules)
            rules = own
        if any(rule.may_match(index_key(info, namespace, CREATE)) for rule in rules):
            return True
        others = (index_key(info, namespace, operation) for operation in _OTHER_OPERATIONS)
        return not any(rule.may_match(key) for key in others for rule in rules)


def _differing(one: Sequence[Exemption], other: Sequence[Exemption]) -> list[Exemption]:
    left, right = {id(each): each for each in one}, {id(each): each for each in other}
    return [each for key, each in (*left.items(), *right.items()) if (key in left) != (key in right)]


def _may_match(policy: CompiledPolicy, key: IndexKey) -> bool:
    try:
        return any(is_scanned_rule(rule) and rule.may_match(key) for rule in policy.rules)
    except Exception:  # the evaluation finds out, and reports it as an error of the rule
        return True


def make_plan(policies: Iterable[CompiledPolicy], exceptions: Iterable[Exemption], kinds: KindTable) -> ScanPlan:
    """Return the plan for policies and exceptions in a cluster that serves these kinds."""
    scanned = tuple(sorted(filter(is_scannable, policies), key=_order))
    exempting = tuple(each for each in exceptions if not isinstance(each, CompiledException) or each.background)
    checking = [each for each in scanned if any(rule.stage is not Stage.MUTATE for rule in scanned_rules(each))]
    mutating = [each for each in scanned if any(rule.stage is Stage.MUTATE for rule in scanned_rules(each))]
    return ScanPlan(
        policies=scanned,
        exceptions=exempting,
        kinds=tuple(matched_kinds(scanned, kinds)),
        checks=PolicySet(checking, exempting),
        mutations=tuple(
            (each, PolicySet([each], exempting)) for each in mutating if each.info.family is not Family.RULES
        ),
        by_key={(each.info.source, each.info.key): each for each in scanned},
    )


def _order(policy: CompiledPolicy) -> tuple[str, str, str]:
    return policy.info.name, policy.info.namespace, policy.info.kind
