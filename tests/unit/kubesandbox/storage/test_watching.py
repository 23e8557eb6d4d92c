"""Watches: transitions, versions, bookmarks, ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kubesandbox.parsing.requests import ListOptions
from kubesandbox.storage.listing import selection
from kubesandbox.storage.store import Key, Store
from kubesandbox.storage.watching import watch_events
from kubesandbox.types.resources import builtin_table
from pyverno.kube.json import JSONObject

PODS = builtin_table("1.35").versions_of("pods")[0]
A, B = Key("pods", "one", "a"), Key("pods", "two", "b")


def pod(key: Key, **labels: str) -> JSONObject:
    """Return a pod."""
    return {"metadata": {"name": key.name, "namespace": key.namespace, "labels": labels}}


def watched(
    store: Store, act: Callable[[], None], namespace: str = "", *, bookmark_seconds: float = 60.0, **options: object
) -> list[tuple[str, str]]:
    """Return the kinds of events and the names of their objects that a watch sees while something is done."""
    chosen = ListOptions(**{"timeout": 1, **options})  # type: ignore[arg-type]  # by name

    async def work() -> list[tuple[str, str]]:
        seen: list[tuple[str, str]] = []
        events = watch_events(
            store, PODS, namespace, chosen, selection(PODS, chosen), bookmark_seconds=bookmark_seconds
        )
        seen.extend((event.kind, event.body["metadata"].get("name", "")) for event in await anext(events))
        act()
        try:
            async with asyncio.timeout(0.2):
                async for group in events:
                    seen.extend((event.kind, event.body.get("metadata", {}).get("name", "")) for event in group)
        except TimeoutError:
            pass
        return seen

    return asyncio.run(work())


def nothing() -> None:
    """Do nothing."""


def test_a_watch_without_a_version_begins_with_what_is_there() -> None:
    """It continues with later changes."""
    store = Store()
    store.put(A, pod(A))
    assert [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "a")] == watched(
        store, lambda: (store.put(B, pod(B)), store.remove(A), None)[2]
    )


def test_a_watch_from_a_version_gives_the_changes_since() -> None:
    """Earlier changes are not sent."""
    store = Store()
    store.put(A, pod(A))
    version = str(store.revision)
    store.put(B, pod(B))
    assert [("ADDED", "b")] == watched(store, nothing, resource_version=version)


def test_selectors_turn_changes_into_comings_and_goings() -> None:
    """An object that is no longer selected is DELETED, in the state in which it was."""
    store = Store()
    store.put(A, pod(A, app="x"))

    def act() -> None:
        store.put(A, pod(A, app="y"))
        store.put(A, pod(A, app="y", more="1"))
        store.put(A, pod(A, app="x"))
        store.put(A, pod(A, app="x", more="1"))

    expected = [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "a"), ("MODIFIED", "a")]
    assert expected == watched(store, act, label_selector="app=x")


def test_a_going_object_has_the_version_of_the_change() -> None:
    """The client can resume from that version."""
    store = Store()
    store.put(A, pod(A, app="x"))
    chosen = ListOptions(label_selector="app=x", timeout=1)

    async def work() -> JSONObject:
        events = watch_events(store, PODS, "", chosen, selection(PODS, chosen))
        await anext(events)
        store.put(A, pod(A, app="y"))
        (event,) = await anext(events)
        return event.body["metadata"]

    assert {"name": "a", "namespace": "one", "labels": {"app": "x"}, "resourceVersion": "3"} == asyncio.run(work())


def test_a_namespace_limits_what_is_seen() -> None:
    """Changes in other namespaces are not sent."""
    store = Store()
    assert [("ADDED", "b")] == watched(
        store, lambda: (store.put(A, pod(A)), store.put(B, pod(B)), None)[2], namespace="two"
    )


def test_initial_events_end_with_their_bookmark() -> None:
    """Informers of newer clients wait for it."""
    store = Store()
    store.put(A, pod(A))
    chosen = ListOptions(initial_events=True, match="NotOlderThan", bookmarks=True, timeout=1)

    async def work() -> list[JSONObject]:
        return [event.body for event in await anext(watch_events(store, PODS, "", chosen, selection(PODS, chosen)))]

    _, bookmark = asyncio.run(work())
    assert {"resourceVersion": "2", "annotations": {"k8s.io/initial-events-end": "true"}} == bookmark["metadata"]


def test_no_initial_events_when_they_are_not_wanted() -> None:
    """The watch sends only later changes."""
    store = Store()
    store.put(A, pod(A))
    assert [] == watched(store, nothing, initial_events=False, match="NotOlderThan")


def test_bookmarks_come_when_nothing_happens() -> None:
    """Only for watches that requested them, with the newest version."""
    store = Store()
    assert [] == watched(Store(), nothing, bookmark_seconds=0.01)
    seen = watched(store, lambda: None, bookmark_seconds=0.05, bookmarks=True)
    assert len(seen) >= 2
    assert {("BOOKMARK", "")} == {*seen}


def test_a_watch_ends_with_a_bookmark() -> None:
    """It comes shortly before the end, so that the next watch begins where this one was."""
    assert [("BOOKMARK", "")] == watched(Store(), nothing, bookmarks=True, timeout=2.05)


def test_a_version_that_is_gone_is_an_error_event() -> None:
    """The event holds a Status 410 Expired, and the watch ends."""
    store = Store(kept_changes=1)
    for _ in range(3):
        store.put(A, pod(A))
    chosen = ListOptions(resource_version="1")

    async def work() -> list[list[JSONObject]]:
        return [
            [event.body for event in group]
            async for group in watch_events(store, PODS, "", chosen, selection(PODS, chosen))
        ]

    assert [["too old resource version: 1 (3)"]] == [
        [body["message"] for body in group] for group in asyncio.run(work())
    ]


def test_the_time_of_a_watch_ends_it() -> None:
    """The watch ends without an error event."""
    chosen = ListOptions(timeout=0)

    async def work() -> int:
        return len([group async for group in watch_events(Store(), PODS, "", chosen, selection(PODS, chosen))])

    assert 1 == asyncio.run(work())
