"""The cache follows its server through every failure of a watch, and reports missed changes."""

from __future__ import annotations

import asyncio
import itertools
import tracemalloc
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
from aiohttp import web

from pyverno.cluster.informer import Informer, slim
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from tests.support.apiserver import Script, serving, status, watch

MAPS = GVR("", "v1", "configmaps")
LIST, WATCH = "GET /api/v1/configmaps", "WATCH /api/v1/configmaps"


def _map(name: str, version: str, data: str = "") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "team", "resourceVersion": version, "managedFields": [{}]}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"key": data}}


def _list(version: str, *items: dict[str, Any]) -> dict[str, Any]:
    bare = [{key: value for key, value in item.items() if key not in ("apiVersion", "kind")} for item in items]
    return {"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": version}, "items": bare}


def _event(kind: str, body: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "object": body}


class _Notifications(list[str]):
    """The notifications of the informer, as `EVENT name data`."""

    def __call__(self, notice: str, body: JSONObject) -> None:
        self.append(f"{notice} {body['metadata']['name']} {body['data']['key']}")


Scene = Callable[[Script, Informer, _Notifications], Awaitable[None]]


def play(script_of: Callable[[Script], None], scene: Scene, **settings: Any) -> None:
    """Run an informer against a script, and the scene beside it."""

    async def run() -> None:
        async with serving() as (script, client):
            script_of(script)
            informer, told = Informer(client, MAPS, **settings), _Notifications()
            informer.listen(told)
            running = asyncio.create_task(informer.run())
            try:
                async with asyncio.timeout(60):
                    await scene(script, informer, told)
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)

    asyncio.run(run())


async def _until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.01)


def test_listed_objects_and_later_changes_are_notified() -> None:
    """Objects are complete except for managedFields; `get`, `has` and `all` read from memory."""

    def arrange(script: Script) -> None:
        script.on(LIST, _list("5", _map("a", "3"), _map("b", "4")))
        changes = (_event("MODIFIED", _map("a", "6", "x")), _event("ADDED", _map("c", "7")))
        script.on(WATCH, watch(*changes, _event("DELETED", _map("b", "8"))))

    async def scene(script: Script, informer: Informer, told: _Notifications) -> None:
        await informer.synced.wait()
        await _until(lambda: len(told) == 5)
        assert ["ADDED a ", "ADDED b ", "MODIFIED a x", "ADDED c ", "DELETED b "] == told
        assert slim(_map("a", "6", "x")) == informer.get("a", "team")
        assert informer.get("b", "team") is None
        assert (True, False, False) == (informer.has("a", "team"), informer.has("b", "team"), informer.has("a"))
        assert ["a", "c"] == [body["metadata"]["name"] for body in informer.all()]
        assert [] == list(informer.all("elsewhere"))
        assert 0 == informer.stale_seconds
        asked = next(each for each in script.asked if each.query.get("watch"))
        assert ("5", "true", "a=b", "metadata.name=a") == (
            asked.query["resourceVersion"],
            asked.query["allowWatchBookmarks"],
            asked.query["labelSelector"],
            asked.query["fieldSelector"],
        )

    play(arrange, scene, selector="a=b", fields="metadata.name=a")


def test_an_object_appears_when_it_is_prepared_and_the_next_change_waits() -> None:
    """Readers and listeners see the state before until then; objects of a list and of a watch are prepared in order."""
    begun: list[str] = []
    may_end = asyncio.Semaphore(0)

    async def prepare(body: JSONObject) -> None:
        begun.append(body["metadata"]["name"])
        await may_end.acquire()
        if body["metadata"]["name"] == "bad":
            raise ZeroDivisionError  # a bug that its listener reports

    def arrange(script: Script) -> None:
        script.on(LIST, _list("5", _map("a", "3"), _map("bad", "4")))
        changes = (_event("MODIFIED", _map("a", "6", "x")), _event("DELETED", _map("bad", "7")))
        script.on(WATCH, watch(*changes, _event("BOOKMARK", _map("", "8")), ends=True))

    async def scene(script: Script, informer: Informer, told: _Notifications) -> None:
        for expected in (["a"], ["a", "bad"]):
            await _until(lambda expected=expected: begun == expected)  # type: ignore[misc]
            assert ([], 0) == (told, len(informer))
            may_end.release()
        await _until(lambda: begun == ["a", "bad", "a"])
        assert ["ADDED a ", "ADDED bad "] == told
        assert slim(_map("a", "3")) == informer.get("a", "team")
        assert informer.has("bad", "team")
        may_end.release()
        await _until(lambda: len(told) == 4)
        assert ["MODIFIED a x", "DELETED bad "] == told[2:]
        assert begun == ["a", "bad", "a"]

    play(arrange, scene, prepare=prepare)


