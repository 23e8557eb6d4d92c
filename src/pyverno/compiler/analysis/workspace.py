"""A set of policies and a population of objects: the verdict of each rule on each object.

Verdicts are kept as sets of numbers of objects, each set the bits of one integer, so that many rules can be compared
in pairs. Objects are judged as created by an ordinary user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import Final

from pyverno.compiler.analysis.finding import Witness
from pyverno.compiler.analysis.population import Population
from pyverno.compiler.analysis.sampling import Sample, spread
from pyverno.compiler.compile import Compilation
from pyverno.compiler.equivalence.case import Case
from pyverno.compiler.equivalence.circumstances import circumstances_of
from pyverno.compiler.equivalence.shrinking import smallest
from pyverno.engine.engine import Engine
from pyverno.engine.explain.nodes import FieldPath
from pyverno.engine.host import Host
from pyverno.engine.phases import MUTATING, VALIDATING
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Operation, Request, User
from pyverno.engine.result import Status
from pyverno.engine.rule import CompiledPolicy, CompiledRule, RuleInfo, Stage
from pyverno.kube.json import JSONObject, equal
from pyverno.value import dataclass

__all__ = ["USER", "RuleKey", "Verdicts", "Workspace", "count", "key_of", "numbers", "origin_of", "title_of"]

USER: Final = User(username="alice", groups=("system:authenticated",))
"""The user of every request: rules for certain users do not match without one."""

RuleKey = tuple[str, str, str]
"""Kind and key of the policy, name of the rule."""

Situation = tuple[User, Mapping[str, str]]
"""A user, and the labels of a namespace."""

_MOST_CHANGED: Final = 40
_MOST_SITUATIONS: Final = 24
_MOST_WAYS: Final = 3

HostOf = Callable[[Sequence[JSONObject]], Host]
"""Makes a host that knows some objects."""


@dataclass(slots=True)
class Verdicts:
    """The objects that a rule judged, and those that it failed, as sets of numbers."""

    judged: int = 0
    failed: int = 0

    @property
    def passed(self) -> int:
        """The objects that the rule judged and did not fail."""
        return self.judged & ~self.failed


def numbers(objects: int) -> Iterator[int]:
    """Yield the numbers of a set.

    >>> [*numbers(0b1101)]
    [0, 2, 3]
    """
    while objects:
        lowest = objects & -objects
        yield lowest.bit_length() - 1
        objects ^= lowest


def count(objects: int) -> int:
    """Return the size of a set."""
    return objects.bit_count()


def key_of(info: RuleInfo) -> RuleKey:
    """Return what identifies a rule among all policies."""
    return info.policy.kind, info.policy.key, info.name


def origin_of(info: RuleInfo) -> RuleKey:
    """Return the rule as its author wrote it, of which this may be the copy for a workload."""
    return info.policy.kind, info.policy.key, info.origin or info.name


def title_of(info: RuleInfo) -> str:
    """Return the name under which a finding shows a rule."""
    return f"{info.policy.key}/{info.name}" if info.name and info.name != info.policy.name else info.policy.key


class Workspace:
    """The input of the checks; `host_of` makes a host with the objects that rules may read."""

    def __init__(self, compilation: Compilation, population: Population, host_of: HostOf) -> None:
        """Take compiled policies and exceptions, and objects; policies that are not valid are left out."""
        self.compilation = compilation
        self.policies = compilation.policies
        self.exceptions = compilation.exceptions
        self.population = population
        self.host_of = host_of
        self.sample = Sample()
        self.samples: dict[str, Sample] = {}
        self._engines: dict[RuleKey, Engine] = {}
        self._satisfied: dict[tuple[RuleKey, int], Sequence[JSONObject]] = {}

    def begin(self, code: str) -> None:
        """Begin a check: `sample` counts the pairs of rules that it tries."""
        self.sample = self.samples[code] = Sample()

    @property
    def objects(self) -> tuple[JSONObject, ...]:
        """The population, by number."""
        return self.population.objects

    def rules(self, *stages: Stage) -> list[CompiledRule]:
        """Return the rules of some stages."""
        return [rule for policy in self.policies for rule in policy.rules if rule.stage in stages]

    @cached_property
    def host(self) -> Host:
        """A host that knows the population."""
        return self.host_of(self.objects)

    @cached_property
    def whole(self) -> Engine:
        """An engine with all policies and exceptions."""
        return Engine(PolicySet(self.policies, self.exceptions, asks_all=True), self.host)

    def engine_of(self, rule: CompiledRule) -> Engine:
        """Return an engine that has one rule only, and the exceptions."""
        key = key_of(rule.info)
        found = self._engines.get(key)
        if found is None:
            policies = PolicySet([CompiledPolicy(rule.info.policy, (rule,))], self.exceptions, asks_all=True)
            found = self._engines[key] = Engine(policies, self.host)
        return found

    # --------------------------------------------------------------------------------------------------------- verdicts

    @cached_property
    def verdicts(self) -> Mapping[RuleKey, Verdicts]:
        """The verdicts of validating rules on the test objects; a rule has none for objects on which it errs."""
        size = len(self.objects) // 8 + 1
        found: dict[RuleKey, tuple[bytearray, bytearray]] = {}
        for number, body in enumerate(self.objects):
            byte, bit = number >> 3, 1 << (number & 7)
            for key, status in self.statuses(self.whole, body).items():
                if status is not Status.ERROR:
                    # bytes, because an integer with one more bit is a copy of the whole
                    judged, failed = found.get(key) or found.setdefault(key, (bytearray(size), bytearray(size)))
                    judged[byte] |= bit
                    if status is Status.FAIL:
                        failed[byte] |= bit
        return {key: Verdicts(*(int.from_bytes(each, "little") for each in both)) for key, both in found.items()}

    def statuses(self, engine: Engine, body: JSONObject, request: Request | None = None) -> Mapping[RuleKey, Status]:
        """Return the status of each validating rule on an object: the worst of its results."""
        found: dict[RuleKey, Status] = {}
        for result in engine.review(request or _request(body), VALIDATING).results:
            key = key_of(result.rule)
            found[key] = max(found.get(key, result.status), result.status, key=_SEVERITY.__getitem__)
        return found

    def comparable(self, fewest: int) -> list[CompiledRule]:
        """Return the validating rules, as their authors wrote them, that failed and passed at least so many objects."""
        verdicts = self.verdicts
        written = [rule for rule in self.rules(Stage.VALIDATE) if not rule.info.origin]
        return [
            rule
            for rule in written
            if (found := verdicts.get(key_of(rule.info))) is not None
            and min(count(found.failed), count(found.passed)) >= fewest
        ]

    def status(self, rule: CompiledRule, body: JSONObject) -> Status | None:
        """Return the status of one validating rule on an object, None when it does not match."""
        return self.statuses(self.engine_of(rule), body).get(key_of(rule.info))

    @cached_property
    def situations(self) -> tuple[Situation, ...]:
        """Users and labels of namespaces that the policies distinguish, without the plain ones of other requests."""
        found = circumstances_of(item.document.value for item in self.compilation.items if not item.errors)
        by_others = [(user, found.namespaces[0]) for user in found.users[1:]]
        elsewhere = [(found.users[0], labels) for labels in found.namespaces[1:]]
        return (*by_others, *elsewhere)[:_MOST_SITUATIONS]

    def status_pairs(
        self, one: CompiledRule, other: CompiledRule, bodies: Sequence[JSONObject]
    ) -> Iterator[tuple[Status | None, Status | None]]:
        """Yield the statuses of two rules on objects for all situations; objects have neither users nor namespaces."""
        for body, (user, labels) in product(bodies, self.situations):
            request = Case(body, Operation.CREATE, user=user, labels=labels).request()
            first, second = (
                self.statuses(self.engine_of(rule), body, request).get(key_of(rule.info)) for rule in (one, other)
            )
            yield first, second

    def satisfied(self, rule: CompiledRule, number: int) -> Sequence[JSONObject]:
        """Return an object of the population, which fails a rule, changed as little as makes it pass.

        There is a result for each of some ways to change it, in other fields each time.
        """
        key = key_of(rule.info), number
        found = self._satisfied.get(key)
        if found is None:
            found = self._satisfied[key] = tuple(self._satisfy(rule, self.objects[number]))
        return found

    def _satisfy(self, rule: CompiledRule, body: JSONObject) -> Iterator[JSONObject]:
        explanation = self.engine_of(rule).explain(_request(body), VALIDATING)
        failed = next((each for each in explanation.review.results if each.status is Status.FAIL), None)
        changed: set[FieldPath] = set()
        for _ in range(_MOST_WAYS if failed is not None else 0):
            change = None if failed is None else explanation.change(failed, without=changed)
            if change is None or not isinstance(change.resource, dict):
                return
            changed.update(edit.path for edit in change.edits)
            admitted = self.population.admit(change.resource)
            if admitted is not None and self.status(rule, admitted) is not Status.FAIL:
                yield admitted

    @cached_property
    def some_numbers(self) -> Sequence[int]:
        """The numbers of the objects on which a single rule is tried: all of them, or some of very many."""
        return spread(range(len(self.objects)))

    @cached_property
    def kinds(self) -> Mapping[str, int]:
        """The objects of each kind, those of Pods first."""
        found: dict[str, int] = {}
        for number, body in enumerate(self.objects):
            kind = f"{body.get('apiVersion')}/{body.get('kind')}"
            found[kind] = found.get(kind, 0) | 1 << number
        return dict(sorted(found.items(), key=lambda each: (each[0] != "v1/Pod", each[0])))

    # --------------------------------------------------------------------------------------------------------- mutation

    def mutated(self, engine: Engine, body: JSONObject) -> JSONObject:
        """Return the object as mutating rules leave it; the object itself when they change nothing."""
        after = engine.review(_request(body), MUTATING).resource
        return after if isinstance(after, dict) and not equal(after, body) else body

    @cached_property
    def changed(self) -> Mapping[RuleKey, tuple[int, ...]]:
        """The numbers of some objects that each mutating rule, alone, changes."""
        found: dict[RuleKey, tuple[int, ...]] = {}
        for rule in self.rules(Stage.MUTATE):
            engine, of_rule = self.engine_of(rule), []
            for number in self.some_numbers:
                body = self.objects[number]
                if self.mutated(engine, body) is not body:
                    of_rule.append(number)
                    if len(of_rule) == _MOST_CHANGED:
                        break
            found[key_of(rule.info)] = tuple(of_rule)
        return found

    # ---------------------------------------------------------------------------------------------------------- objects

    def some(self, numbers_of: int, most: int = 12) -> list[JSONObject]:
        """Return the first objects of a set."""
        return [self.objects[number] for number, _ in zip(numbers(numbers_of), range(most), strict=False)]

    def search(self, starts: int, donors: int, shows: Callable[[JSONObject], bool]) -> tuple[JSONObject | None, int]:
        """Search between objects of two sets for a witness; returns it, and the number of tried objects."""
        tried = 0
        for tried, body in enumerate(self.population.variations(self.some(starts), self.some(donors)), 1):
            if shows(body):
                return body, tried
        return None, tried

    def smallest(self, body: JSONObject, shows: Callable[[JSONObject], bool]) -> JSONObject:
        """Return the smallest part of an object that is still a witness."""
        return smallest(self.population.admit, body, shows) if self.population.admit(body) is not None else body

    def witness(self, text: str, rules: Sequence[CompiledRule], body: JSONObject) -> Witness:
        """Return an object with the verdicts of validating rules on it."""
        results = ((title_of(rule.info), self.status(rule, body)) for rule in rules)
        return Witness(text, body, tuple((title, str(status)) for title, status in results if status is not None))


_SEVERITY: Final = {Status.SKIP: 0, Status.PASS: 1, Status.WARN: 2, Status.FAIL: 3, Status.ERROR: 4}


def _request(body: JSONObject) -> Request:
    return Request.from_manifest(body, user=USER)
