"""Random histories of the sandbox against a simple model: every watcher converges, versions only rise."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from kubesandbox.apiserver import ApiServer
from kubesandbox.objects.patching import Patch
from kubesandbox.parsing.requests import JSON_PATCH, MERGE_PATCH, DeleteOptions, ListOptions
from kubesandbox.storage.store import Store
from pyverno.kube.status import StatusError
from tests.property import inputs as st
from tests.property.inputs import law
from tests.unit.kubesandbox.serving import api_server, config_map, type_of, write

NAMES = ("a", "b", "c")
VALUES = ("1", "2", "3")
SELECTORS = ("", "v=1", "v!=1", "v in (2,3)")
MAPS = "configmaps"

Step = tuple[Any, ...]
STEPS = st.one_of(
    st.tuples(st.just("create"), st.sampled_from(NAMES), st.sampled_from(VALUES), st.booleans()),
    st.tuples(st.just("update"), st.sampled_from(NAMES), st.sampled_from(VALUES), st.booleans()),
    st.tuples(st.just("merge"), st.sampled_from(NAMES), st.sampled_from(VALUES)),
    st.tuples(st.just("json"), st.sampled_from(NAMES), st.sampled_from(VALUES)),
    st.tuples(st.just("delete"), st.sampled_from(NAMES)),
    st.tuples(st.just("release"), st.sampled_from(NAMES)),
    st.tuples(st.just("watch"), st.sampled_from(SELECTORS), st.booleans()),
    st.tuples(st.just("rest")),
)


@dataclass
class Known:
    """The model's state of one object."""

    value: str
    is_held: bool
    version: int
    is_leaving: bool = False


@dataclass
class Watcher:
    """The objects that one client derives from its watch events."""

    server: ApiServer
    selector: str
    version: str
    seen: dict[str, tuple[str, str]] = field(default_factory=dict)
    versions: list[int] = field(default_factory=list)

    async def run(self) -> None:
        """Follow the events until the time is up."""
        maps = type_of(self.server, MAPS)
        options = ListOptions(label_selector=self.selector, resource_version=self.version, timeout=60)
        if self.version:
            page = await self.server.list(maps, "default", ListOptions(label_selector=self.selector))
            options = ListOptions(label_selector=self.selector, resource_version=str(page.revision), timeout=60)
            for state in page.states:
                self._take("ADDED", state.body)
        async for group in self.server.watch(maps, "default", options):
            for event in group:
                self._take(event.kind, event.body)
                self.versions.append(int(event.body["metadata"]["resourceVersion"]))

    def _take(self, kind: str, body: dict[str, Any]) -> None:
        name = body["metadata"]["name"]
        if kind == "ADDED":
            assert name not in self.seen
        else:
            assert name in self.seen
        if kind == "DELETED":
            del self.seen[name]
        else:
            self.seen[name] = (body["data"]["v"], body["metadata"]["resourceVersion"])


