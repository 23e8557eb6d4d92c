"""The smallest change of the object that flips the result of a rule.

Candidates are edits of the fields that the trace blames, with values that the rule names. Each is tried by a review of
the changed object by the whole set of policies; only a change for which the engine gave the other result is returned.
One edit is tried first, then two, then as many as the failures that appear one after the other need.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, islice, product
from typing import TYPE_CHECKING, TypeAlias

from pyverno.engine.explain.edits import Edit, applied, candidates
from pyverno.engine.explain.nodes import (
    ConditionNode,
    ControlNode,
    ElementNode,
    ExpressionNode,
    FieldPath,
    Node,
    PartNode,
    PatternNode,
    RuleTrace,
    Shown,
)
from pyverno.engine.explain.recording import ReviewBy, recorded_policies
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Request
from pyverno.engine.result import RuleResult, Status
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.patch.jsondiff import create_patch
from pyverno.value import dataclass, replace

if TYPE_CHECKING:
    from pyverno.engine.engine import Review

__all__ = ["Change", "Traced", "smallest_change"]

MAX_REVIEWS = 1500
MAX_TRACES = 150
MAX_EDITS = 32
_ALONE = 200
"""How many edits are tried alone."""
_BROAD = 6
"""How many first edits a search for two follows up."""
_WIDE = 60
"""How many further edits are tried after others."""
_DEEP = 6
"""How many edits of one field are tried together with others."""

_Turned: TypeAlias = tuple[tuple[Edit, ...], Status]
"""Edits that flip the rule, and its status with them."""

Traced: TypeAlias = "Callable[[Request], Sequence[RuleTrace]]"
"""Reviews a request and returns the traces of the rule to flip."""


@dataclass(frozen=True, slots=True)
class Change:
    """Edits of the object, the status that the rule then has, and the edits as a JSON patch."""

    edits: tuple[Edit, ...]
    status: Status
    patch: tuple[JSONObject, ...]
    resource: JSON


class _OutOfReviewsError(Exception):
    """The search has used up its reviews."""


class _Search:
    """One search: it counts the reviews that it makes."""

    def __init__(
        self, request: Request, result: RuleResult, review: Callable[[Request], Review], trace: Traced
    ) -> None:
        self._request = request
        self._result = result
        self._review = review
        self._trace = trace
        self._wanted = _opposite_statuses(result.status)
        self._reviews = MAX_REVIEWS
        self._traces = MAX_TRACES

    def run(self, traces: Sequence[RuleTrace]) -> Change | None:
        try:
            return self._run(traces)
        except _OutOfReviewsError:
            return None

    def _run(self, traces: Sequence[RuleTrace]) -> Change | None:
        first = [*candidates(traces, self._request.object)]
        steps: list[tuple[Edit, str]] = []
        found = self._alone(first[:_ALONE], steps)
        if found is None:
            found = self._second(steps)
        if found is None:
            found = self._step_by_step(traces)
        if found is None:
            found = self._pair(first)
        return None if found is None else self._change(*found)

    def _alone(self, edits: Iterable[Edit], steps: list[tuple[Edit, str]]) -> _Turned | None:
        """Try each edit; keep in `steps` those after which the rule fails with another text."""
        messages = {self._result.message}
        for edit in edits:
            found, message = self._try((edit,))
            if found is not None:
                return found
            if message and message not in messages:
                messages.add(message)
                steps.append((edit, message))
        return None

    def _second(self, steps: Sequence[tuple[Edit, str]]) -> _Turned | None:
        """Try the trace's suggestions after a first edit that changed the rule's result."""
        for edit, _ in steps[:_BROAD]:
            for other in islice(candidates(*self._trace_changed((edit,))), _WIDE):
                found, _ = self._try((edit, other))
                if found is not None:
                    return found
        return None

    def _step_by_step(self, traces: Sequence[RuleTrace]) -> _Turned | None:
        """Fix one failure after the other, then drop unnecessary edits."""
        edits: tuple[Edit, ...] = ()
        seen = {self._result.message}
        document = self._request.object
        while len(edits) < MAX_EDITS:
            before = _score(traces)
            tried: Counter[FieldPath] = Counter()
            for edit in islice(candidates(traces, document), _WIDE):
                together = (*edits, edit)
                found, message = self._try(together)
                if found is not None:
                    return self._without_surplus(found)
                tried[edit.path] += 1
                if not message or (message in seen and tried[edit.path] > _DEEP):
                    continue
                after, changed = self._trace_changed(together)
                if _score(after) > before:
                    seen.add(message)
                    edits, traces, document = together, after, changed
                    break
            else:
                return None
        return None

    def _pair(self, edits: Sequence[Edit]) -> _Turned | None:
        """Try two edits of different fields together, where none of them alone changes the trace."""
        by_path: dict[FieldPath, list[Edit]] = {}
        for edit in edits:
            by_path.setdefault(edit.path, []).append(edit)
        for one, other in combinations(by_path, 2):
            for together in product(by_path[one][:_DEEP], by_path[other][:_DEEP]):
                found, _ = self._try(together)
                if found is not None:
                    return found
        return None

    def _without_surplus(self, turned: _Turned) -> _Turned:
        edits, status = turned
        for edit in edits:
            fewer = tuple(each for each in edits if each is not edit)
            found, _ = self._try(fewer) if fewer else (None, "")
            if found is not None:
                edits, status = found
        return edits, status

    def _trace_changed(self, edits: tuple[Edit, ...]) -> tuple[Sequence[RuleTrace], JSON]:
        """Return the traces of the rule for the changed object, and that object; none when no trace is left."""
        changed = applied(self._request.object, edits)
        if changed is None or self._traces <= 0:
            return (), None
        self._traces -= 1
        return self._trace(self._request.with_object(changed)), changed

    def _try(self, edits: tuple[Edit, ...]) -> tuple[_Turned | None, str]:
        """Review the changed object; return the edits if they turn the rule, else how it fails ("" for an error)."""
        changed = applied(self._request.object, edits)
        if changed is None or changed == self._request.object:
            return None, ""
        if self._reviews <= 0:
            raise _OutOfReviewsError
        self._reviews -= 1
        review = self._review(self._request.with_object(changed))
        results = [each for each in review.results if each.rule is self._result.rule]
        if results and all(each.status in self._wanted for each in results):
            return (edits, results[0].status), ""
        return None, next((each.message or " " for each in results if each.status is Status.FAIL), "")

    def _change(self, edits: tuple[Edit, ...], status: Status) -> Change:
        changed = applied(self._request.object, edits)
        return Change(edits, status, tuple(create_patch(self._request.object, changed)), changed)


def _score(traces: Sequence[RuleTrace]) -> int:
    """Return how far a rule got: how many of its requirements hold before the one that decided."""
    return sum(_holds(node) for trace in traces for node in trace.walk())


def _holds(node: Node) -> int:
    match node:
        case PatternNode(part="key" | "value", outcome="pass"):
            return 1
        case ControlNode():
            return -len(node.fields)
        case ConditionNode(holds=False) | ElementNode():
            return 1
        case ExpressionNode(value=Shown(value=True)):
            return 2
        case PartNode(value=Shown(value=True)):
            return 1
    return 0


def _opposite_statuses(status: Status) -> frozenset[Status]:
    if status in (Status.PASS, Status.SKIP):
        return frozenset({Status.FAIL, Status.WARN})
    return frozenset({Status.PASS})


def smallest_change(
    request: Request,
    result: RuleResult,
    traces: Sequence[RuleTrace],
    policies: PolicySet,
    review_by: ReviewBy,
) -> Change | None:
    """Return the smallest change that the search finds; None when it finds none."""
    if not isinstance(request.object, dict) or (request.gvk.kind == "Secret" and not request.gvk.group):
        return None

    def trace(changed: Request) -> Sequence[RuleTrace]:
        with recorded_policies(policies) as recorded:
            _, found = recorded.review(changed, review_by, only=result.rule.policy)
        return [each for each in found if each.rule is result.rule and not each.is_old]

    plain = replace(request)  # one that no review has seen
    return _Search(plain, result, lambda changed: review_by(policies, changed), trace).run(traces)
