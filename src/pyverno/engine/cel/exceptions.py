"""Compiled PolicyExceptions of CEL policies: conditions, expiry, and what they allow by value.

An exception that has expired exempts from nothing. One whose conditions cannot be evaluated is an error of the policy,
unless its failurePolicy is Ignore: then it exempts from nothing either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyverno.engine.cel.session import CelCondition, CelSession, first_unmet, request_bindings
from pyverno.engine.result import RuleType
from pyverno.engine.rule import RuleInfo, Run
from pyverno.errors import BudgetExceededError, EvaluationError, HostUnavailableError
from pyverno.kube.json import JSON
from pyverno.kube.resource import Resource
from pyverno.podsecurity import Exclude
from pyverno.value import dataclass, replace

__all__ = ["CompiledCelException"]

_PREFIXES = {RuleType.VALIDATION: "failed to load context: ", RuleType.DELETION: ""}
"""The prefix of an exception's error, unless the evaluation fails."""


@dataclass(frozen=True, slots=True)
class CompiledCelException:
    """One exception; `references` are (policy name, kind), `expires_at` nanoseconds since the Unix epoch."""

    name: str
    namespace: str
    references: frozenset[tuple[str, str]]
    conditions: tuple[CelCondition, ...] = ()
    images: tuple[str, ...] = ()
    allowed_values: tuple[str, ...] = ()
    reports_pass: bool = False
    expires_at: int | None = None
    priority: int = 0

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def is_full(self) -> bool:
        """Return whether the whole policy is exempt, and not only some images or values."""
        return not self.images and not self.allowed_values

    @property
    def pod_security(self) -> Sequence[Exclude]:
        """Nothing: podSecurity is not a CEL rule."""
        return ()

    @property
    def allowances(self) -> Mapping[str, JSON]:
        """The variable `exceptions`."""
        return {"allowedImages": list(self.images), "allowedValues": list(self.allowed_values)}

    @property
    def policy_names(self) -> frozenset[str]:
        """The names of the policies that the exception refers to."""
        return frozenset(name for name, _ in self.references)

    def names_rule(self, info: RuleInfo) -> bool:
        """Return whether the exception refers to a policy by name and kind."""
        return (info.policy.name, info.policy.kind) in self.references

    def applies(self, run: Run, resource: Resource) -> bool:
        """Return whether the exception is in force and matches this request.

        Raises EvaluationError or BudgetExceededError when it cannot be evaluated and the policy fails on errors.
        """
        if self.expires_at is not None and not self._in_force(run):
            return False
        # its author may be another than the policy's, who may read more: its conditions read its own namespace only
        own = replace(run, broker=replace(run.broker, namespace=self.namespace or run.broker.namespace))
        session = CelSession(own, request_bindings(run.request)).for_conditions()
        ignores_errors = run.rule.info.policy.failure_policy == "Ignore"
        try:
            unmet = first_unmet(session, self.conditions)
        except BudgetExceededError:
            if ignores_errors:
                return False
            raise
        if unmet is not None and unmet.errors and not ignores_errors:
            # Kyverno: an exception that cannot be judged is an error of the policy, never "no exception"
            prefix = _PREFIXES.get(run.rule.info.type, "failed to evaluate policy: ")
            raise EvaluationError(f"{prefix}{'; '.join(unmet.errors)}")
        return unmet is None

    def _in_force(self, run: Run) -> bool:
        try:
            return self.expires_at is not None and run.runtime.host.now() < self.expires_at
        except HostUnavailableError:
            # without a clock it may have expired
            return False
