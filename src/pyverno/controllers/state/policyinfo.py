"""Metrics of policies: the existing rules (autogen copies included), and how often policies changed.

The rules are looked up when the metrics are scraped, and cost nothing in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from pyverno.compiler.compile import Compiled
from pyverno.engine.result import FailureAction, RuleType
from pyverno.engine.rule import CompiledPolicy, CompiledRule
from pyverno.telemetry.catalog import METRICS
from pyverno.telemetry.instruments import Instruments
from pyverno.telemetry.metricsettings import Namespaces

__all__ = ["PolicyInfo"]

_TYPES: Final = {
    RuleType.VALIDATION: "validate",
    RuleType.MUTATION: "mutate",
    RuleType.GENERATION: "generate",
    RuleType.IMAGE_VERIFY: "imageVerify",
}


class PolicyInfo:
    """The instruments of policies: a gauge of rules, read at each scrape, and a counter of changes."""

    def __init__(
        self,
        instruments: Instruments,
        compiled: Callable[[], Iterable[Compiled]],
        namespaces: Callable[[], Namespaces],
    ) -> None:
        """Take the instruments, a source of compiled policies, and the namespaces whose policies are reported."""
        self._compiled = compiled
        self._namespaces = namespaces
        self._instruments = instruments
        self._known: dict[tuple[str, str], frozenset[str]] = {}
        self._changes = instruments.counter(METRICS["kyverno_policy_changes"])
        instruments.gauge(METRICS["kyverno_policy_rule_info_total"], self._rules)

    def note(self, item: Compiled, change: str) -> None:
        """Count that a policy was `created`, `updated` or `deleted`; series of deleted policies expire later."""
        policy = item.policy
        if policy is not None:
            self._follow(policy, is_gone=change == "deleted")
        if policy is not None and policy.rules and self._namespaces().counts(policy.info.namespace):
            strictest = next((rule for rule in policy.rules if _enforces(rule)), policy.rules[0])
            name, namespace, scope, mode, background, *_ = _series(policy, strictest, is_ready=True)
            self._changes.add((mode, scope, background, namespace, name, change))

    def _follow(self, policy: CompiledPolicy, *, is_gone: bool) -> None:
        """Expire the series of a deleted policy and of removed rules."""
        name, namespace = policy.info.name, policy.info.namespace
        rules = frozenset() if is_gone else frozenset(rule.info.name for rule in policy.rules)
        before = self._known.pop((namespace, name), frozenset())
        if not is_gone:
            self._known[namespace, name] = rules
        for label in (namespace,) if namespace else ("", "-"):  # a cluster-wide policy has two spellings
            of_policy = ("policy_name", name), ("policy_namespace", label)
            if is_gone:
                self._instruments.depart(of_policy)
            else:
                self._instruments.stay(of_policy)
            for rule in before - rules:
                self._instruments.depart((*of_policy, ("rule_name", rule)))
            for rule in rules:
                self._instruments.stay((*of_policy, ("rule_name", rule)))

    def _rules(self) -> Iterator[tuple[tuple[str, ...], float]]:
        counted = self._namespaces()
        for item in self._compiled():
            policy = item.policy
            if policy is not None and counted.counts(policy.info.namespace):
                for rule in policy.rules:
                    yield _series(policy, rule, is_ready=not item.errors), 1


def _series(policy: CompiledPolicy, rule: CompiledRule, *, is_ready: bool) -> tuple[str, ...]:
    info = policy.info
    return (
        info.name,
        info.namespace or "-",
        "namespaced" if info.namespace else "cluster",
        "enforce" if _enforces(rule) else "audit",
        _flag(info.background),
        _flag(is_ready),
        rule.info.name,
        _TYPES.get(rule.info.type, "-"),
    )


def _enforces(rule: CompiledRule) -> bool:
    return rule.failure_action is FailureAction.ENFORCE


def _flag(value: bool) -> str:
    return "true" if value else "false"
