"""The same request judged by two sets of policies: where they differ, and the smallest object that still shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from pyverno.compiler.equivalence.material import Material
from pyverno.compiler.equivalence.objects import ObjectMaker
from pyverno.compiler.equivalence.outcome import Outcome, outcome_of, repeats_names
from pyverno.compiler.equivalence.shrinking import Admit, smallest
from pyverno.compiler.equivalence.supply import ObjectSupply
from pyverno.engine.engine import Engine
from pyverno.engine.phases import DELETING
from pyverno.engine.request import Operation, Request, User
from pyverno.engine.rule import Stage
from pyverno.kube.json import JSONObject, equal
from pyverno.value import dataclass

__all__ = ["Comparison", "Counterexample", "Pair", "compare"]

_USER: Final = User(username="alice", groups=("system:authenticated",))
"""Who makes every request: rules for certain users do not match without one."""


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A request on which the sides differ; `difference` is `decision`, `mutation` or `effects`."""

    difference: str
    operation: Operation
    resource: JSONObject
    old: JSONObject | None
    first: Outcome
    second: Outcome


@dataclass(frozen=True, slots=True)
class Comparison:
    """What was tried and what came of it: requests by kind and operation, verdicts of each side, a counterexample.

    `reordered` counts requests after which the sides leave the same object up to the order of unordered lists, and
    `outside` objects on which mutations are not compared, because a list names an element twice.
    """

    requests: Mapping[str, int]
    first: Mapping[str, int]
    second: Mapping[str, int]
    refused: int
    counterexample: Counterexample | None = None
    reordered: int = 0
    outside: int = 0

    @property
    def blind(self) -> Sequence[str]:
        """Reasons why a comparison without a counterexample is weak: verdicts that never occurred on both sides."""
        reasons = []
        if not any(self.requests.values()):
            reasons.append("no object was admitted")
        for name, side in (("first", self.first), ("second", self.second)):
            if not side.get("changed") and not side.get("effects"):
                if not (side.get("deny") or side.get("error")):
                    reasons.append(f"the {name} side never blocked and never changed anything")
                elif not side.get("allow"):
                    reasons.append(f"the {name} side never allowed what it matched")
        return reasons


@dataclass(frozen=True, slots=True)
class Pair:
    """Two sides, and what decides which objects exist."""

    first: Engine
    second: Engine
    admit: Admit

    def judge(self, resource: JSONObject, old: JSONObject | None, operation: Operation) -> tuple[Outcome, Outcome]:
        """Return what each side does with a request, and with the object in a cleanup run."""
        own = None if operation is Operation.CREATE else old
        request = Request.from_manifest(resource, operation=operation, old=own, user=_USER)
        live = Request.from_live(resource) if operation is Operation.CREATE and self.has_stage(Stage.CLEANUP) else None
        return _outcome(self.first, request, live), _outcome(self.second, request, live)

    def has_stage(self, *stages: Stage) -> bool:
        """Return whether a side has rules of these stages."""
        policies = (*self.first.policies, *self.second.policies)
        return any(rule.stage in stages for policy in policies for rule in policy.rules)


def compare(
    pair: Pair,
    material: Material,
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
    maker = ObjectMaker(material, seed)
    requests: Counter[str] = Counter()
    sides: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    refused = reordered = outside = 0
    mutates = pair.has_stage(Stage.MUTATE, Stage.MUTATE_EXISTING)
    previous: dict[str, JSONObject] = {}
    supply = ObjectSupply(maker, material, [*seeds], count)
    for body in watched(supply):
        admitted = pair.admit(body)
        if admitted is None:
            refused += 1
            continue
        if mutates and repeats_names(admitted):
            outside += 1
            continue
        kind = f"{admitted['apiVersion']}/{admitted['kind']}"
        for operation in operations:
            old = previous.get(kind) if operation is Operation.UPDATE else None
            if operation is Operation.UPDATE:
                if old is None:
                    continue
                old = _with_name(old, admitted)
            requests[f"{kind} {operation.value}"] += 1
            outcomes = pair.judge(admitted, old, operation)
            for side, outcome in zip(sides, outcomes, strict=True):
                _count(side, outcome, admitted)
            supply.note(kind, is_matched=any(outcome.statuses or outcome.effects for outcome in outcomes))
            if outcomes[0] != outcomes[1]:
                found = _shrink(pair, admitted, old, operation)
                return Comparison(requests, sides[0], sides[1], refused, found, reordered, outside)
            reordered += not equal(outcomes[0].exact, outcomes[1].exact)
            if operation is Operation.CREATE and not equal(outcomes[0].exact, admitted):
                again = _applied_twice(pair, outcomes[0])
                if again is not None:
                    return Comparison(requests, sides[0], sides[1], refused, again, reordered, outside)
        previous[kind] = admitted
    return Comparison(requests, sides[0], sides[1], refused, None, reordered, outside)


def _outcome(engine: Engine, request: Request, live: Request | None) -> Outcome:
    return outcome_of(engine.review(request), None if live is None else engine.review(live, DELETING))


def _applied_twice(pair: Pair, first: Outcome) -> Counterexample | None:
    """Judge the object that the sides leave once more: webhooks are called again after others have changed it."""
    body = pair.admit(first.exact) if isinstance(first.exact, dict) else None
    if body is None:
        return None
    outcomes = pair.judge(body, None, Operation.CREATE)
    return None if outcomes[0] == outcomes[1] else _shrink(pair, body, None, Operation.CREATE)


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


def _shrink(pair: Pair, resource: JSONObject, old: JSONObject | None, operation: Operation) -> Counterexample:
    """Take parts of the object, then of the old one, away while the sides still differ in the same way."""
    difference = _difference(*pair.judge(resource, old, operation))
    before = old

    def differs(body: JSONObject) -> bool:
        return _difference(*pair.judge(body, before, operation)) == difference

    resource = smallest(pair.admit, resource, differs)
    if old is not None and operation is not Operation.CREATE:

        def shows(body: JSONObject) -> bool:
            return _difference(*pair.judge(resource, _with_name(body, resource), operation)) == difference

        old = _with_name(smallest(pair.admit, old, shows), resource)
    own = None if operation is Operation.CREATE else old
    return Counterexample(difference, operation, resource, own, *pair.judge(resource, old, operation))


def _difference(first: Outcome, second: Outcome) -> str:
    if first.blocks != second.blocks:
        return "decision"
    if first.resource != second.resource:
        return "mutation"
    return "effects" if first.effects != second.effects else ""
