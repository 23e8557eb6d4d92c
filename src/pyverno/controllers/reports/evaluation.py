"""One object evaluated by the policies of a plan: the results that reports show, and what they depend on."""

from __future__ import annotations

import time
from collections.abc import Sequence
from operator import is_
from typing import Final, NamedTuple

from pyverno.cluster.notinghost import ConfigMapKey, NotingHost
from pyverno.controllers.reports.plan import ScanPlan
from pyverno.engine.engine import Engine
from pyverno.engine.host import Host
from pyverno.engine.match import IndexKey
from pyverno.engine.phases import MUTATION_CHECK, SCAN
from pyverno.engine.request import EvaluationSettings, Request
from pyverno.engine.result import CelDetail, ResourceRef, RuleResult, RuleType, Status
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSON, JSONObject
from pyverno.report.objectreport import bounded_result, results_digest
from pyverno.report.policyreport import plain_result
from pyverno.value import dataclass, field

__all__ = ["Evaluation", "Evaluator", "Outcome", "ReportFilter", "ScanContext"]

_SECONDS: Final = 30.0
_MAX_OUTCOMES: Final = 4096
_NOT_APPLIED: Final = "mutation is not applied"
_VALIDATING: Final = frozenset({"ValidatingPolicy", "NamespacedValidatingPolicy"})
_TYPES: Final = {
    RuleType.VALIDATION: "validate",
    RuleType.MUTATION: "mutate",
    RuleType.IMAGE_VERIFY: "imageVerify",
}


@dataclass(frozen=True, slots=True)
class ReportFilter:
    """The kinds of rules and the statuses that reports show."""

    types: frozenset[str] = field(
        default_factory=lambda: frozenset({"validate", "mutate", "mutateExisting", "generate", "imageVerify"})
    )
    statuses: frozenset[str] = field(default_factory=lambda: frozenset({"pass", "fail", "error", "warn", "skip"}))

    def keeps(self, result: RuleResult) -> bool:
        """Return whether a result is reported."""
        if result.status not in self.statuses or _TYPES.get(result.rule.type) not in self.types:
            return False
        # Kyverno: a ValidatingPolicy whose match conditions leave an object out has no result
        is_left_out = result.status is Status.SKIP and not result.exceptions
        return not (is_left_out and result.rule.policy.kind in _VALIDATING)


class ScanContext:
    """The context of evaluations for one resource and namespace; a changed one is another object.

    `mutations` are those policies of the plan that may be about these objects.
    """

    __slots__ = ("gvk", "gvr", "has_policies", "mutations", "namespace_labels", "namespace_object", "plan", "settings")

    def __init__(
        self, plan: ScanPlan, key: IndexKey, gvr: GVR, namespace: JSONObject | None, settings: EvaluationSettings
    ) -> None:
        """Take the plan, what the objects have in common, their namespace, and the settings of the moment."""
        self.gvk = key.gvk
        self.gvr = gvr
        self.move_to(plan, key)
        self.namespace_object = namespace
        self.namespace_labels = labels_of(namespace) if namespace is not None else None
        self.settings = settings

    def move_to(self, plan: ScanPlan, key: IndexKey) -> None:
        """Take a plan that gives the same results for these objects."""
        self.plan = plan
        self.mutations = tuple(each for policy, each in plan.mutations if plan.matches(policy, key))
        self.has_policies = bool(self.mutations) or any(plan.matches(each, key) for each in plan.checks.policies)

    def differs(self, namespace: JSONObject | None) -> bool:
        """Return whether the namespace of these objects is another one than it was."""
        return namespace != self.namespace_object

    def request(self, body: JSONObject) -> Request:
        """Return the request that a scan evaluates for an object."""
        labels, namespace = self.namespace_labels, self.namespace_object
        if self.gvr.resource == "namespaces" and not self.gvr.group:
            labels, namespace = labels_of(body), body
        return Request.from_live(
            body,
            namespace_labels=labels,
            namespace_object=namespace,
            gvk=self.gvk,
            gvr=self.gvr,
            settings=self.settings,
        )


def labels_of(body: JSONObject) -> dict[str, str]:
    """Return the labels of an object."""
    labels: dict[str, str] = (body.get("metadata") or {}).get("labels") or {}
    return labels


class Outcome:
    """The outcome of an evaluation, as far as it must be remembered; objects with the same results share one.

    `digest` is that of the results; `reads_host` means that they may change while the object does not.
    """

    __slots__ = ("config_maps", "digest", "has_errors", "is_empty", "reads_host")

    def __init__(
        self,
        digest: bytes,
        config_maps: frozenset[ConfigMapKey],
        *,
        reads_host: bool,
        has_errors: bool,
        is_empty: bool,
    ) -> None:
        """Take the digest of the results and what they depend on."""
        self.digest = digest
        self.config_maps = config_maps
        self.reads_host = reads_host
        self.has_errors = has_errors
        self.is_empty = is_empty


