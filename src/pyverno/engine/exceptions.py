"""Compiled PolicyExceptions: which rules of which policies they exempt which requests from.

An exception narrows only: a request is exempt if and only if one exception matches all of its own scope. An exception
whose match or conditions can not be evaluated does not apply (fail closed). This module must never merge exceptions.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyverno.engine.conditions import Conditions
from pyverno.engine.match import Matcher
from pyverno.engine.rule import Run
from pyverno.errors import ExpressionError
from pyverno.kube.resource import Resource
from pyverno.kube.wildcard import match as wildcard_match
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

    def names_rule(self, policy_key: str, rule: str) -> bool:
        """Tell whether the exception refers to a rule (policy names are exact, rule names may have wildcards)."""
        return any(policy == policy_key and wildcard_match(pattern, rule) for policy, pattern in self.references)

    def applies(self, run: Run, resource: Resource) -> bool:
        """Tell whether the exception is about this request."""
        if self.matcher.mismatch(run.request, resource) is not None:
            return False
        if self.conditions is None:
            return True
        try:
            return self.conditions.check(run.scope, run.runtime).met
        except ExpressionError:
            # Kyverno: pkg/engine/exceptions - a condition that can not be evaluated leaves the rule in force
            return False
