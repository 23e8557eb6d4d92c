"""Match conditions of a policy's webhook, evaluated by the engine: one verdict offline and in a cluster.

A false condition means that the policy does not match; one that cannot be evaluated is an error of the rule.
(Kyverno: pkg/engine/internal/match.go, which takes such an error for "does not match")
"""

from __future__ import annotations

from pyverno.engine.cel.session import CelCondition, CelSession, authorizer_bindings, first_unmet, request_bindings
from pyverno.engine.match import IndexKey
from pyverno.engine.result import Verdict
from pyverno.engine.rule import UNMATCHED, Run
from pyverno.errors import EvaluationError
from pyverno.value import dataclass

__all__ = ["MatchConditions"]


@dataclass(frozen=True, slots=True)
class MatchConditions:
    """`webhookConfiguration.matchConditions` of a ClusterPolicy or Policy, in front of each of its rules."""

    conditions: tuple[CelCondition, ...]

    def check(self, run: Run) -> Verdict | None:
        """Evaluate the conditions on the request; raises EvaluationError for one that cannot be evaluated."""
        # a webhook configuration has no namespaceObject, and its objects are not part of `request`
        bindings = {**request_bindings(run.request, has_objects=False), "namespaceObject": None}
        if run.request.user.is_empty:
            # a manifest or scanned object comes from no user: it is in no group, which is no error
            bindings["request"] = {**bindings["request"], "userInfo": {"username": "", "groups": []}}
        session = CelSession(run, {**bindings, **authorizer_bindings(run.request)})
        unmet = first_unmet(session.for_conditions(), self.conditions)
        if unmet is None:
            return None
        if unmet.errors:
            raise EvaluationError(f"failed to evaluate match condition {unmet.name}: {'; '.join(unmet.errors)}")
        return UNMATCHED

    def surely_holds(self, key: IndexKey) -> bool:
        """Conditions look at the object, which no key holds."""
        return False