class Evaluation(NamedTuple):
    """The results for one object that reports show, their outcome, and the name of the object."""

    results: tuple[RuleResult, ...]
    outcome: Outcome
    ref: ResourceRef

    def items(self, seconds: int) -> list[JSONObject]:
        """Return the results as items of a report, at a time in seconds since the Unix epoch."""
        return [bounded_result(plain_result(result, seconds)) for result in self.results]


class Evaluator:
    """Evaluates objects; outcomes are shared among objects with the same results. Several threads may use one."""

    def __init__(self, shown: ReportFilter) -> None:
        """Take what reports show."""
        self._shown = shown
        self._outcomes: dict[object, tuple[Sequence[RuleResult], tuple[RuleResult, ...], Outcome]] = {}

    def evaluate(self, body: JSONObject, context: ScanContext, host: Host, began: float | None = None) -> Evaluation:
        """Evaluate one object, since `began` (monotonic); never raises for a policy or a host."""
        noting = NotingHost(host)
        request = context.request(body)
        deadline = (time.monotonic() if began is None else began) + _SECONDS
        found: Sequence[RuleResult] = (
            Engine(context.plan.checks, noting).review(request, SCAN, deadline=deadline).results
        )
        for policies in context.mutations:
            review = Engine(policies, noting).review(request, MUTATION_CHECK, deadline=deadline)
            found = (*found, *(_as_mutation_check(result, body) for result in review.results))
        reads = noting.reads_host, noting.config_maps
        key: object = (*map(id, found), reads)
        known = self._outcomes.get(key)
        if known is None:
            kept = tuple(filter(self._shown.keeps, found))
            outcome, is_fixed = self._outcome(found, kept, reads)
            if is_fixed:
                # results of rules that pass are the same objects every time, and are kept with their ids
                self._remember(key, found, kept, outcome)
        else:
            _, kept, outcome = known
        # never the body: a slice of time has hundreds of them, and memory that is used again is the fastest
        ref = ResourceRef(body.get("apiVersion") or "", body.get("kind") or "", request.namespace, request.name)
        return Evaluation(kept, outcome, ref)

    def _outcome(
        self,
        found: Sequence[RuleResult],
        results: tuple[RuleResult, ...],
        reads: tuple[bool, frozenset[ConfigMapKey]],
    ) -> tuple[Outcome, bool]:
        """Return the outcome of results, and whether it is a new one or the results were these very objects before."""
        named = _make_key(results)
        key = None if named is None else (*named, reads)
        known = None if key is None else self._outcomes.get(key)
        if key is not None and known is not None:
            before, _, outcome = known
            is_fixed = len(before) == len(found) and all(map(is_, before, found))
            if not is_fixed:  # the first results may come from before the fast tiers were compiled
                self._remember(key, found, results, outcome)
            return outcome, is_fixed
        outcome = Outcome(
            results_digest(plain_result(result, 0) for result in results) if results else b"",
            reads[1],
            reads_host=reads[0],
            has_errors=any(result.status is Status.ERROR for result in results),
            is_empty=not results,
        )
        if key is not None:
            self._remember(key, found, results, outcome)
        return outcome, True

    def _remember(
        self, key: object, found: Sequence[RuleResult], kept: tuple[RuleResult, ...], outcome: Outcome
    ) -> None:
        if len(self._outcomes) >= _MAX_OUTCOMES:
            self._outcomes.clear()
        self._outcomes[key] = found, kept, outcome


def _make_key(results: tuple[RuleResult, ...]) -> tuple[object, ...] | None:
    """Return what the items of results are made of, None where that is not worth comparing."""
    parts: list[object] = []
    for each in results:
        if each.properties or each.effects or each.patched is not None:
            return None
        parts += (id(each.rule), each.status, each.message, each.exceptions, each.detail)
    key = tuple(parts)
    try:
        hash(key)
    except TypeError:  # details with documents in them
        return None
    return key


def _as_mutation_check(result: RuleResult, body: JSON) -> RuleResult:
    """Return what a mutation means for an object that exists: it should have been applied."""
    if result.status is not Status.PASS or result.patched is None or result.patched == body:
        return result
    # Kyverno: the result still names the binding
    detail = result.detail if isinstance(result.detail, CelDetail) else None
    return result._replace(status=Status.FAIL, message=_NOT_APPLIED, patched=None, detail=detail)