def test_a_watch_resumes_at_a_bookmark() -> None:
    """A bookmark is no change; the next watch begins at its version without another list."""

    def arrange(script: Script) -> None:
        script.on(LIST, _list("5"))
        bookmark = _event("BOOKMARK", {"kind": "ConfigMap", "metadata": {"resourceVersion": "90"}})
        script.on(WATCH, watch(bookmark, ends=True), watch())

    async def scene(script: Script, informer: Informer, told: _Notifications) -> None:
        await _until(lambda: len(script.asked) == 3)
        assert [None, "5", "90"] == [each.query.get("resourceVersion") for each in script.asked]
        assert [] == told

    play(arrange, scene)


@pytest.mark.parametrize(
    "gone",
    [
        watch(_event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})),
        status(410, "Expired"),
        status(504, "Timeout"),
    ],
    ids=["in-the-watch", "at-its-start", "version-of-another-life"],
)
def test_after_a_relist_every_missed_change_is_notified(gone: Any) -> None:
    """New, changed and deleted objects are notified; unchanged ones are not."""

    def arrange(script: Script) -> None:
        before = _list("5", _map("same", "1"), _map("changed", "2"), _map("gone", "3"))
        script.on(LIST, before, _list("50", _map("same", "1"), _map("changed", "40", "x"), _map("new", "41")))
        script.on(WATCH, gone, watch())

    async def scene(script: Script, informer: Informer, told: _Notifications) -> None:
        await _until(lambda: len(told) == 6)
        assert ["MODIFIED changed x", "ADDED new ", "DELETED gone "] == told[3:]
        await _until(lambda: script.asked[-1].query.get("resourceVersion") == "50")
        assert 0 == informer.stale_seconds

    play(arrange, scene)


def test_a_list_of_a_lower_version_means_that_the_cluster_was_restored() -> None:
    """The owner is notified before the changes; a list with a higher version is no restore."""
    restored = _Notifications()

    def arrange(script: Script) -> None:
        lists = _list("90", _map("a", "80", "new")), _list("95", _map("a", "50", "old")), _list("120", _map("b", "110"))
        script.on(LIST, *lists)
        newer = watch(_event("MODIFIED", _map("a", "100", "newer")), ends=True)
        script.on(WATCH, newer, status(410, "Expired"), status(410, "Expired"), watch())

    async def scene(script: Script, informer: Informer, told: _Notifications) -> None:
        await _until(lambda: "DELETED a old" in told)
        assert ["ADDED a new", "MODIFIED a newer", "MODIFIED a old", "ADDED b ", "DELETED a old"] == told
        assert ["restored"] == restored

    play(arrange, scene, on_restore=lambda: restored.append("restored"))


def test_a_line_that_is_cut_off_is_no_change() -> None:
    """The watch resumes after the last complete line."""

    def arrange(script: Script) -> None:
        script.on(LIST, _list("5", _map("a", "3")))
        script.on(
            WATCH, watch(_event("ADDED", _map("b", "6")), b'{"type": "DELETED", "object": {"na', ends=True), watch()
        )

    async def scene(script: Script, informer: Informer, told: _Notifications) -> None:
        await _until(lambda: len(script.asked) == 3)
        assert ["ADDED a ", "ADDED b "] == told
        assert "6" == script.asked[2].query["resourceVersion"]

    play(arrange, scene)


