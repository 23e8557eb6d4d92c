"""Results that still have a policy and a rule: those of deleted ones, and of policies without reports, are dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from pyverno.compiler.compile import Compiled
from pyverno.controllers.reports.admissionpolicies import AdmissionPolicies
from pyverno.controllers.reports.reportindex import PolicyName
from pyverno.controllers.state.policystore import Identity
from pyverno.controllers.state.scannedkinds import DISABLED_LABEL
from pyverno.engine.rule import CompiledPolicy
from pyverno.kube.json import JSONObject
from pyverno.policy.kinds import POLICY_KINDS, Family

__all__ = ["Currency"]

_REPORTED: Final = tuple(row for row in POLICY_KINDS if row.family in (Family.RULES, Family.CEL) and not row.deletes)
_SOURCES: Final = frozenset(row.source for row in _REPORTED)
_RULE_SOURCE: Final = "kyverno"


class Currency:
    """Looks up the policies and rules that results name."""

    def __init__(self, compiled: Callable[[], Mapping[Identity, Compiled]], admission: AdmissionPolicies) -> None:
        """Take what knows the policies, and the admission policies of Kubernetes."""
        self._compiled = compiled
        self._admission = admission
        self._names: dict[PolicyName, frozenset[str]] = {}

    def follow(self) -> set[PolicyName]:
        """Look at the policies of this moment; return those that came, went, or have other rules."""
        before, self._names = self._names, dict(self._current())
        return {name for name in before.keys() | self._names.keys() if before.get(name) != self._names.get(name)}

    def is_current(self, item: JSONObject) -> bool:
        """Return whether policy and rule of a result exist and are reported."""
        source, policy = str(item.get("source") or ""), str(item.get("policy") or "")
        if source not in _SOURCES and not self._admission.decides(source):
            return True
        rules = self._names.get((source, policy))
        if rules is None:
            return False
        return source != _RULE_SOURCE or str(item.get("rule") or "") in rules

    def _current(self) -> Iterable[tuple[PolicyName, frozenset[str]]]:
        by_kind = {f"{row.group}/{row.kind}": row for row in _REPORTED}
        for (kind, _, _), item in self._compiled().items():
            row, policy = by_kind.get(kind), item.policy
            if row is not None and policy is not None and DISABLED_LABEL not in policy.info.labels:
                yield (policy.info.source, policy.info.key), _rules_of(policy)
        for policy in self._admission.policies():
            if DISABLED_LABEL not in policy.info.labels:
                yield (policy.info.source, policy.info.key), _rules_of(policy)


def _rules_of(policy: CompiledPolicy) -> frozenset[str]:
    return frozenset(rule.info.name for rule in policy.rules)
