"""Namespaces by labels, for boards of Policy Reporter's pages."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from aiohttp import web

from kubesandbox import Sandbox
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.errors import HostError
from pyverno.kube.gvk import GVR
from pyverno.ui.notifications.namespaces import NamespaceLabels
from pyverno.ui.server.errors import errors_as_json
from pyverno.ui.server.namespaces import NamespaceRoutes
from pyverno.ui.server.serving import Limits, bounded_bodies
from pyverno.ui.store.scope import SCOPE

NAMESPACES = GVR("", "v1", "namespaces")


def test_namespaces_are_found_by_their_labels() -> None:
    """All labels must be there; a person gets the namespaces in scope; another body is an error."""

    async def play() -> list[object]:
        with Sandbox() as sandbox:
            async with Client(load_kubeconfig(sandbox.kubeconfig, "", {}), qps=0) as client:
                for name, labels in (("shop", {"team": "a", "env": "x"}), ("data", {"team": "a"}), ("other", {})):
                    await client.create(NAMESPACES, {"metadata": {"name": name, "labels": labels}})
                return await ask(NamespaceLabels({"c": client}))

    async def ask(selector: NamespaceLabels) -> list[object]:
        app = web.Application(middlewares=[errors_as_json, bounded_bodies(Limits())])
        app.router.add_routes(NamespaceRoutes(selector).routes())
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            url = f"http://127.0.0.1:{runner.addresses[0][1]}/v2/namespaces/resolve-selector"
            async with aiohttp.ClientSession() as session:
                bodies = ({"team": "a"}, {"team": "a", "env": "x"}, {"team": "b"}, ["a"], {"team": 1})
                return [await (await session.post(url, json=body)).json() for body in bodies]
        finally:
            await runner.cleanup()

    wrong = {"error": "expected a JSON object with the values of labels"}
    assert [["data", "shop"], ["shop"], [], wrong, wrong] == asyncio.run(play())
    token = SCOPE.set(frozenset({"data"}))
    try:
        assert ["data"] == asyncio.run(play())[0]
    finally:
        SCOPE.reset(token)


def test_many_views_read_the_namespaces_once() -> None:
    """A visitor may send five hundred views with labels in one request."""
    listed = 0

    class Listing:
        """A client that counts its lists."""

        async def list(self, _: GVR) -> dict[str, object]:
            nonlocal listed
            listed += 1
            await asyncio.sleep(0)
            return {"items": [{"metadata": {"name": "shop", "labels": {"team": "a"}}}, {"metadata": {"name": "x"}}]}

    async def play() -> tuple[int, int]:
        seconds = 100.0
        selector = NamespaceLabels({"c": Listing()}, now=lambda: seconds)  # type: ignore[dict-item]
        found = await asyncio.gather(*(selector.matching({"team": "a"}) for _ in range(500)))
        assert [["shop"]] * 500 == found
        first, seconds = listed, 106.0
        await selector.matching({"team": "a"})
        return first, listed

    assert (1, 2) == asyncio.run(play())


def test_requests_share_the_error_of_a_cluster_that_does_not_answer() -> None:
    """They do not wait for it one after the other: the last of a hundred would wait an hour."""
    listed = 0

    class Away:
        """A client that fails when the time of the API server is over."""

        async def list(self, _: GVR) -> dict[str, object]:
            nonlocal listed
            listed += 1
            await asyncio.sleep(0)
            raise HostError("the API server did not answer")

    async def play() -> tuple[int, int]:
        selector = NamespaceLabels({"c": Away()})  # type: ignore[dict-item]
        found = await asyncio.gather(*(selector.matching({}) for _ in range(100)), return_exceptions=True)
        assert {HostError} == {type(each) for each in found}
        first = listed
        with pytest.raises(HostError):
            await selector.matching({})
        return first, listed

    assert (1, 2) == asyncio.run(play())
