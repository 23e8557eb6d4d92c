"""Compares two sets of policies request by request, and finds the smallest object on which they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import Final

from pyverno.compiler.equivalence.case import Case
from pyverno.compiler.equivalence.circumstances import ALICE
from pyverno.compiler.equivalence.objects import ObjectMaker
from pyverno.compiler.equivalence.outcome import Outcome, outcome_of, repeats_names
from pyverno.compiler.equivalence.shrinking import Admit, smallest
from pyverno.compiler.equivalence.subresources import EPHEMERAL, is_for, subresource_cases, with_ephemeral
from pyverno.compiler.equivalence.supply import ObjectSupply
from pyverno.compiler.equivalence.vocabulary import Vocabulary
from pyverno.engine.engine import Engine
from pyverno.engine.phases import DELETING
from pyverno.engine.request import Operation, Request
from pyverno.engine.rule import Stage
from pyverno.kube.json import JSONObject, equal
from pyverno.value import dataclass, field, replace

__all__ = ["Comparison", "Counterexample", "Pair", "compare"]

_SIDES: Final = ("first", "second")
_RAW_SHARE: Final = 10
"""Of this many objects, one is also judged as generated, before admission."""

_SUBRESOURCE_SHARE: Final = 5
"""Of this many requests, one is for a matched subresource with a kind of its own."""

_MOST_CASES: Final = 400
_FEWEST_CASES: Final = 60
_CASE_SHARE: Final = 4
_ALIKE: Final = 6
"""Cases of one kind with the same verdicts and messages that are kept as a sample."""


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A request on which the sides differ; `difference` is `decision`, `mutation` or `effects`."""

    difference: str
    case: Case
    first: Outcome
    second: Outcome

    @property
    def operation(self) -> Operation:
        """The operation of the request."""
        return self.case.operation

    @property
    def resource(self) -> JSONObject:
        """The object of the request."""
        return self.case.resource

    @property
    def old(self) -> JSONObject | None:
        """The object that is replaced."""
        return self.case.old


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of a comparison: requests by kind and operation, verdicts of each side, a counterexample.

    `reordered` counts requests after which the sides leave the same object up to the order of unordered lists, and
    `outside` objects on which mutations are not compared, because a list names an element twice. `inputs` counts the
    objects by their origin. `raw` is an object that no API server admits and that the sides decide differently, of
    `raw_differences` such among `raw_judged`. `sample` holds cases of all verdicts that occurred.
    `selective` names the sides that match some requests of a kind and operation and leave others alone.
    """

    requests: Mapping[str, int]
    first: Mapping[str, int]
    second: Mapping[str, int]
    refused: int
    counterexample: Counterexample | None = None
    reordered: int = 0
    outside: int = 0
    inputs: Mapping[str, int] = field(default_factory=dict)
    raw_judged: int = 0
    raw_differences: int = 0
    raw: JSONObject | None = None
    sample: tuple[Case, ...] = ()
    selective: frozenset[str] = frozenset()

    @property
    def blind(self) -> Sequence[str]:
        """Reasons why a comparison without a counterexample is weak: verdicts that never occurred on both sides."""
        reasons = []
        if not any(self.requests.values()):
            reasons.append("no object was admitted")
        for name, side in zip(_SIDES, (self.first, self.second), strict=True):
            if not side.get("changed") and not side.get("effects"):
                if not (side.get("deny") or side.get("error")):
                    reasons.append(f"the {name} side never blocked and never changed anything")
                elif not side.get("allow") and name not in self.selective:
                    reasons.append(f"the {name} side never allowed what it matched")
        return reasons


@dataclass(frozen=True, slots=True)
class Pair:
    """Two sides, and the admission that decides which objects exist."""

    first: Engine
    second: Engine
    admit: Admit

    def judge(self, case: Case) -> tuple[Outcome, Outcome]:
        """Return the outcome of a request on each side, including that of a cleanup run."""
        request = case.request()
        is_live = case.operation is Operation.CREATE and not case.subresource and self.has_stage(Stage.CLEANUP)
        live = case.live() if is_live else None
        return _outcome(self.first, request, live), _outcome(self.second, request, live)

    def has_stage(self, *stages: Stage) -> bool:
        """Return whether a side has rules of these stages."""
        policies = (*self.first.policies, *self.second.policies)
        return any(rule.stage in stages for policy in policies for rule in policy.rules)


def compare(
    pair: Pair,
    vocabulary: Vocabulary,
    *,
    seeds: Iterable[JSONObject] = (),
    count: int = 2000,
    seed: int = 1,
    operations: Sequence[Operation] = (Operation.CREATE, Operation.UPDATE),
    watched: Callable[[Iterable[JSONObject]], Iterable[JSONObject]] = iter,
) -> Comparison:
    """Judge generated objects by both sides until they differ; `seeds` are objects to begin with.

    `watched` passes the objects on, and may show how many there were.
    """
    search = _Search(pair, vocabulary, seed, tuple(operations), count)
    supply = ObjectSupply(search.maker, vocabulary, [*seeds], count)
    for body in watched(supply):
        search.try_object(body, supply)
        if search.found is not None:
            break
    else:
        for case in subresource_cases(vocabulary, search.maker, search.chance, count // _SUBRESOURCE_SHARE):
            search.try_case(case)
            if search.found is not None:
                break
    return search.comparison(supply)


class _Search:
    """The state of one comparison: the tested requests, and the first difference."""

    def __init__(
        self, pair: Pair, vocabulary: Vocabulary, seed: int, operations: tuple[Operation, ...], count: int
    ) -> None:
        self.most_raw = max(1, count // _RAW_SHARE)
        self.most_cases = min(_MOST_CASES, _FEWEST_CASES + count // _CASE_SHARE)
        self.pair, self.vocabulary, self.operations = pair, vocabulary, operations
        self.maker = ObjectMaker(vocabulary, seed)
        self.chance = Random(seed)  # noqa: S311 - the same requests for the same seed
        self.mutates = pair.has_stage(Stage.MUTATE, Stage.MUTATE_EXISTING)
        self.requests: Counter[str] = Counter()
        self.sides: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
        self.matches: set[tuple[str, str, bool]] = set()
        self.refused = self.reordered = self.outside = self.raw_judged = self.raw_differences = 0
        self.raw: JSONObject | None = None
        self.found: Counterexample | None = None
        self.alike: Counter[tuple[str, ...]] = Counter()
        self.sample: list[Case] = []
        self.previous: dict[str, JSONObject] = {}

    def try_object(self, body: JSONObject, supply: ObjectSupply) -> None:
        """Judge an object in all operations, if an API server admits it."""
        admitted = self.pair.admit(body)
        if admitted is None:
            self.refused += 1
        if admitted is None or len(body) < len(admitted) or not self.raw_judged % 2:
            self._try_raw(body)
        if admitted is None:
            return
        if self.mutates and repeats_names(admitted):
            self.outside += 1
            return
        kind = f"{admitted['apiVersion']}/{admitted['kind']}"
        for case in self._cases(admitted, body, kind):
            outcomes = self.try_case(case)
            supply.note(kind, is_matched=any(outcome.statuses or outcome.effects for outcome in outcomes))
            if self.found is not None:
                return
            if case.operation is Operation.CREATE and not equal(outcomes[0].exact, admitted):
                self.found = _applied_twice(self.pair, case, outcomes[0])
        self.previous[kind] = admitted

    def _cases(self, admitted: JSONObject, body: JSONObject, kind: str) -> Iterator[Case]:
        old = self.previous.get(kind)
        old = None if old is None else _with_name(old, admitted)
        for operation in self.operations:
            if operation is not Operation.UPDATE:
                yield self._case(admitted, operation, None)
            elif old is not None:
                yield self._case(admitted, operation, old)
        if old is None or Operation.UPDATE not in self.operations:
            return
        for name in dict.fromkeys(name for _, name in self.vocabulary.subresources):
            if is_for(self.vocabulary, kind, name):
                # the API server takes ephemeral containers by their subresource only
                changed = with_ephemeral(self.pair.admit, admitted, body) if name == EPHEMERAL else admitted
                if changed is not None:
                    yield replace(self._case(changed, Operation.UPDATE, old), subresource=name)

    def _case(self, body: JSONObject, operation: Operation, old: JSONObject | None) -> Case:
        user, labels = self.vocabulary.circumstances.choose(self.chance)
        return Case(body, operation, old, user, labels)

    def try_case(self, case: Case) -> tuple[Outcome, Outcome]:
        """Judge a request by both sides, and count their verdicts."""
        outcomes = self.pair.judge(case)
        self.requests[case.name] += 1
        for name, side, outcome in zip(_SIDES, self.sides, outcomes, strict=True):
            _count(side, outcome, case.resource)
            self.matches.add((name, case.name, bool(outcome.statuses)))
        sort = (case.name, *(word for each in outcomes for word in (each.word, *each.statuses, *each.messages)))
        self.alike[sort] += 1
        if self.alike[sort] <= _ALIKE and len(self.sample) < self.most_cases:
            self.sample.append(case)
        if outcomes[0] != outcomes[1]:
            self.found = _shrink(self.pair, case)
        else:
            self.reordered += not equal(outcomes[0].exact, outcomes[1].exact)
        return outcomes

    def _try_raw(self, body: JSONObject) -> None:
        """Judge an object as it was made, without defaults and whether or not an API server admits it."""
        if self.raw_judged >= self.most_raw:
            return
        self.raw_judged += 1
        if self._differs_raw(body):
            self.raw_differences += 1
            if self.raw is None:
                self.raw = smallest(_as_it_is, body, self._differs_raw, most=2 * self.most_raw)

    def _differs_raw(self, body: JSONObject) -> bool:
        first, second = self.pair.judge(Case(body, Operation.CREATE))
        return first.blocks != second.blocks

    def comparison(self, supply: ObjectSupply) -> Comparison:
        """Return the record of the comparison and its result."""
        return Comparison(
            self.requests,
            *self.sides,
            self.refused,
            self.found,
            self.reordered,
            self.outside,
            supply.made,
            self.raw_judged,
            self.raw_differences,
            self.raw,
            tuple(self.sample),
            frozenset(side for side, name, is_matched in self.matches if (side, name, not is_matched) in self.matches),
        )


def _outcome(engine: Engine, request: Request, live: Request | None) -> Outcome:
    return outcome_of(engine.review(request), None if live is None else engine.review(live, DELETING))


def _applied_twice(pair: Pair, case: Case, first: Outcome) -> Counterexample | None:
    """Judge the object that the sides leave once more: webhooks are called again after others have changed it."""
    body = pair.admit(first.exact) if isinstance(first.exact, dict) else None
    if body is None:
        return None
    again = replace(case, resource=body)
    outcomes = pair.judge(again)
    return None if outcomes[0] == outcomes[1] else _shrink(pair, again)


def _count(side: Counter[str], outcome: Outcome, before: JSONObject) -> None:
    side[outcome.word] += 1
    if outcome.exact is not None and not equal(outcome.exact, before):  # a deletion leaves no object
        side["changed"] += 1
    if outcome.effects:
        side["effects"] += 1


def _with_name(old: JSONObject, new: JSONObject) -> JSONObject:
    """Return an object under the name of another one: an update keeps names."""
    own, given = old.get("metadata") or {}, new.get("metadata") or {}
    kept = {key: given[key] for key in ("name", "namespace") if key in given}
    return {**old, "metadata": {**own, **kept}}


# ------------------------------------------------------------------------------------------------------------ shrinking


def _shrink(pair: Pair, case: Case) -> Counterexample:
    """Take parts of the request away while the sides still differ in the same way: user, labels, object, old object."""
    difference = _difference(*pair.judge(case))

    def shows(candidate: Case) -> bool:
        return _difference(*pair.judge(candidate)) == difference

    admit = pair.admit if case.parent is None else _as_it_is
    for simpler in (replace(case, user=ALICE), replace(case, labels={}), replace(case, user=ALICE, labels={})):
        case = simpler if shows(simpler) else case
    before = case
    body = smallest(admit, case.resource, lambda body: shows(replace(before, resource=body)))
    case = replace(case, resource=body)
    if case.old is not None and case.operation is not Operation.CREATE:
        whole = case
        old = smallest(admit, case.old, lambda old: shows(replace(whole, old=_with_name(old, body))))
        case = replace(case, old=_with_name(old, body))
    return Counterexample(difference, case, *pair.judge(case))


def _as_it_is(body: JSONObject) -> JSONObject:
    return body


def _difference(first: Outcome, second: Outcome) -> str:
    if first.blocks != second.blocks:
        return "decision"
    if first.resource != second.resource:
        return "mutation"
    return "effects" if first.effects != second.effects else ""
