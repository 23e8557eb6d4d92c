"""Writing the results of mutate-existing rules: conflicts, refusals, and writes that are skipped."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from pyverno.controllers.applier import Applied, Cause, Change
from pyverno.controllers.background.mutating.changes import Changes
from pyverno.controllers.runtime.events import Event
from pyverno.controllers.writeguard import QuarantinedError
from pyverno.engine.effects import Effect, PatchEffect
from pyverno.engine.engine import Review
from pyverno.engine.request import Request
from pyverno.engine.result import FailureAction, ResourceRef, RuleResult, RuleType, Status, Verdict
from pyverno.engine.rule import Family, PolicyInfo, RuleInfo
from pyverno.errors import HostError
from pyverno.kube.status import StatusError

POLICY = PolicyInfo("ClusterPolicy", "kyverno.io/v1", "restart", Family.RULES)
RULE = RuleInfo(POLICY, "change", RuleType.MUTATION)
TRIGGER = ResourceRef("v1", "ConfigMap", "shop", "trigger")


def target(name: str) -> ResourceRef:
    """Return a target."""
    return ResourceRef("v1", "ConfigMap", "shop", name)


def review(*verdicts: Verdict) -> Review:
    """Return a review with these verdicts."""
    results = tuple(RuleResult.of(RULE, FailureAction.AUDIT, each) for each in verdicts)
    effects = tuple(effect for each in verdicts for effect in each.effects)
    return Review(Request.from_manifest({}), {}, results, effects)


def wants(name: str, value: str = "new") -> Verdict:
    """Return a verdict that changes a target."""
    effect = PatchEffect(target(name), {"value": "old"}, {"value": value})
    return Verdict(Status.PASS, "", None, {"value": value}, (effect,), target(name))


class Cluster:
    """A cluster that accepts writes, and refuses the first ones to a target with the given errors."""

    def __init__(self, **refusals: list[Exception]) -> None:
        self.written: list[tuple[str, Any]] = []
        self.events: list[Event] = []
        self._refusals = refusals

    async def apply(self, effect: Effect, cause: Cause) -> Applied:
        """Accept or refuse a write."""
        assert isinstance(effect, PatchEffect)
        waiting = self._refusals.get(effect.target.name)
        if waiting:
            raise waiting.pop(0)
        self.written.append((effect.target.name, effect.after["value"]))
        return Applied(effect, Change.UPDATED, effect.target)

    def changes(self, **more: Any) -> Changes:
        """Return Changes that write to this cluster."""
        return Changes(POLICY, self.apply, self.events.append, **more)


def perform(changes: Changes, *reviews: Review | None) -> int:
    """Perform with one of these reviews at each evaluation; return the number of evaluations."""
    left = list(reviews)

    async def evaluate(attempt: int) -> Review | None:
        assert len(reviews) - len(left) == attempt
        return left.pop(0)

    asyncio.run(changes.perform(evaluate, TRIGGER))
    return len(reviews) - len(left)


def conflict() -> StatusError:
    """Return the conflict of a write with an outdated version."""
    return StatusError(409, "Conflict", "the object has been modified")


def test_a_conflict_is_evaluated_again() -> None:
    """Targets that are written already are not written again, whatever the second evaluation yields."""
    cluster = Cluster(two=[conflict()])
    changes = cluster.changes()
    assert 2 == perform(changes, review(wants("one"), wants("two")), review(wants("one", "x"), wants("two", "y")))
    assert [("one", "new"), ("two", "y")] == cluster.written
    changes.finish()


def test_an_object_that_changes_all_the_time_is_a_failure() -> None:
    """The UpdateRequest is retried later."""
    changes = Cluster(two=[conflict() for _ in range(9)]).changes()
    assert 5 == perform(changes, *(review(wants("two")) for _ in range(9)))
    with pytest.raises(HostError, match="shop/ConfigMap/two changed 5 times while it was written"):
        changes.finish()


def test_a_deleted_object_needs_no_change() -> None:
    """The object was deleted after the rule was evaluated, or between two evaluations."""
    cluster = Cluster(one=[StatusError(404, "NotFound", "gone")], two=[conflict()])
    changes = cluster.changes()
    perform(changes, review(wants("one"), wants("two")), None)
    changes.finish()
    assert [] == cluster.written


def test_failures_are_one_error_and_an_event_each() -> None:
    """Errors that were reported before the write have their events already."""
    refusal = 'configmaps "one" is forbidden'
    for known, count in (("", 2), (f"shop/ConfigMap/one: {refusal}; shop/ConfigMap/trigger: no context", 0)):
        cluster = Cluster(one=[StatusError(403, "Forbidden", refusal)])
        changes = cluster.changes()
        perform(changes, review(wants("one"), wants("two"), Verdict(Status.ERROR, "no context")))
        with pytest.raises(HostError) as raised:
            changes.finish(known)
        assert f"shop/ConfigMap/one: {refusal}; shop/ConfigMap/trigger: no context" == raised.value.message
        assert [("two", "new")] == cluster.written
        reasons = Counter(event.reason for event in cluster.events)
        assert Counter({"PolicyApplied": 1, "PolicyError": count}) == reasons + Counter({"PolicyError": 0})


def test_a_retry_leaves_out_what_was_written() -> None:
    """`done` lasts from one attempt of an UpdateRequest to the next."""
    cluster = Cluster()
    done: set[Any] = set()
    for _ in range(2):
        perform(cluster.changes(done=done), review(wants("one")))
    assert [("one", "new")] == cluster.written


def test_the_last_effect_on_an_object_counts() -> None:
    """It includes the changes of the effects before it."""
    cluster = Cluster()
    perform(cluster.changes(), review(wants("one", "first"), wants("one", "both")))
    assert [("one", "both")] == cluster.written


def test_a_change_of_what_identifies_an_object_is_a_failure() -> None:
    """The change would write another object."""
    cluster = Cluster()
    changes = cluster.changes()
    renamed = PatchEffect(target("one"), {"metadata": {"name": "one"}}, {"metadata": {"name": "two"}, "value": "x"})
    perform(changes, review(Verdict(Status.PASS, "", None, {}, (renamed,), target("one"))))
    assert [] == cluster.written
    with pytest.raises(HostError, match="a rule cannot change the kind, name or namespace of an object"):
        changes.finish()


def test_objects_that_are_not_selected_are_left_alone() -> None:
    """Resource filters exclude them."""
    cluster = Cluster()
    selects: Callable[[PatchEffect], bool] = lambda effect: effect.target.name != "one"  # noqa: E731
    perform(cluster.changes(selects=selects), review(wants("one"), wants("two")))
    assert [("two", "new")] == cluster.written


def test_a_quarantine_is_distinguished_from_a_failure() -> None:
    """The request is retried when the quarantine ends, or as usual when another target failed as well."""
    for others, error in (((), QuarantinedError), ((Verdict(Status.ERROR, "broken"),), HostError)):
        changes = Cluster(one=[QuarantinedError("too often", 60.0, is_new=True)]).changes()
        perform(changes, review(wants("one"), *others))
        with pytest.raises(HostError) as raised:
            changes.finish()
        assert error is type(raised.value)
