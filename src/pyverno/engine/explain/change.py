"""The smallest change of the object that turns the result of a rule.

Candidates are edits of the fields that the trace blames, with values that the rule names. Each is tried by a review of
the changed object by the whole set of policies; nothing is returned that the engine has not seen turn the result. One
edit is tried first, then two, then as many as the failures that appear one after the other need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, product
from typing import TYPE_CHECKING, TypeAlias

from pyverno.engine.explain.edits import Edit, applied, candidates
from pyverno.engine.explain.nodes import FieldPath, RuleTrace
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Request
from pyverno.engine.result import RuleResult, Status
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.patch.jsondiff import create_patch
from pyverno.value import dataclass, replace

if TYPE_CHECKING:
    from pyverno.engine.engine import Review

__all__ = ["Change", "Traced", "smallest_change"]

MAX_REVIEWS = 600
MAX_TRACES = 24
MAX_EDITS = 16
_DEEP = 5
"""How many edits of one field a search for two tries together with those of another."""
_BROAD = 6
"""How many first edits a search for two follows up."""

Traced: TypeAlias = "Callable[[Request], Sequence[RuleTrace]]"
"""Reviews a request and returns the traces of the rule that is to turn."""


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
        self._wanted = _turned(result.status)
        self._reviews = MAX_REVIEWS
        self._traces = MAX_TRACES
        # edits after which the rule says the same, which may be about something else
        self._silent: list[tuple[tuple[Edit, ...], str]] = []

    def run(self, traces: Sequence[RuleTrace]) -> Change | None:
        try:
            return self._run(traces)
        except _OutOfReviewsError:
            return None

    def _run(self, traces: Sequence[RuleTrace]) -> Change | None:
        first = [*candidates(traces, self._request.object)]
        steps: list[tuple[tuple[Edit, ...], str]] = []
        found = self._one_more((), first, steps, self._result.message)
        if found is None:
            for edits, message in (*steps[:_BROAD], *self._silent[:_BROAD]):
                found = self._one_more(edits, self._next(edits), None, message)
                if found is not None:
                    break
        if found is None and steps:
            found = self._step_by_step(*steps[0])
        if found is None:
            found = self._pair(first)
        return None if found is None else self._change(*found)

    def _one_more(
        self,
        before: tuple[Edit, ...],
        edits: Iterable[Edit],
        steps: list[tuple[tuple[Edit, ...], str]] | None,
        message: str,
    ) -> tuple[tuple[Edit, ...], Status] | None:
        """Try each edit after others; keep in `steps` those after which the rule says something else."""
        messages = {message}
        for edit in edits:
            together = (*before, edit)
            results = self._results(together)
            if results is None:
                continue
            if results and all(each.status in self._wanted for each in results):
                return together, results[0].status
            now = next((each.message for each in results if each.status not in self._wanted), None)
            if steps is not None and now is not None and now not in messages:
                messages.add(now)
                steps.append((together, now))
            elif not before and now is not None and sum(each[0].path == edit.path for each, _ in self._silent) < 2:
                self._silent.append((together, now))
        return None

    def _pair(self, edits: Sequence[Edit]) -> tuple[tuple[Edit, ...], Status] | None:
        """Try two edits of different fields together, where none of them alone makes the rule say something else."""
        by_path: dict[FieldPath, list[Edit]] = {}
        for edit in edits:
            by_path.setdefault(edit.path, []).append(edit)
        for one, other in combinations(by_path, 2):
            for first, second in product(by_path[one][:_DEEP], by_path[other][:_DEEP]):
                results = self._results((first, second))
                if results and all(each.status in self._wanted for each in results):
                    return (first, second), results[0].status
        return None

    def _step_by_step(self, edits: tuple[Edit, ...], message: str) -> tuple[tuple[Edit, ...], Status] | None:
        """Mend one failure after the other, then leave out what was not needed."""
        seen = {self._result.message, message}
        while len(edits) < MAX_EDITS:
            steps: list[tuple[tuple[Edit, ...], str]] = []
            found = self._one_more(edits, self._next(edits), steps, message)
            if found is not None:
                return self._without_surplus(*found)
            further = next((each for each in steps if each[1] not in seen), None)
            if further is None:
                return None
            edits, message = further
            seen.add(message)
        return None

    def _without_surplus(self, edits: tuple[Edit, ...], status: Status) -> tuple[tuple[Edit, ...], Status]:
        for edit in edits:
            fewer = tuple(each for each in edits if each is not edit)
            results = self._results(fewer) if fewer else None
            if results and all(each.status in self._wanted for each in results):
                edits, status = fewer, results[0].status
        return edits, status

    def _next(self, edits: tuple[Edit, ...]) -> Iterator[Edit]:
        changed = applied(self._request.object, edits)
        if changed is None or self._traces <= 0:
            return iter(())
        self._traces -= 1
        return candidates(self._trace(self._request.with_object(changed)), changed)

    def _results(self, edits: tuple[Edit, ...]) -> Sequence[RuleResult] | None:
        """Return what the rule says of the changed object; None when the edits change nothing."""
        changed = applied(self._request.object, edits)
        if changed is None or changed == self._request.object:
            return None
        if self._reviews <= 0:
            raise _OutOfReviewsError
        self._reviews -= 1
        review = self._review(self._request.with_object(changed))
        return [each for each in review.results if each.rule is self._result.rule]

    def _change(self, edits: tuple[Edit, ...], status: Status) -> Change:
        changed = applied(self._request.object, edits)
        return Change(edits, status, tuple(create_patch(self._request.object, changed)), changed)


def _turned(status: Status) -> frozenset[Status]:
    if status in (Status.PASS, Status.SKIP):
        return frozenset({Status.FAIL, Status.WARN})
    return frozenset({Status.PASS})


def smallest_change(
    request: Request,
    result: RuleResult,
    traces: Sequence[RuleTrace],
    policies: PolicySet,
    review_by: Callable[[PolicySet, Request], Review],
) -> Change | None:
    """Return the smallest change that the search finds; None when it finds none."""
    from pyverno.engine.explain.explanation import explain

    if not isinstance(request.object, dict) or (request.gvk.kind == "Secret" and not request.gvk.group):
        return None
    own = [policy for policy in policies.policies if policy.info is result.rule.policy]
    narrowed = PolicySet(own, policies.exceptions, asks_all=policies.asks_all)

    def trace(changed: Request) -> Sequence[RuleTrace]:
        explained = explain(changed, narrowed, (), review_by)
        return [each for each in explained.rules if each.rule is result.rule and not each.is_old]

    plain = replace(request)  # one that no review has seen
    return _Search(plain, result, lambda changed: review_by(policies, changed), trace).run(traces)
