"""The pages show where notifications go, and no address."""

from __future__ import annotations

import asyncio

import aiohttp
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from pyverno.ui.notifications.counts import NotificationCounts
from pyverno.ui.server.targets import TargetRoutes, TargetStatus
from pyverno.ui.store.scope import SCOPE, Scope
from tests.support.notifications import settings


def test_names_of_secrets_are_for_those_who_see_all_namespaces() -> None:
    """A Secret is an object of a namespace that the user may not read; custom fields may name anything."""
    text = "targets: [{name: a, type: slack, secretRef: policy/slack, customFields: {owner: x}}]"
    (target,) = settings(text).targets
    (route,) = [
        each for each in TargetRoutes([TargetStatus(target, NotificationCounts())]).routes() if "v2" in each.path
    ]

    async def play(scope: Scope) -> str:
        SCOPE.set(scope)
        response = await route.handler(make_mocked_request("GET", route.path))  # type: ignore[misc, arg-type]
        return str(response.text)

    assert all(word in asyncio.run(play(None)) for word in ("policy/slack", "owner"))
    assert not any(word in asyncio.run(play(frozenset({"own"}))) for word in ("slack:", "policy/", "owner"))


def test_targets_are_shown_without_addresses() -> None:
    """By name and kind, with what became of their notices; Policy Reporter's route groups them by kind."""
    (target,) = settings("targets: [{name: a, type: slack, webhook: 'https://S3CRET', minimumSeverity: high}]").targets
    counts = NotificationCounts()
    counts.sent["a"] = 3

    async def play() -> tuple[dict[str, object], dict[str, object], str]:
        app = web.Application()
        app.router.add_routes(TargetRoutes([TargetStatus(target, counts)]).routes())
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            async with aiohttp.ClientSession() as session:
                own = await session.get(f"{url}/api/v1/targets")
                theirs = await session.get(f"{url}/v2/targets")
                return await own.json(), await theirs.json(), await own.text() + await theirs.text()
        finally:
            await runner.cleanup()

    own, theirs, text = asyncio.run(play())
    assert {
        "items": [
            {
                "name": "a",
                "type": "slack",
                "digestSeconds": 0,
                "groupBy": "",
                "resolved": True,
                "sent": 3,
                "failed": 0,
                "dropped": 0,
                "problem": "",
            }
        ]
    } == own
    assert {"slack": [{"name": "a", "minimumSeverity": "high", "secretRef": "", "customFields": {}}]} == theirs
    assert "S3CRET" not in text
