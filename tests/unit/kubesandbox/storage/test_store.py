"""The store: versions, order, the past, and readers of changes."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Sequence

import pytest

from kubesandbox.storage.store import Change, ChangeKind, Key, Store, TooOldError
from pyverno.kube.json import dump

A = Key("pods", "default", "a")
B = Key("pods", "default", "b")
C = Key("pods", "other", "a")


def body(name: str, **fields: object) -> dict[str, object]:
    """Return a small object."""
    return {"metadata": {"name": name}, **fields}


def names(store: Store, revision: int) -> list[tuple[str, str]]:
    """Return where the pods stood at a version."""
    return [(state.key.namespace, state.key.name) for state in store.all_at("pods", revision)]


def told(changes: Sequence[Change]) -> list[tuple[str, str, int]]:
    """Return changes in short form."""
    return [(change.kind.value, change.state.key.name, change.revision) for change in changes]


def test_every_write_has_the_next_version() -> None:
    """One counter for all resources; the object shows it and the caller's own object stays as it was."""
    store = Store()
    given = body("a")
    first = store.put(A, given)
    second = store.put(Key("services", "default", "s"), body("s"))
    assert (2, 3, 3) == (first.revision, second.revision, store.revision)
    assert "2" == first.body["metadata"]["resourceVersion"]
    assert {"metadata": {"name": "a"}} == given


def test_lists_stand_in_order_of_namespace_and_name() -> None:
    """The order of creation does not matter."""
    store = Store()
    for key in (C, B, A):
        store.put(key, body(key.name))
    assert [A, B, C] == [state.key for state in store.all("pods")]
    assert [C] == [state.key for state in store.all("pods", "other")]
    assert [] == store.all("services")


def test_the_past_can_be_listed() -> None:
    """A list at an older version undoes later changes, deletions included."""
    store = Store()
    store.put(A, body("a"))
    store.put(B, body("b"))
    store.remove(A)
    store.put(C, body("a"))
    assert [[("default", "a")], [("default", "a"), ("default", "b")], [("default", "b")]] == [
        names(store, revision) for revision in (2, 3, 4)
    ]


def test_a_deleted_object_is_last_seen_at_the_version_of_its_deletion() -> None:
    """Watches continue from that version."""
    store = Store()
    store.put(A, body("a"))
    gone = store.remove(A, body("a", status="done"))
    assert ("3", "done") == (gone.body["metadata"]["resourceVersion"], gone.body["status"])
    assert None is store.get(A)
    with pytest.raises(KeyError):
        store.remove(A)


def test_changes_can_be_read_from_any_kept_version() -> None:
    """A resource without earlier writes has lost none of its history."""
    store = Store()
    store.put(Key("services", "default", "s"), body("s"))
    begin = store.revision
    store.put(A, body("a"))
    store.put(A, body("a", x=1))
    store.remove(A)
    assert [("ADDED", "a", 3), ("MODIFIED", "a", 4), ("DELETED", "a", 5)] == told(store.changes_since("pods", begin))
    assert [("DELETED", "a", 5)] == told(store.changes_since("pods", 4))


def test_what_is_no_longer_kept_is_an_error() -> None:
    """The error names the requested version and the oldest one that is kept."""
    store = Store(kept_changes=2)
    for _ in range(4):
        store.put(A, body("a"))
    assert [("MODIFIED", "a", 4), ("MODIFIED", "a", 5)] == told(store.changes_since("pods", 3))
    with pytest.raises(TooOldError, match=r"^too old resource version: 2 \(3\)$"):
        store.changes_since("pods", 2)


def test_a_watcher_waits_and_then_sees_everything_in_order() -> None:
    """Changes between two reads arrive together."""

    async def watch() -> list[tuple[str, str, int]]:
        store = Store()
        watcher = store.watcher("pods", store.revision)
        reading = asyncio.ensure_future(watcher.next())
        await asyncio.sleep(0)
        assert not reading.done()
        store.put(Key("services", "default", "s"), body("s"))
        store.put(A, body("a"))
        store.put(B, body("b"))
        first = told(await reading)
        store.remove(A)
        return first + told(await watcher.next())

    assert [("ADDED", "a", 3), ("ADDED", "b", 4), ("DELETED", "a", 5)] == asyncio.run(watch())


