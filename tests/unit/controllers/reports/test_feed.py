"""A feed lists objects page by page, and records why a resource cannot be listed."""

from __future__ import annotations

import asyncio
from typing import Any

from pyverno.controllers.reports.feed import Feed
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from tests.support.apiserver import Script, serving, status, watch

WIDGETS = GVR("example.com", "v1", "widgets")
LIST, WATCH = "GET /apis/example.com/v1/widgets", "WATCH /apis/example.com/v1/widgets"
EMPTY: dict[str, Any] = {
    "apiVersion": "example.com/v1",
    "kind": "WidgetList",
    "metadata": {"resourceVersion": "1"},
    "items": [],
}


class Nothing:
    """A sink that drops everything."""

    def begin(self, gvr: GVR) -> None:
        """Do nothing."""

    def put(self, gvr: GVR, body: JSONObject) -> None:
        """Do nothing."""

    def remove(self, gvr: GVR, body: JSONObject) -> None:
        """Do nothing."""

    def end(self, gvr: GVR) -> None:
        """Do nothing."""


def test_an_object_that_the_sink_cannot_take_keeps_no_other_one_back() -> None:
    """It is handed on again later; the list is complete without it."""
    items = [{"metadata": {"name": name, "namespace": "team", "uid": name}} for name in ("a", "odd", "z")]
    taken: list[str] = []

    class Breaking(Nothing):
        """A sink that runs into a bug twice."""

        tries = 0

        def put(self, gvr: GVR, body: JSONObject) -> None:
            """Take an object."""
            name = body["metadata"]["name"]
            self.tries += name == "odd"
            if name == "odd" and self.tries < 3:
                raise RuntimeError("a bug")
            taken.append(name)

    async def run() -> None:
        async with serving() as (script, client):
            _arrange(script, ({**EMPTY, "items": items},))
            feed = Feed(client, WIDGETS, Breaking(), bound=4.0)
            running = asyncio.create_task(feed.run())
            async with asyncio.timeout(60):
                await feed.synced.wait()
                assert ["a", "z"] == taken[:2]
                while "odd" not in taken:
                    await asyncio.sleep(0.01)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(run())


def refusals(*answers: Any, bound: float) -> list[int | None]:
    """Return the refusals that a feed reports until one expires, with None for the end."""
    noted: list[int | None] = []

    async def run() -> None:
        over = asyncio.Event()

        def note(_gvr: GVR, error: StatusError | None) -> None:
            noted.append(None if error is None else error.status)
            if error is None:
                over.set()

        async with serving() as (script, client):
            _arrange(script, answers)
            feed = Feed(client, WIDGETS, Nothing(), bound=bound, on_refusal=note)
            running = asyncio.create_task(feed.run())
            async with asyncio.timeout(60):
                await (over.wait() if noted or bound < 1 else feed.synced.wait())
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(run())
    return noted


def _arrange(script: Script, answers: tuple[Any, ...]) -> None:
    script.on(LIST, *answers)
    script.on(WATCH, watch())


def test_a_list_that_fails_for_long_is_a_refusal() -> None:
    """For example, a failing conversion webhook: its objects must not look free of violations."""
    broken = status(500, "InternalError")
    assert [500, None] == refusals(broken, broken, EMPTY, bound=0.05)


def test_a_list_that_fails_for_a_moment_is_no_refusal() -> None:
    """The next list delivers the objects."""
    assert [] == refusals(status(500, "InternalError"), EMPTY, bound=30.0)
