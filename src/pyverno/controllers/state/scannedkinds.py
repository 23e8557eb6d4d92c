"""The kinds that background scans cover: which policies and rules they evaluate, and which kinds those match."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Final

from pyverno.engine.match import REPORT_GROUPS, IndexKey
from pyverno.engine.rule import CompiledPolicy, CompiledRule, Family, Stage
from pyverno.kube.gvk import GVR
from pyverno.kube.kinds import KindInfo, KindTable

__all__ = ["CREATE", "DISABLED_LABEL", "index_key", "is_scannable", "is_scanned_rule", "matched_kinds", "scanned_rules"]

DISABLED_LABEL: Final = "reports.kyverno.io/disabled"
_EVENT_GROUPS: Final = ("", "events.k8s.io")
CREATE: Final = "CREATE"
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
    """Return whether a policy is enabled for background scans."""
    info = policy.info
    if not info.background or DISABLED_LABEL in info.labels or info.answers or info.reads_payloads:
        return False
    return any(is_scanned_rule(rule) for rule in policy.rules)


def is_scanned_rule(rule: CompiledRule) -> bool:
    """Return whether scans evaluate a rule."""
    return (rule.stage, rule.info.policy.family) in _SCANNED


def index_key(info: KindInfo, namespace: str, operation: str) -> IndexKey:
    """Return the key of objects of a kind in a namespace, as a scan sees them."""
    return IndexKey(info.gvk, "", operation, namespace, background=True, gvr=info.gvr)


def scanned_rules(policy: CompiledPolicy) -> Iterator[CompiledRule]:
    """Yield the rules of a policy that scans evaluate."""
    return (rule for rule in policy.rules if is_scanned_rule(rule))


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
        if info.group not in REPORT_GROUPS and not (info.kind == "Event" and info.group in _EVENT_GROUPS)
    )


def _kinds_of_rule(rule: CompiledRule, kinds: tuple[KindInfo, ...]) -> Iterator[KindInfo]:
    found: set[tuple[str, str]] = set()
    for info in kinds:
        if (info.group, info.plural) not in found and _matches_kind(rule, info):
            found.add((info.group, info.plural))
            yield info


def _matches_kind(rule: CompiledRule, info: KindInfo) -> bool:
    """Return whether a rule matches a kind in some namespace."""
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
        return matcher.may_match(index_key(info, namespace, CREATE))
    except Exception:  # the evaluation finds out, and reports it as an error of the rule
        return True