def test_a_watcher_that_fell_behind_gets_an_error() -> None:
    """It holds nothing up: the writer never waited."""

    async def watch() -> None:
        store = Store(kept_changes=2)
        watcher = store.watcher("pods", store.revision)
        for _ in range(5):
            store.put(A, body("a"))
        await watcher.next()

    with pytest.raises(TooOldError):
        asyncio.run(watch())


def test_a_write_is_recorded_before_it_is_seen() -> None:
    """A journal that fails leaves the store as it was."""

    class Broken:
        def record(self, change: Change) -> None:
            assert ChangeKind.ADDED is change.kind
            raise OSError("disk full")

    store = Store(journal=Broken())
    with pytest.raises(OSError, match="disk full"):
        store.put(A, body("a"))
    assert (None, 1) == (store.get(A), store.revision)


def big(number: int) -> dict[str, object]:
    """Return an object of the size of a ConfigMap, as it comes from a request."""
    managed = {"manager": "test", "operation": "Update", "fieldsV1": {"f:data": {".": {}, "f:a": {}, "f:b": {}}}}
    data = {f"key-{each}": f"value {number} of {each}" for each in range(8)}
    return {"metadata": {"name": f"a{number}", "uid": f"{number:036}", "managedFields": [managed]}, "data": data}


def test_objects_take_little_more_than_their_json_and_are_freed() -> None:
    """Bodies are kept of the latest only, and the history of what was deleted is bounded by bytes."""
    many = 1_500
    keys = [Key("configmaps", "default", f"a{number}") for number in range(many)]
    store = Store(kept_bytes=2**16, latest_bodies=100)
    gc.collect()
    tracemalloc.start()
    try:
        for number, key in enumerate(keys):
            store.put(key, big(number))
        held = tracemalloc.get_traced_memory()[0] / many
        for key in keys:
            store.remove(key)
        left = tracemalloc.get_traced_memory()[0] / many
    finally:
        tracemalloc.stop()
    assert (True, True) == (held < 1024, left < held / 2), (held, left)


def test_bodies_are_bounded_by_bytes() -> None:
    """Large objects leave fewer bodies than small ones, and those that are read again count as well."""
    store = Store(latest_bytes=4_000)
    states = [store.put(Key("pods", "default", str(number)), body("a", data="x" * 900)) for number in range(10)]
    assert 4 >= sum(each.has_body for each in states)
    assert [state.body for state in states]
    assert 4 >= sum(each.has_body for each in states)


def test_a_state_that_the_history_forgets_loses_its_body() -> None:
    """That of a deleted object, and one that was replaced; the latest bodies hold no other state from being freed."""
    store = Store(kept_changes=1)
    first = store.put(A, body("a"))
    second = store.put(A, body("a", data="b"))
    last = store.remove(A)
    assert [False, True, True] == [each.has_body for each in (first, second, last)]
    kept = store.put(B, body("b"))
    assert [False, False, False, True] == [each.has_body for each in (first, second, last, kept)]


def test_all_bodies_can_be_dropped_and_are_read_again() -> None:
    """After a mass deletion the values of deleted objects would be kept as long as their history."""
    store = Store()
    states = [store.put(A, body("a")), store.put(B, body("b"))]
    store.drop_bodies()
    assert [False, False] == [each.has_body for each in states]
    assert ["a", "b"] == [each.body["metadata"]["name"] for each in states]


def test_the_size_of_each_deleted_object_is_passed_on() -> None:
    """That of its last state."""
    sizes: list[int] = []
    store = Store(on_deleted=sizes.append)
    store.put(A, body("a"))
    assert [] == sizes
    assert sizes == [len(store.remove(A).json)]


def test_an_object_whose_body_was_dropped_is_read_again() -> None:
    """It is the same as it was written, with its version."""
    store = Store()
    first = store.put(A, {"metadata": {"name": "a"}, "data": {"a": [1, 2.5, None, "ä"]}})
    written = first.body
    first.drop_body()
    assert (written, first.json) == (first.body, dump(written))
    assert first.body is first.body


def test_the_history_is_bounded_by_bytes() -> None:
    """The newest change always stays; a reader from before what is kept is too late."""
    store = Store(kept_bytes=300)
    for number in range(3):
        store.put(A, body("a", data=str(number) * 100))
    assert [4] == [each.revision for each in store.changes_since("pods", 3)]
    with pytest.raises(TooOldError):
        store.changes_since("pods", 2)
