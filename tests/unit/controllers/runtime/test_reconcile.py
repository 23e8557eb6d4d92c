"""The reconcile loop of all controllers: changes become keys, keys become reconciles, failures become retries."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator

import pytest

from pyverno.cluster.informer import Notice
from pyverno.controllers.runtime.reconcile import (
    Again,
    Controller,
    Failure,
    LoopSettings,
    ObjectKey,
    Watch,
)
from pyverno.controllers.runtime.workqueue import Backoff
from pyverno.errors import HostError
from pyverno.kube.json import JSONObject
from tests.support.controllers import CountedMetrics, FakeClock, MemoryObjects, rest, running

STEADY = Backoff(first=1, longest=8, jitter=0)


class Recorder:
    """A reconciler that records its keys; `outcome` yields its result for each key."""

    def __init__(self, outcome: Callable[[str], Again | None] = lambda key: None) -> None:
        self.seen: list[str] = []
        self._outcome = outcome

    async def reconcile(self, key: object) -> Again | None:
        """Record the key."""
        self.seen.append(str(key))
        return self._outcome(str(key))


def named(name: str, **metadata: object) -> JSONObject:
    """Return an object with this name."""
    return {"metadata": {"name": name, **metadata}}


def own_key(_notice: Notice, body: JSONObject) -> Iterator[ObjectKey]:
    """Yield the key of the changed object itself."""
    yield ObjectKey(body["metadata"].get("namespace") or "", body["metadata"]["name"])


def owner_key(_notice: Notice, body: JSONObject) -> Iterator[ObjectKey]:
    """Yield the keys of the owners of the changed object."""
    yield from (ObjectKey("", owner["name"]) for owner in body["metadata"].get("ownerReferences") or ())


def test_every_key_is_reconciled_at_the_start() -> None:
    """Keys that were added before the start are included."""

    async def run() -> None:
        clock, found = FakeClock(), Recorder()
        controller = Controller("test", found.reconcile, keys=lambda: ("a", "b"), clock=clock)
        controller.add("c")
        assert not controller.is_running
        async with running(controller, clock):
            assert ["a", "b"] == found.seen
            assert (True, True) == (controller.is_running, controller.is_idle)
        assert (False, False) == (controller.is_running, controller.is_idle)

    asyncio.run(run())


def test_changes_of_watched_objects_and_of_what_they_own_bring_their_keys() -> None:
    """A watched object has its own name as key, an owned object that of its owner."""

    async def run() -> None:
        clock, found, policies, copies = FakeClock(), Recorder(), MemoryObjects(), MemoryObjects()
        policies.put(named("first"))
        controller = Controller(
            "test",
            found.reconcile,
            watches=(
                Watch(lambda: policies, own_key),
                Watch(lambda: copies, owner_key),
            ),
            clock=clock,
        )
        owners = [{"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "name": "first"}]
        async with running(controller, clock) as harness:
            copies.put(named("copy", ownerReferences=owners))
            await harness.settle()
            policies.put(named("second", namespace="team"))
            await harness.settle()
            policies.delete("second", "team")
            await harness.settle()
        assert ["first", "first", "team/second", "team/second"] == found.seen

    asyncio.run(run())


def test_a_shared_watch_notifies_once_in_every_term() -> None:
    """Its owner runs the informer; a second term does not subscribe again."""

    async def run() -> None:
        clock, found, objects = FakeClock(), Recorder(), MemoryObjects()
        watch: Watch[ObjectKey] = Watch(lambda: objects, own_key, is_shared=True)
        controller = Controller("test", found.reconcile, watches=(watch,), clock=clock)
        for term in ("one", "two"):
            async with running(controller, clock) as harness:
                objects.put(named(term))
                await harness.settle()
        assert ["one", "two"] == found.seen

    asyncio.run(run())


def test_a_burst_of_changes_is_one_reconcile() -> None:
    """Keys settle before they are reconciled, and the controller is busy meanwhile."""

    async def run() -> None:
        clock, found = FakeClock(), Recorder()
        controller: Controller[str] = Controller(
            "test", found.reconcile, settings=LoopSettings(settle_seconds=0.5), clock=clock
        )
        async with running(controller, clock) as harness:
            for _ in range(5):
                controller.add("a")
                await harness.advance(0.05)
            assert ([], False) == (found.seen, controller.is_idle)
            await harness.advance(0.5)
            assert (["a"], True) == (found.seen, controller.is_idle)

    asyncio.run(run())


def test_what_fails_is_retried_for_ever_and_shown_until_it_succeeds() -> None:
    """Delays grow and a metric counts retries, while other keys continue."""

    async def run() -> None:
        clock, metrics, problems = FakeClock(), CountedMetrics(), ["away", "away", "away"]

        def outcome(key: str) -> None:
            if key == "bad" and problems:
                raise HostError(problems.pop())

        found = Recorder(outcome)
        controller = Controller(
            "test",
            found.reconcile,
            keys=lambda: ("bad", "good"),
            settings=LoopSettings(backoff=STEADY),
            metrics=metrics,
            clock=clock,
        )
        async with running(controller, clock) as harness:
            assert (["bad", "good"], {"bad": Failure(1, "away")}) == (found.seen, dict(controller.failing))
            assert not controller.is_idle
            await harness.advance(1 + 2)
            assert {"bad": Failure(3, "away")} == dict(controller.failing)
            await harness.advance(4)
            assert ({}, True) == (dict(controller.failing), controller.is_idle)
        assert (5, [("test", 1), ("test", 2), ("test", 3)]) == (metrics.reconciles["test"], metrics.requeues)

    asyncio.run(run())


def test_a_bug_in_one_key_stops_no_other(caplog: pytest.LogCaptureFixture) -> None:
    """The exception is logged with its traceback, and the key is retried."""

    async def run() -> None:
        clock, metrics = FakeClock(), CountedMetrics()

        def outcome(key: str) -> None:
            if key == "bad":
                raise ValueError(key)

        found = Recorder(outcome)
        controller = Controller("test", found.reconcile, keys=lambda: ("bad", "good"), metrics=metrics, clock=clock)
        async with running(controller, clock):
            assert ["bad", "good"] == found.seen
            assert ["bad"] == list(controller.failing)
        assert [("test", 1)] == metrics.requeues

    with caplog.at_level(logging.ERROR):
        asyncio.run(run())
    assert ["a reconcile broke"] == [record.message for record in caplog.records if record.exc_info]


def test_a_bug_in_the_list_of_keys_ends_no_controller() -> None:
    """The keys before it are reconciled, and the next resync lists again."""

    async def scene() -> None:
        clock, metrics, done = FakeClock(), CountedMetrics(), []
        lists = iter([("a", RuntimeError("a bug"), "b"), ("a", "b")])

        def keys() -> Iterator[str]:
            for each in next(lists):
                if isinstance(each, Exception):
                    raise each
                yield each

        async def reconcile(key: str) -> None:
            done.append(key)

        settings = LoopSettings(resync_seconds=60)
        controller = Controller("one", reconcile, keys=keys, settings=settings, metrics=metrics, clock=clock)
        async with running(controller, clock) as harness:
            assert ["a"] == done
            await harness.advance(61)
            assert ["a", "a", "b"] == done
        assert 1 == metrics.drops["one"]

    asyncio.run(scene())


def test_a_bug_in_the_preparation_is_tried_again() -> None:
    """It must not end the process."""

    async def scene() -> None:
        clock, done, tries = FakeClock(), [], iter([KeyError(7), MemoryError(), None])

        async def prepare() -> None:
            error = next(tries)
            if error is not None:
                raise error

        async def reconcile(key: str) -> None:
            done.append(key)

        controller = Controller("one", reconcile, keys=lambda: ("a",), prepare=prepare, clock=clock)
        async with running(controller, clock) as harness:
            assert [] == done
            await harness.advance(300)
            assert ["a"] == done

    asyncio.run(scene())


def test_a_key_is_given_up_after_its_retries_until_it_is_added_again() -> None:
    """With a limit the failure stays visible and the drop is counted."""

    async def run() -> None:
        clock, metrics = FakeClock(), CountedMetrics()

        def outcome(key: str) -> None:
            raise HostError("never")

        found = Recorder(outcome)
        settings = LoopSettings(max_retries=2, backoff=STEADY)
        controller = Controller(
            "test", found.reconcile, keys=lambda: ("a",), settings=settings, metrics=metrics, clock=clock
        )
        async with running(controller, clock) as harness:
            await harness.advance(1000)
            assert (3, 1, {"a": Failure(3, "never")}) == (
                len(found.seen),
                metrics.drops["test"],
                dict(controller.failing),
            )
            assert controller.is_idle
            controller.add("a")
            await harness.settle()
            assert 4 == len(found.seen)

    asyncio.run(run())


def test_a_reconcile_can_ask_for_the_next_one() -> None:
    """A scheduled reconcile leaves the controller idle; a pending one keeps it busy."""

    async def run() -> None:
        clock, answers = FakeClock(), [None, Again(3600), Again(5, is_pending=True)]
        found = Recorder(lambda key: answers.pop())
        controller = Controller("test", found.reconcile, keys=lambda: ("a",), clock=clock)
        async with running(controller, clock) as harness:
            assert (1, False) == (len(found.seen), controller.is_idle)
            await harness.advance(5)
            assert (2, True) == (len(found.seen), controller.is_idle)
            await harness.advance(3600)
            assert 3 == len(found.seen)

    asyncio.run(run())


def test_a_resync_brings_every_key_again() -> None:
    """The resync includes keys without a watch event."""

    async def run() -> None:
        clock, found, keys = FakeClock(), Recorder(), ["a"]
        settings = LoopSettings(resync_seconds=900)
        controller = Controller("test", found.reconcile, keys=lambda: keys, settings=settings, clock=clock)
        async with running(controller, clock) as harness:
            keys.append("b")
            await harness.advance(900)
        assert ["a", "a", "b"] == found.seen

    asyncio.run(run())


def test_several_workers_never_share_a_key() -> None:
    """Different keys are reconciled concurrently."""

    async def run() -> None:
        clock, in_work, most = FakeClock(), list[str](), 0
        gate = asyncio.Event()

        async def reconcile(key: str) -> None:
            nonlocal most
            assert key not in in_work
            in_work.append(key)
            most = max(most, len(in_work))
            await gate.wait()
            in_work.remove(key)

        settings = LoopSettings(workers=3)
        controller = Controller("test", reconcile, keys=lambda: "abcd", settings=settings, clock=clock)
        async with running(controller, clock) as harness:
            controller.add("a")
            await harness.settle()
            gate.set()
            await harness.settle()
        assert 3 == most

    asyncio.run(run())


def test_nothing_is_reconciled_before_the_controller_is_prepared() -> None:
    """A failing preparation is retried."""

    async def run() -> None:
        clock, found, problems = FakeClock(), Recorder(), ["not yet"]

        async def prepare() -> None:
            if problems:
                raise HostError(problems.pop())

        controller = Controller(
            "test",
            found.reconcile,
            keys=lambda: ("a",),
            prepare=prepare,
            settings=LoopSettings(backoff=STEADY),
            clock=clock,
        )
        async with running(controller, clock) as harness:
            assert ([], False) == (found.seen, controller.is_idle)
            await harness.advance(1)
            assert (["a"], True) == (found.seen, controller.is_idle)

    asyncio.run(run())


def test_a_key_without_room_is_counted_and_comes_with_the_resync() -> None:
    """The queue has a maximum depth."""

    async def run() -> None:
        clock, found, metrics = FakeClock(), Recorder(), CountedMetrics()
        settings = LoopSettings(max_depth=1, settle_seconds=1, resync_seconds=100)
        keys = ["a"]
        controller = Controller(
            "test", found.reconcile, keys=lambda: keys, settings=settings, metrics=metrics, clock=clock
        )
        async with running(controller, clock) as harness:
            controller.add("b")
            await harness.advance(50)
            assert (["a"], 1) == (found.seen, metrics.drops["test"])
            keys[:] = ["b"]
            await harness.advance(60)
        assert ["a", "b"] == found.seen

    asyncio.run(run())


def test_a_new_term_begins_without_the_failures_of_the_last() -> None:
    """Every key is reconciled again."""

    async def run() -> None:
        clock, problems = FakeClock(), ["away"]

        def outcome(key: str) -> None:
            if problems:
                raise HostError(problems.pop())

        found = Recorder(outcome)
        controller = Controller("test", found.reconcile, keys=lambda: ("a",), clock=clock)
        async with running(controller, clock):
            assert ["a"] == list(controller.failing)
        await rest()
        async with running(controller, clock):
            assert ([], True) == (list(controller.failing), controller.is_idle)

    asyncio.run(run())
