"""The scanner returns changed objects before the results of a sweep."""

from __future__ import annotations

import asyncio
from typing import Any

from pyverno.controllers.reports.identity import ObjectId
from pyverno.controllers.reports.plan import make_plan
from pyverno.controllers.reports.scanner import ScanCallbacks, Scanner
from pyverno.controllers.reports.settings import ScanSettings
from pyverno.engine.host import NO_HOST
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import BUILTIN_KINDS
from tests.support.apiserver import serving, watch
from tests.unit.controllers.reports.policies import compiled, pod, validating


def _list(kind: str, *items: JSONObject) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": f"{kind}List", "metadata": {"resourceVersion": "1"}, "items": list(items)}


def test_changes_of_objects_are_urgent_and_results_of_a_sweep_are_not() -> None:
    """A changed object does not wait behind thousands of objects that a new policy affects."""
    found: set[tuple[str, bool]] = set()
    expected = {("uid-of-old", False), ("uid-of-web", True)}

    async def check() -> None:
        def note(id: ObjectId, has_changed: bool) -> None:
            found.add((id.uid, has_changed))

        async with serving() as (script, client):
            script.on("GET /api/v1/namespaces", _list("Namespace"))
            script.on("WATCH /api/v1/namespaces", watch())
            script.on("GET /api/v1/pods", _list("Pod", pod("old"), pod("web")))
            script.on("WATCH /api/v1/pods", watch({"type": "MODIFIED", "object": pod("web", "nginx:2")}))
            callbacks = ScanCallbacks(lambda: NO_HOST, note, lambda *_: None, lambda *_: None)
            scanner = Scanner(client, ScanSettings(), callbacks)
            running = asyncio.create_task(scanner.run())
            plan = make_plan(compiled(validating("a", "pods")).policies, (), BUILTIN_KINDS)
            async with asyncio.timeout(60):
                while not expected <= found:
                    scanner.follow(plan)  # has no effect until the scanner runs
                    await asyncio.sleep(0.01)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(check())
    assert expected == found - {("uid-of-web", False)}


def test_a_bug_about_one_object_keeps_no_other_one_from_its_report() -> None:
    """Neither the sweep ends with it, nor the scanner and its process."""
    found: set[str] = set()

    async def check() -> None:
        def note(id: ObjectId, _has_changed: bool) -> None:
            if id.uid == "uid-of-odd":
                raise KeyError(7, None)
            found.add(id.uid)

        async with serving() as (script, client):
            script.on("GET /api/v1/namespaces", _list("Namespace"))
            script.on("WATCH /api/v1/namespaces", watch())
            script.on("GET /api/v1/pods", _list("Pod", pod("a"), pod("odd"), pod("web")))
            script.on("WATCH /api/v1/pods", watch())
            callbacks = ScanCallbacks(lambda: NO_HOST, note, lambda *_: None, lambda *_: None)
            scanner = Scanner(client, ScanSettings(), callbacks)
            running = asyncio.create_task(scanner.run())
            plan = make_plan(compiled(validating("a", "pods")).policies, (), BUILTIN_KINDS)
            async with asyncio.timeout(60):
                while not found >= {"uid-of-a", "uid-of-web"}:
                    assert not running.done()
                    scanner.follow(plan)  # has no effect until the scanner runs
                    await asyncio.sleep(0.01)
            assert not running.done()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(check())