class History:
    """Carries steps out on the server and on the model, and compares their answers."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self.model: dict[str, Known] = {}
        self.watchers: list[tuple[Watcher, asyncio.Task[None]]] = []
        self.newest = server.store.revision

    async def step(self, step: Step) -> None:
        """Carry out one step."""
        await getattr(self, step[0])(*step[1:])

    async def create(self, name: str, value: str, is_held: bool) -> None:
        body = config_map(name, {"v": value}, labels={"v": value}, **({"finalizers": ["a.b/c"]} if is_held else {}))
        made = await self._tried(self.server.create(write(self.server, MAPS), body), 409 if name in self.model else 0)
        if made:
            self.model[name] = Known(value, is_held, self._version(made))

    async def update(self, name: str, value: str, is_stale: bool) -> None:
        known = self.model.get(name)
        finalizers = {"finalizers": ["a.b/c"]} if known and known.is_held else {}
        version = str(known.version - 1 if is_stale else known.version) if known else ""
        body = config_map(name, {"v": value}, labels={"v": value}, resourceVersion=version, **finalizers)
        expected = 404 if known is None else 409 if is_stale else 0
        made = await self._tried(self.server.update(write(self.server, MAPS, "default", name), body), expected)
        self._changed(name, value, made)

    async def merge(self, name: str, value: str) -> None:
        patch = Patch(MERGE_PATCH, {"data": {"v": value}, "metadata": {"labels": {"v": value}}})
        await self._patched(name, value, patch)

    async def json(self, name: str, value: str) -> None:
        places = ("/data/v", "/metadata/labels/v")
        patch = Patch(JSON_PATCH, [{"op": "replace", "path": place, "value": value} for place in places])
        await self._patched(name, value, patch)

    async def delete(self, name: str) -> None:
        known = self.model.get(name)
        where = write(self.server, MAPS, "default", name)
        gone = await self._tried(self.server.delete(where, DeleteOptions()), 0 if known else 404)
        if known is None or gone is None:
            return
        if not known.is_held:
            del self.model[name]
        elif not known.is_leaving:
            known.is_leaving, known.version = True, self._version(gone)

    async def release(self, name: str) -> None:
        known = self.model.get(name)
        where = write(self.server, MAPS, "default", name)
        patch = Patch(MERGE_PATCH, {"metadata": {"finalizers": None}})
        made = await self._tried(self.server.patch(where, patch), 0 if known else 404)
        if known is None or made is None:
            return
        if known.is_leaving:
            del self.model[name]
        elif known.is_held:
            known.is_held, known.version = False, self._version(made)

    async def watch(self, selector: str, from_list: bool) -> None:
        watcher = Watcher(self.server, selector, "list" if from_list else "")
        self.watchers.append((watcher, asyncio.ensure_future(watcher.run())))
        await asyncio.sleep(0)

    async def rest(self) -> None:
        for _ in range(3):
            await asyncio.sleep(0)

    async def _patched(self, name: str, value: str, patch: Patch) -> None:
        where = write(self.server, MAPS, "default", name)
        made = await self._tried(self.server.patch(where, patch), 0 if name in self.model else 404)
        self._changed(name, value, made)

    def _changed(self, name: str, value: str, made: dict[str, Any] | None) -> None:
        if made is None:
            return
        known = self.model[name]
        version = int(made["metadata"]["resourceVersion"])
        assert (version == known.version) == (value == known.value)
        known.value, known.version = value, version
        self.newest = max(self.newest, version)

    async def _tried(self, work: Any, expected: int) -> dict[str, Any] | None:
        """Carry out a write; it must end with the code that the model expects (0: it succeeds)."""
        try:
            outcome = await work
        except StatusError as error:
            assert expected == error.status
            return None
        assert not expected
        body: dict[str, Any] = outcome.body
        return body

    def _version(self, body: dict[str, Any]) -> int:
        """Return the version of a write, which is newer than all before."""
        version = int(body["metadata"]["resourceVersion"])
        assert version > self.newest
        self.newest = version
        return version

    async def end(self) -> None:
        """Compare the server's final state and the state of all watchers with the model."""
        for _ in range(10):
            await asyncio.sleep(0)
        maps = type_of(self.server, MAPS)
        listed = {
            state.key.name: (state.body["data"]["v"], state.revision)
            for state in (await self.server.list(maps, "default", ListOptions())).states
        }
        assert {name: (known.value, known.version) for name, known in self.model.items()} == listed
        for watcher, task in self.watchers:
            assert not task.done() or task.exception() is None
            task.cancel()
            page = await self.server.list(maps, "default", ListOptions(label_selector=watcher.selector))
            expected = {state.key.name: (state.body["data"]["v"], str(state.revision)) for state in page.states}
            assert expected == watcher.seen
            # without a version a watch begins with what is there, in order of names
            assert not watcher.version or watcher.versions == sorted({*watcher.versions})
        await asyncio.gather(*(task for _, task in self.watchers), return_exceptions=True)


@law(st.lists(STEPS, max_size=25), few=60)
def test_every_watcher_converges_on_the_model(steps: list[Step]) -> None:
    """This holds for any history, with finalizers, stale writes, selectors and late watchers."""
    server = api_server(Store())

    async def work() -> None:
        history = History(server)
        for step in steps:
            await history.step(step)
        await history.end()

    asyncio.run(work())
