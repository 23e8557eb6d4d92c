"""What background scans evaluate: which policies, on which kinds, and what makes a result out of date.

Derived from compiled policies, autogen included. Admission-only policies, those that the API server has a copy of, and
those that are not to be reported are left out, and so are exceptions that are not for background scans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from pyverno.engine.match import IndexKey
from pyverno.engine.policyset import PolicySet
from pyverno.engine.rule import CompiledPolicy, CompiledRule, Exemption, Family, Stage
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindInfo, KindTable
from pyverno.value import dataclass, field

__all__ = ["DISABLED_LABEL", "ENABLED_LABEL", "ScanPlan", "is_scannable", "make_plan", "matched_kinds"]

DISABLED_LABEL: Final = "reports.kyverno.io/disabled"
ENABLED_LABEL: Final = "reports.kyverno.io/enabled"
_REPORT_GROUPS: Final = frozenset({"reports.kyverno.io", "wgpolicyk8s.io", "openreports.io"})
_EVENT_GROUPS: Final = ("", "events.k8s.io")
_CREATE: Final = "CREATE"
_OTHER_OPERATIONS: Final = ("UPDATE", "DELETE", "CONNECT")
_SCANNED: Final = (
    (Stage.VALIDATE, Family.RULES),
    (Stage.VERIFY_IMAGES, Family.RULES),
    (Stage.VALIDATE, Family.CEL),
    (Stage.VALIDATE, Family.IMAGES),
    (Stage.VALIDATE, Family.ADMISSION),
    (Stage.MUTATE, Family.CEL),
    (Stage.MUTATE, Family.ADMISSION),
)


def is_scannable(policy: CompiledPolicy) -> bool:
    """Tell whether background scans evaluate a policy, as far as the policy says."""
    info = policy.info
    if not info.background or DISABLED_LABEL in info.labels or info.answers or info.reads_payloads:
        return False
    return any(_is_scanned(rule) for rule in policy.rules)


def _is_scanned(rule: CompiledRule) -> bool:
    return (rule.stage, rule.info.policy.family) in _SCANNED


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
        """Tell whether a policy may be about objects of a kind and namespace."""
        return _may_match(policy, key)

    def changes(self, before: ScanPlan) -> tuple[CompiledPolicy, ...]:
        """Return the policies, old and new, whose results may differ from those of another plan."""
        old, new = {id(each): each for each in before.policies}, {id(each): each for each in self.policies}
        found = {key: each for key, each in (*old.items(), *new.items()) if (key in old) != (key in new)}
        exceptions = _differing(before.exceptions, self.exceptions)
        for key, policy in new.items():
            if key not in found and any(each.names_rule(rule.info) for each in exceptions for rule in policy.rules):
                found[key] = policy
        return tuple(found.values())

    def decides(self, item: JSONObject, info: KindInfo, namespace: str) -> bool:
        """Tell whether the scan alone decides about a result for an object of a kind.

        It does unless the rule is for other operations than CREATE, as which objects are scanned.
        """
        policy = self.by_key.get((str(item.get("source") or ""), str(item.get("policy") or "")))
        if policy is None:
            return False
        rules = [rule for rule in policy.rules if _is_scanned(rule)]
        if policy.info.family is Family.RULES:
            own = [rule for rule in rules if rule.info.name == item.get("rule")]
            if not own:  # mutate and generate rules are reported by what carries them out
                return all(rule.info.name != item.get("rule") for rule in policy.rules)
            rules = own
        if any(rule.may_match(_index_key(info, namespace, _CREATE)) for rule in rules):
            return True
        others = (_index_key(info, namespace, operation) for operation in _OTHER_OPERATIONS)
        return not any(rule.may_match(key) for key in others for rule in rules)


def _differing(one: Sequence[Exemption], other: Sequence[Exemption]) -> list[Exemption]:
    left, right = {id(each): each for each in one}, {id(each): each for each in other}
    return [each for key, each in (*left.items(), *right.items()) if (key in left) != (key in right)]


def _index_key(info: KindInfo, namespace: str, operation: str) -> IndexKey:
    return IndexKey(info.gvk, "", operation, namespace, background=True, gvr=info.gvr)


def _may_match(policy: CompiledPolicy, key: IndexKey) -> bool:
    try:
        return any(_is_scanned(rule) and rule.may_match(key) for rule in policy.rules)
    except Exception:  # the evaluation finds out, and reports it as an error of the rule
        return True


def make_plan(policies: Iterable[CompiledPolicy], exceptions: Iterable[Exemption], kinds: KindTable) -> ScanPlan:
    """Return the plan for policies and exceptions in a cluster that serves these kinds."""
    scanned = tuple(sorted(filter(is_scannable, policies), key=_order))
    exempting = tuple(each for each in exceptions if getattr(each, "background", True))
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


def scanned_rules(policy: CompiledPolicy) -> Iterator[CompiledRule]:
    """Yield the rules of a policy that scans evaluate."""
    return (rule for rule in policy.rules if _is_scanned(rule))


def _order(policy: CompiledPolicy) -> tuple[str, str, str]:
    return policy.info.name, policy.info.namespace, policy.info.kind


def matched_kinds(
    policies: Iterable[CompiledPolicy],
    kinds: KindTable,
    rules: Callable[[CompiledPolicy], Iterable[CompiledRule]] = scanned_rules,
) -> Iterator[KindInfo]:
    """Yield the kinds that some rules of policies match, in the version that each rule finds first."""
    reportable = _reportable(kinds)
    seen: set[GVR] = set()
    for policy in policies:
        for rule in rules(policy):
            for info in _kinds_of_rule(rule, reportable):
                if info.gvr not in seen:
                    seen.add(info.gvr)
                    yield info


@lru_cache(maxsize=2)
def _reportable(kinds: KindTable) -> tuple[KindInfo, ...]:
    """Return the kinds that may have reports: not events, and not reports themselves."""
    return tuple(
        info
        for info in kinds
        if info.group not in _REPORT_GROUPS and not (info.kind == "Event" and info.group in _EVENT_GROUPS)
    )


def _kinds_of_rule(rule: CompiledRule, kinds: tuple[KindInfo, ...]) -> Iterator[KindInfo]:
    found: set[tuple[str, str]] = set()
    for info in kinds:
        if (info.group, info.plural) not in found and _matches_kind(rule, info):
            found.add((info.group, info.plural))
            yield info


def _matches_kind(rule: CompiledRule, info: KindInfo) -> bool:
    """Tell whether a rule matches a kind in some namespace."""
    matcher = rule.matcher
    if matcher.policy_namespace and not info.namespaced:
        return False
    if matcher.blocks:
        fitting = [
            not block.kinds or any(selector.matches(info.gvk, "") for selector in block.kinds)
            for block in matcher.blocks
        ]
        return any(fitting) if getattr(matcher, "any_of", ()) else all(fitting)
    namespace = matcher.policy_namespace or ("default" if info.namespaced else "")
    try:
        return matcher.may_match(_index_key(info, namespace, _CREATE))
    except Exception:  # see `_may_match`
        return True
