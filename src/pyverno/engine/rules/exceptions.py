"""Compiled PolicyExceptions: the requests that they exempt, and from which rules of which policies.

An exception narrows only: a request is exempt if and only if one exception matches all of its own scope. An exception
whose match or conditions cannot be evaluated does not apply (fail closed).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyverno.engine.match import Matcher
from pyverno.engine.rule import Family, RuleInfo, Run
from pyverno.engine.rules.conditions import Conditions
from pyverno.errors import ExpressionError
from pyverno.kube.json import JSON
from pyverno.kube.resource import Resource
from pyverno.kube.wildcard import match as wildcard_match
from pyverno.value import dataclass

if TYPE_CHECKING:
    from pyverno.podsecurity import Exclude

__all__ = ["CompiledException"]


@dataclass(frozen=True, slots=True)
class CompiledException:
    """One PolicyException.

    `references` are (policy key, rule name with wildcards) pairs. `pod_security` are extra excludes for podSecurity
    rules; an exception without them exempts from the whole rule.
    """

    name: str
    namespace: str
    references: tuple[tuple[str, str], ...]
    matcher: Matcher
    conditions: Conditions | None = None
    pod_security: tuple[Exclude, ...] = ()
    background: bool = True

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def is_full(self) -> bool:
        """Return whether the whole rule is exempt."""
        return not self.pod_security

    @property
    def priority(self) -> int:
        """Exceptions of this kind have no priority."""
        return 0

    @property
    def reports_pass(self) -> bool:
        """Exceptions of this kind are reported as skip."""
        return False

    @property
    def allowances(self) -> Mapping[str, JSON]:
        """Exceptions of this kind allow nothing by value."""
        return {}

    @property
    def policy_names(self) -> frozenset[str]:
        """The keys of the policies that the exception refers to."""
        return frozenset(policy for policy, _ in self.references)

    def names_rule(self, info: RuleInfo) -> bool:
        """Return whether the exception refers to a rule (policy names are exact, rule names may have wildcards)."""
        if info.policy.family is not Family.RULES:
            return False
        key = info.policy.key
        return any(policy == key and wildcard_match(pattern, info.name) for policy, pattern in self.references)

    def applies(self, run: Run, resource: Resource) -> bool:
        """Return whether the exception matches this request."""
        if self.matcher.mismatch(run.request, resource) is not None:
            return False
        if self.conditions is None:
            return True
        try:
            return self.conditions.hold(run.scope, run.runtime, delete_request=run.is_delete)
        except ExpressionError:
            # Kyverno: pkg/engine/exceptions - a condition that cannot be evaluated leaves the rule in force
            return False
