"""`/api/v1/review`, `complete`, `hover`, `import`, `testcase` and `examples`: the playground's routes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import cache

import orjson
from aiohttp import web

from pyverno.errors import HostError, UsageError
from pyverno.kube.json import JSONObject
from pyverno.offline.files import read_file
from pyverno.offline.policylibrary import find_controls, list_controls
from pyverno.threads import in_thread
from pyverno.ui.access.clients import client_of
from pyverno.ui.playground.examples import list_scenarios, read_scenario
from pyverno.ui.playground.testcase import suite_files, zip_files
from pyverno.ui.playground.workers import PlaygroundWorkers
from pyverno.ui.server.bodies import read_object

# trust rows: browser

__all__ = ["PlaygroundRoutes"]


class PlaygroundRoutes:
    """Handlers of the playground; a review runs in a process of its own."""

    def __init__(self, workers: PlaygroundWorkers) -> None:
        """Take the processes that review."""
        self._workers = workers

    def routes(self) -> Iterable[web.RouteDef]:
        """Return the routes, relative to the base path."""
        return [
            web.post("/api/v1/review", self._review),
            web.post("/api/v1/complete", self._assist("complete")),
            web.post("/api/v1/hover", self._assist("hover")),
            web.post("/api/v1/import", self._import),
            web.post("/api/v1/testcase", self._testcase),
            web.get("/api/v1/examples", self._examples),
            web.get("/api/v1/examples/{name:.+}", self._example),
        ]

    async def _review(self, request: web.Request) -> web.Response:
        found = await self._run(request, "review", _read_body(request))
        return _json(found)

    async def _import(self, request: web.Request) -> web.Response:
        """Return the texts of a link or an export file of Kyverno's playground."""
        text = (_read_body(request)).get("text")
        if not isinstance(text, str):
            raise UsageError("expected a JSON object with `text`")
        return web.json_response(await self._run(request, "import", {"text": text}))

    async def _testcase(self, request: web.Request) -> web.Response:
        """Return a test suite of the texts as a ZIP file, which expects the present results of the review.

        `pyverno test` reviews objects as written, so the suite does, whatever the Kubernetes version.
        """
        body = _read_body(request)
        found = await self._run(request, "review", {**body, "explain": False, "change": None, "kubernetesVersion": ""})
        archive = await in_thread(lambda: zip_files(suite_files(body, found)))
        headers = {"Content-Disposition": 'attachment; filename="playground.zip"'}
        return web.Response(body=archive, content_type="application/zip", headers=headers)

    def _assist(self, task: str) -> Callable[[web.Request], Awaitable[web.Response]]:
        """Return the handler of an editor's requests while a text is written."""

        async def handle(request: web.Request) -> web.Response:
            return _json(await self._run(request, task, _read_body(request)))

        return handle

    async def _run(self, request: web.Request, task: str, body: JSONObject) -> JSONObject:
        try:
            return await self._workers.run(task, body, client=client_of(request))
        except HostError as error:
            raise web.HTTPServiceUnavailable(text=error.message) from error

    async def _examples(self, _: web.Request) -> web.Response:
        found = await in_thread(_list_examples)
        return web.Response(body=found, content_type="application/json")

    async def _example(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        found = await in_thread(_read_example, name)
        return _json(found)


def _json(value: JSONObject) -> web.Response:
    return web.Response(body=orjson.dumps(value), content_type="application/json")


def _read_body(request: web.Request) -> JSONObject:
    return read_object(request, "`policies` and `resources`")


@cache
def _list_examples() -> bytes:
    return orjson.dumps([*list_scenarios(), *(control.to_json() for control in list_controls())])


def _read_example(name: str) -> JSONObject:
    """Return the texts of a scenario, or the policy of a control with the resources of its cases."""
    scenario = read_scenario(name)
    if scenario is not None:
        return scenario
    controls = find_controls(name)
    if len(controls) != 1:
        raise UsageError(f"`{name[:80]}` is a folder with {len(controls)} policies: name one")
    (control,) = controls
    twin = find_controls(control.name.removeprefix("cel/"))[0] if control.is_cel else control
    resources = [
        read_file(path).decode()
        for path in sorted((twin.folder / "cases").glob("*.yaml"))
        if path.stem in ("good", "bad")
    ]
    return {
        **control.to_json(),
        "policies": read_file(control.path).decode(),
        "resources": "---\n".join(text.removeprefix("---\n") for text in resources),
    }