def test_a_cache_is_stale_while_it_has_no_watch_and_recovers_without_an_event() -> None:
    """It is stale from the end of one watch until the next is open, even without events.

    Register: CVE-2021-43979.
    """

    async def refuse(request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    def arrange(script: Script) -> None:
        script.on(LIST, _list("5", _map("a", "3")))
        script.on(WATCH, refuse, refuse, watch())

    async def scene(script: Script, informer: Informer, told: _Notifications) -> None:
        assert informer.stale_seconds > 0
        await informer.synced.wait()
        await _until(lambda: informer.stale_seconds > 0)
        assert informer.get("a", "team") is not None
        await _until(lambda: len(script.asked) == 4 and informer.stale_seconds == 0)
        assert ["ADDED a "] == told

    play(arrange, scene)


@pytest.mark.parametrize("ends", [False, True], ids=["open", "closed"])
def test_a_silent_watch_leads_to_another_list(ends: bool) -> None:
    """Without event and bookmark, a server or a proxy may have withheld changes."""

    def arrange(script: Script) -> None:
        script.on(LIST, _list("5", _map("a", "3")), _list("9"))
        script.on(WATCH, watch(ends=ends), watch())

    async def scene(script: Script, informer: Informer, told: _Notifications) -> None:
        await _until(lambda: "DELETED a " in told)
        assert [None, "5", None] == [each.query.get("resourceVersion") for each in script.asked[:3]]

    play(arrange, scene, bound=0.2)


REFUSALS: dict[str, Any] = {
    "refused": status(403, "Forbidden"),
    "gone": status(404, "NotFound"),
    "away": status(503, "ServiceUnavailable"),
    "expired": status(410, "Expired"),
}


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
def test_what_is_older_than_its_bound_is_stale_until_the_cluster_is_followed_again(refusal: Any) -> None:
    """Any refusal of list and watch has this effect; the problem has the reason, and `wake` skips the backoff."""

    def arrange(script: Script) -> None:
        script.on(LIST, _list("5", _map("a", "3")), refusal)
        script.on(WATCH, watch(_event("ERROR", {"code": 410, "message": "too old"})), refusal)

    async def scene(script: Script, informer: Informer, told: _Notifications) -> None:
        await informer.synced.wait()
        assert "" == informer.problem()
        await _until(lambda: informer.is_stale)
        reason = f"configmaps have not been refreshed for more than 0.3 seconds: {informer.trouble}"
        assert informer.trouble
        assert reason == informer.problem()
        assert informer.get("a", "team") is not None
        script.on(LIST, _list("9"))
        script.on(WATCH, watch(_event("BOOKMARK", {"metadata": {"resourceVersion": "9"}})))
        informer.wake()
        await _until(lambda: not informer.problem())
        assert "DELETED a " == told[-1]

    play(arrange, scene, bound=0.3)


def test_lists_alone_keep_a_cache_fresh_where_every_watch_is_refused() -> None:
    """During a storm of 410 each list is current, so no change is missed."""

    def arrange(script: Script) -> None:
        script.on(LIST, _list("5", _map("a", "3")), _list("6", _map("b", "6")), _list("7"))
        script.on(WATCH, status(410, "Expired"))

    async def scene(script: Script, informer: Informer, told: _Notifications) -> None:
        await _until(lambda: len(told) == 4)
        assert ["ADDED a ", "ADDED b ", "DELETED a ", "DELETED b "] == told
        assert not informer.is_stale

    play(arrange, scene)


def test_a_silent_server_makes_the_cache_stale() -> None:
    """The connection stays open, so only the time shows that the server is silent."""

    async def silent(request: web.BaseRequest) -> web.StreamResponse:
        await asyncio.sleep(30)
        return web.Response()

    def arrange(script: Script) -> None:
        script.on(LIST, _list("5", _map("a", "3")), silent)
        script.on(WATCH, watch(), silent)

    async def scene(script: Script, informer: Informer, told: _Notifications) -> None:
        await informer.synced.wait()
        await _until(lambda: informer.is_stale)
        assert informer.stale_seconds >= 0.4

    play(arrange, scene, bound=0.4)


@pytest.mark.parametrize("trickle", [b"\n", b" ", b"\r\n", b"{", b'{"type"'], ids=repr)
def test_bytes_that_are_no_events_keep_no_cache_fresh(trickle: bytes) -> None:
    """I14: a proxy that keeps the connection open with a few bytes has seen nothing of the cluster."""

    async def keep_open(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        with suppress(ConnectionError):
            while True:
                await response.write(trickle)
                await asyncio.sleep(0.05)
        return response

    def arrange(script: Script) -> None:
        script.on(LIST, _list("5", _map("a", "3")), status(503, "ServiceUnavailable"))
        script.on(WATCH, keep_open)

    async def scene(script: Script, informer: Informer, told: _Notifications) -> None:
        await informer.synced.wait()
        await _until(lambda: informer.is_stale)
        assert "have not been refreshed" in informer.problem()

    play(arrange, scene, bound=0.6)


def test_an_api_server_that_is_not_there_is_tried_until_it_is() -> None:
    """The cache is not synced before its first list."""

    def arrange(script: Script) -> None:
        script.on(LIST, status(500, "InternalError"), status(403, "Forbidden"), _list("5", _map("a", "3")))
        script.on(WATCH, watch())

    async def scene(script: Script, informer: Informer, told: _Notifications) -> None:
        await _until(lambda: script.count(LIST) == 2)
        assert not informer.synced.is_set()
        await informer.synced.wait()
        assert ["ADDED a "] == told

    play(arrange, scene)


def test_a_listener_that_breaks_keeps_the_change_from_nobody_else() -> None:
    """One object that a listener cannot take ends neither the cache nor its process; `problem` names it until then."""

    def script_of(script: Script) -> None:
        script.on(LIST, _list("3", _map("good", "1"), _map("odd", "2")))
        script.on(WATCH, watch(_event("MODIFIED", _map("good", "4", "x"))), watch())

    async def scene(_: Script, informer: Informer, told: _Notifications) -> None:
        broken: list[str] = []

        def breaks(_notice: str, body: JSONObject) -> None:
            if body["metadata"]["name"] == "odd" and body["data"]["key"] == "":
                broken.append("odd")
                raise RuntimeError("a bug")

        informer.listen(breaks)
        informer.listen(told)
        await _until(lambda: "MODIFIED good x" in told)
        assert ["ADDED good ", "ADDED good ", "ADDED odd ", "ADDED odd "] == sorted(told[:4])
        assert ["odd"] == broken
        assert "configmaps include 1 that ran into a bug; see the log" == informer.problem()

    play(script_of, scene)


def test_a_listener_that_broke_gets_its_change_again() -> None:
    """A lack of memory passes: nothing is lost, and the others are not told twice."""

    def script_of(script: Script) -> None:
        script.on(LIST, _list("3", _map("odd", "2")))
        script.on(WATCH, watch())

    async def scene(_: Script, informer: Informer, told: _Notifications) -> None:
        tries: list[str] = []

        def breaks(notice: str, _body: JSONObject) -> None:
            tries.append(notice)
            if len(tries) < 3:
                raise MemoryError

        informer.listen(breaks)
        await _until(lambda: bool(tries) and not informer.problem())
        assert (["ADDED"] * 3, ["ADDED odd "]) == (tries, told)

    play(script_of, scene)


def test_an_object_that_changes_is_no_problem_any_more() -> None:
    """The listener gets the next change, and takes it."""

    def script_of(script: Script) -> None:
        script.on(LIST, _list("3", _map("odd", "2")))
        script.on(WATCH, watch(_event("MODIFIED", _map("odd", "4", "x"))), watch())

    async def scene(_: Script, informer: Informer, told: _Notifications) -> None:
        def breaks(_notice: str, body: JSONObject) -> None:
            if not body["data"]["key"]:
                raise KeyError(7, None)

        informer.listen(breaks)
        await _until(lambda: "MODIFIED odd x" in told)
        assert "" == informer.problem()

    play(script_of, scene)


@pytest.mark.parametrize(
    "answer",
    [
        [],
        [7],
        "text",
        {"items": "text"},
        {"items": [None]},
        {"items": [[]]},
        {"items": [{"metadata": "text"}]},
        {"items": [], "metadata": []},
        {"items": [], "metadata": {"resourceVersion": "9" * 5000}},
    ],
    ids=lambda answer: str(answer)[:40],
)
def test_a_list_that_is_none_is_read_again(answer: object) -> None:
    """An aggregated API that answers anything ends neither the cache nor its process."""

    def script_of(script: Script) -> None:
        script.on(LIST, web.json_response(answer), _list("3", _map("good", "1")))
        script.on(WATCH, watch())

    async def scene(_: Script, informer: Informer, told: _Notifications) -> None:
        await _until(lambda: "ADDED good " in told)
        assert informer.synced.is_set()

    play(script_of, scene)


@pytest.mark.parametrize(
    "event",
    [[], 7, None, {}, {"type": 7}, {"type": "NEW", "object": {}}, {"type": "ADDED", "object": "text"},
     {"type": "ADDED", "object": {"metadata": 7}}, {"type": "ERROR", "object": 7}, {"type": "BOOKMARK", "object": []}],
    ids=str,
)  # fmt: skip
def test_an_event_that_is_none_leads_to_another_list(event: Any) -> None:
    """The changes after it are not lost."""

    def script_of(script: Script) -> None:
        script.on(LIST, _list("3"), _list("5", _map("good", "4")))
        script.on(WATCH, watch(event), watch())

    async def scene(_: Script, informer: Informer, told: _Notifications) -> None:
        await _until(lambda: "ADDED good " in told)
        assert 1 == len(informer)

    play(script_of, scene)


def test_readers_never_see_half_of_a_list() -> None:
    """Worker threads read it, so listeners run after the new list has replaced the old one as a whole."""
    seen: list[int] = []

    async def run() -> None:
        async with serving() as (script, client):
            script.on(LIST, _list("5", _map("a", "1"), _map("b", "2"), _map("c", "3")))
            script.on(WATCH, watch())
            informer = Informer(client, MAPS)
            informer.listen(lambda _notice, _body: seen.append(len(informer)))
            running = asyncio.create_task(informer.run())
            await asyncio.wait_for(informer.synced.wait(), 60)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(run())
    assert [3, 3, 3] == seen


def test_an_object_in_memory_takes_little_more_than_its_bytes() -> None:
    """Caches hold tens of thousands of objects."""
    items = [_map(f"n{number}", "1") for number in range(2000)]

    async def held() -> int:
        async with serving() as (script, client):
            script.on(LIST, _list("1", *items))
            informer = Informer(client, MAPS)
            tracemalloc.start()
            running = asyncio.create_task(informer.run())
            await informer.synced.wait()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            found = tracemalloc.take_snapshot().statistics("filename")
            tracemalloc.stop()
            return sum(each.size for each in found if each.traceback[0].filename.endswith("informer.py"))

    assert asyncio.run(held()) / len(items) < 1000


def test_a_long_list_does_not_keep_the_event_loop_from_other_tasks() -> None:
    """A lease is renewed by the same loop: other tasks have their turns between the objects of a list."""
    items = [_map(f"m-{number}", str(number + 1)) for number in range(2000)]
    known: list[int] = []

    async def scene(_script: Script, informer: Informer, told: _Notifications) -> None:
        while not informer.synced.is_set():
            known.append(len(told))
            await asyncio.sleep(0)

    play(lambda script: script.on(LIST, _list("3000", *items)), scene)
    steps = sorted({each for each in known if each})
    assert len(steps) > 3
    assert max(later - earlier for earlier, later in itertools.pairwise(steps)) <= 500
