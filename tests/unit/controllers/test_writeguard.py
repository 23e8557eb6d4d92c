"""The write guard: loops end after ten writes, and other writes are not delayed."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import pytest

from pyverno.controllers.writeguard import GuardSettings, QuarantinedError, WriteGuard, WriteKey
from pyverno.engine.result import ResourceRef

POLICY = ResourceRef("kyverno.io/v1", "ClusterPolicy", "", "copy")


class Time:
    """A clock that tests advance."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def thing(name: str) -> ResourceRef:
    """Return a reference to a ConfigMap."""
    return ResourceRef("v1", "ConfigMap", "team", name)


def write(guard: WriteGuard, keys: Iterable[WriteKey]) -> tuple[int, QuarantinedError | None]:
    """Write until the guard refuses; return the number of permitted writes, and the refusal."""
    done = 0
    for key in keys:
        try:
            guard.enter(key)
        except QuarantinedError as error:
            return done, error
        guard.note_written(key)
        done += 1
    return done, None


def test_ten_writes_without_a_pause_are_the_last() -> None:
    """The first refusal is marked as new, later ones are not."""
    guard = WriteGuard(clock=Time())
    key = WriteKey(thing("a"), POLICY, "rule", thing("trigger"))
    done, error = write(guard, [key] * 100)
    assert error is not None
    assert (10, True, 1) == (done, error.is_new, guard.quarantined)
    with pytest.raises(QuarantinedError) as raised:
        guard.enter(key)
    assert not raised.value.is_new


def test_writes_with_pauses_go_on() -> None:
    """A source may be edited every few minutes without limit."""
    clock = Time()
    guard = WriteGuard(clock=clock)
    for _ in range(50):
        guard.enter(WriteKey(thing("a"), POLICY, "rule", thing("trigger")))
        clock.now += 121
    assert 0 == guard.quarantined


def test_one_object_that_many_triggers_change_is_no_loop() -> None:
    """A thousand namespaces may each update one list; a second round of the same triggers is a loop."""
    guard = WriteGuard(clock=Time())
    keys = [WriteKey(thing("list"), POLICY, "rule", ResourceRef("v1", "Namespace", "", f"n-{i}")) for i in range(1000)]
    assert (1000, None) == write(guard, keys)
    done, error = write(guard, keys)
    assert error is not None
    assert 5 == done


def test_writes_that_changed_nothing_do_not_count() -> None:
    """The caller takes them back, as it does with writes that the API server refused."""
    guard = WriteGuard(clock=Time())
    key = WriteKey(thing("a"), POLICY, "rule")
    for _ in range(100):
        guard.enter(key)
        guard.leave(key)
    assert 0 == guard.quarantined


def test_a_chain_of_objects_that_trigger_each_other_ends() -> None:
    """Each object has a new name, so none is written twice."""
    guard = WriteGuard(clock=Time())
    names = [thing(f"a-{i}") for i in range(100)]
    keys = [WriteKey(after, POLICY, "rule", before) for before, after in itertools.pairwise(names)]
    done, error = write(guard, keys)
    assert error is not None
    assert (10, True) == (done, error.is_new)
    # an object of a user starts another chain
    assert (1, None) == write(guard, [WriteKey(thing("b"), POLICY, "rule", thing("of-a-user"))])


def test_policies_that_write_each_others_triggers_share_a_chain() -> None:
    """The ten writes count for both policies together."""
    guard = WriteGuard(clock=Time())
    ping = WriteKey(thing("b"), POLICY, "ping", thing("a"))
    pong = WriteKey(thing("a"), POLICY, "pong", thing("b"))
    done, error = write(guard, [ping, pong] * 50)
    assert error is not None
    assert 10 == done


def test_rules_that_change_their_own_trigger_share_a_chain() -> None:
    """Each rule triggers the other by its change."""
    guard = WriteGuard(clock=Time())
    left = WriteKey(thing("a"), POLICY, "left", thing("a"))
    done, error = write(guard, [left, left._replace(rule="right")] * 50)
    assert error is not None
    assert 10 == done


def test_a_quarantine_ends_when_it_is_quiet_and_doubles_when_it_is_not() -> None:
    """It ends after a quiet period with a single trial write; refused attempts extend it."""
    clock = Time()
    guard = WriteGuard(GuardSettings(quiet_seconds=100), clock)
    key = WriteKey(thing("a"), POLICY, "rule")
    write(guard, [key] * 11)
    clock.now += 99
    assert 0 == write(guard, [key])[0]
    clock.now += 99
    assert 0 == write(guard, [key])[0]
    clock.now += 101
    done, error = write(guard, [key] * 5)
    assert error is not None
    assert (1, 200) == (done, error.seconds)
    clock.now += 401
    assert (10, None) == write(guard, [key] * 10)
    assert 0 == guard.quarantined


def test_a_guard_forgets_what_is_quiet() -> None:
    """Its memory does not grow with the number of objects ever written."""
    clock = Time()
    guard = WriteGuard(clock=clock)
    for number in range(5000):
        key = WriteKey(thing(f"a-{number}"), POLICY, "rule")
        guard.enter(key)
        guard.note_written(key)
        clock.now += 10
    assert len(guard._windows) < 2000
    assert len(guard._links) < 2000
