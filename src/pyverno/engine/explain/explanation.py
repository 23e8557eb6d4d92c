"""The explanation of one request: the review, and the trace of every rule."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from pyverno.engine.explain.edits import value_at
from pyverno.engine.explain.nodes import FieldPath, RuleTrace, to_json
from pyverno.engine.explain.recorder import MAX_NODES
from pyverno.engine.explain.recording import RecordedPolicies, ReviewBy, recorded_policies
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Request
from pyverno.engine.result import ResourceRef, RuleResult
from pyverno.engine.rule import CompiledRule
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.resource import Resource
from pyverno.value import dataclass, field

if TYPE_CHECKING:
    from pyverno.engine.engine import Review
    from pyverno.engine.explain.change import Change
    from pyverno.engine.phases import Phase

__all__ = ["Explanation", "ReviewBy", "explain"]

_NOT_ASKED = (
    "not evaluated: a rule of the policy before it decided (applyRules: One), or the request is of another kind"
)


@dataclass(frozen=True, slots=True)
class Explanation:
    """An explanation of the results of a set's rules for one request.

    `rules` are in the order in which they ran; those that did not run come last. `review` is the review that was
    recorded: its results are those of every other review of the request.
    """

    review: Review
    rules: tuple[RuleTrace, ...]
    _policies: PolicySet = field(repr=False, compare=False)
    _review: ReviewBy = field(repr=False, compare=False)

    def of_rule(self, policy: str, rule: str = "") -> tuple[RuleTrace, ...]:
        """Return the traces of a policy (`name` or `namespace/name`), or of one of its rules."""
        return tuple(
            each for each in self.rules if each.rule.policy.key == policy and (not rule or each.rule.name == rule)
        )

    def change(self, result: RuleResult, *, without: Collection[FieldPath] = ()) -> Change | None:
        """Return the smallest change of the object that would turn a result, checked by the engine.

        `without` are fields that the change leaves alone. None when the search finds none, and for an object whose
        values must not be shown.
        """
        from pyverno.engine.explain.change import smallest_change

        def review(policies: PolicySet, request: Request) -> Review:
            before, after = self.review.request.object, request.object
            if any(value_at(before, path) != value_at(after, path) for path in without):
                return self.review
            return self._review(policies, request)

        traces = [each for each in self.rules if each.rule is result.rule and not each.is_old]
        return smallest_change(self.review.request, result, traces, self._policies, review)

    def to_json(self) -> JSON:
        """Return the explanation as JSON; fields that are empty are left out."""
        return {
            "resource": str(ResourceRef.of(self.review.request.subject)),
            "rules": [*map(self.rule_json, self.rules)],
        }

    @staticmethod
    def rule_json(trace: RuleTrace) -> JSONObject:
        """Return one rule of the explanation as JSON."""
        return _rule_json(trace)


def _rule_json(trace: RuleTrace) -> JSONObject:
    info = trace.rule
    found: JSONObject = {
        "policy": info.policy.key,
        "kind": info.policy.kind,
        "rule": info.name,
        "matched": trace.matched,
        "results": [
            {"status": each.status.value, "message": each.message, "exceptions": list(each.exceptions)}
            for each in trace.results
        ],
        "trace": to_json(trace.children),
    }
    if trace.reason:
        found["reason"] = trace.reason
    if trace.is_old:
        found["object"] = "old"
    return found


def explain(
    request: Request,
    policies: PolicySet,
    phases: Sequence[Phase],
    review_by: ReviewBy,
    *,
    max_nodes: int = MAX_NODES,
) -> Explanation:
    """Review a request by recorded copies of the rules, and return what they recorded."""
    if _is_secret(request) or max_nodes != MAX_NODES:
        recorded = RecordedPolicies(policies, hides_object=_is_secret(request), max_nodes=max_nodes)
        review, traces = recorded.review(request, review_by)
    else:
        with recorded_policies(policies) as recorded:
            review, traces = recorded.review(request, review_by)
    known = {id(trace.rule) for trace in traces}
    left = tuple(
        RuleTrace(rule.info, False, _why_left(rule, request))
        for phase in phases
        for policy in policies.policies
        if policy.info.family is phase.family
        for rule in policy.rules
        if rule.stage is phase.stage and id(rule.info) not in known
    )
    return Explanation(review, (*traces, *left), policies, review_by)


def _is_secret(request: Request) -> bool:
    return request.gvk.kind == "Secret" and not request.gvk.group


def _why_left(rule: CompiledRule, request: Request) -> str:
    try:
        reason = rule.matcher.mismatch(request, Resource(request.subject))
    except Exception as error:  # the rule did not run, so this is no result
        return f"not evaluated: {error}"
    if reason is not None:
        return reason
    info = rule.info.policy
    if request.is_background and not info.background:
        return "not evaluated: the policy is not for background scans (background: false)"
    if not request.is_background and not info.admission:
        return "not evaluated: the policy is for background scans only (admission: false)"
    return _NOT_ASKED
