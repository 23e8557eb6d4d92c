"""The application: routes under a base path, with errors as JSON and security headers around them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence

import orjson
from aiohttp import web
from aiohttp.typedefs import Middleware

from pyverno.errors import UsageError
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import load_documents
from pyverno.threads import in_thread
from pyverno.ui.access.clients import client_of
from pyverno.ui.access.login import is_admitted, is_logged_in, known_user
from pyverno.ui.access.viewer import sees_everything
from pyverno.ui.live import LiveUpdates
from pyverno.ui.server.bodies import read_object
from pyverno.ui.server.errors import errors_as_json
from pyverno.ui.server.logo import Logo
from pyverno.ui.server.namespaces import NamespaceSelector, visible
from pyverno.ui.server.security import add_headers, known_hosts, own_requests
from pyverno.ui.server.serving import Limits, bounded_bodies, sent_in_time
from pyverno.ui.views import View, read_views
from pyverno.version import __version__

# trust rows: browser

__all__ = ["build_app"]


def build_app(
    routes: Iterable[web.RouteDef],
    *,
    live: LiveUpdates,
    problems: Callable[[], Sequence[str]],
    features: Sequence[str],
    views: Sequence[View] = (),
    banner: str = "",
    logo: Logo | None = None,
    namespaces: NamespaceSelector | None = None,
    base_path: str = "",
    hosts: Collection[str] = (),
    admission: Middleware | None = None,
    has_login: bool = False,
    limits: Limits | None = None,
    store_problem: Callable[[], Awaitable[str]] | None = None,
) -> web.Application:
    """Return the application.

    `problems` returns the reasons why results may be out of date, and `store_problem` why they cannot be read;
    `features` are the parts of the pages to show, `views` the named filters that all users see, `banner` is a text
    above every page, and `logo` an image beside the name; `namespaces` finds those of views with labels; with `hosts`,
    requests for other host names are refused, and `admission` identifies and admits users; `has_login` means that they
    can log out here.
    """
    limits = limits or Limits()
    app = web.Application()
    app.middlewares.extend((sent_in_time(limits), errors_as_json))
    if hosts:
        app.middlewares.append(known_hosts(hosts))
    app.middlewares.append(own_requests)
    if admission is not None:
        app.middlewares.append(admission)
    app.middlewares.append(bounded_bodies(limits))
    app.on_response_prepare.append(add_headers)
    look = {"banner": banner, "hasLogo": logo is not None, "hasLogin": has_login}
    readiness = _Readiness(problems, store_problem, is_public=admission is None)
    own = _OwnRoutes(live, problems, features, views=views, look=look, namespaces=namespaces)
    for route in (*routes, *own.routes(), *readiness.routes(), *(logo.routes() if logo is not None else ())):
        app.router.add_route(route.method, f"{base_path}{route.path}", route.handler)
    if base_path:
        app.router.add_get(base_path, _to_folder)
    return app


async def _to_folder(request: web.Request) -> web.StreamResponse:
    """Relative addresses of the page need the slash at its end."""
    raise web.HTTPPermanentRedirect(f"{request.path}/")


class _Readiness:
    """Routes of health, which are open to all; the reasons are for users where there is a login."""

    def __init__(
        self,
        problems: Callable[[], Sequence[str]],
        store_problem: Callable[[], Awaitable[str]] | None,
        *,
        is_public: bool,
    ) -> None:
        self._problems = problems
        self._store_problem = store_problem
        self._is_public = is_public

    def routes(self) -> Iterable[web.RouteDef]:
        return [web.get("/healthz", self._healthy), web.get("/ready", self._ready)]

    async def _healthy(self, _: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _ready(self, _: web.Request) -> web.Response:
        found = [*self._problems()]
        if self._store_problem is not None and (problem := await self._store_problem()):
            found.append(problem)
        if not found:
            return web.Response(text="ok\n")
        text = "; ".join(found) if self._is_public else "not ready: the pages and the log of the server show the reason"
        return web.Response(status=503, text=f"{text}\n")


class _OwnRoutes:
    """Routes of every page: configuration, live updates, views."""

    def __init__(
        self,
        live: LiveUpdates,
        problems: Callable[[], Sequence[str]],
        features: Sequence[str],
        *,
        views: Sequence[View],
        look: JSONObject,
        namespaces: NamespaceSelector | None,
    ) -> None:
        self._live = live
        self._problems = problems
        self._features = tuple(features)
        self._views = tuple(views)
        self._look = look
        self._namespaces = namespaces

    def routes(self) -> Iterable[web.RouteDef]:
        return [
            web.get("/api/v1/config", self._config),
            web.get("/api/v1/events", self._events),
            web.get("/api/v1/views", self._list_views),
            web.post("/api/v1/views", self._read_views),
        ]

    async def _config(self, _: web.Request) -> web.Response:
        return _json(
            {
                "version": __version__,
                "features": list(self._features),
                "problems": list(self._problems()),
                "user": known_user(),
                "number": self._live.number,
                **self._look,
            }
        )

    async def _list_views(self, _: web.Request) -> web.Response:
        shown = [view for view in self._views if is_admitted(view.admission)]
        return _json({"items": [(await self._resolve(view)).to_json() for view in shown]})

    async def _resolve(self, view: View) -> View:
        """Return a view with the namespaces that its labels select now and that the user may see."""
        if not view.labels:
            return view
        if self._namespaces is None:
            raise UsageError(f"view `{view.name}` selects namespaces by labels, which needs a cluster")
        return view.within(await visible(await self._namespaces.matching(view.labels)))

    async def _read_views(self, request: web.Request) -> web.Response:
        """Return the views of a text; the page keeps them in the browser."""
        text = read_object(request, "`text`").get("text")
        if not isinstance(text, str):
            raise UsageError("expected a JSON object with `text`")
        views = await in_thread(lambda: read_views(load_documents(text, file="views")))
        return _json({"items": [(await self._resolve(view)).to_json() for view in views]})

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """Send an event for each change of results, and a comment after a silence, so that proxies stay connected."""
        client = client_of(request)
        if self._live.is_full(client):
            raise web.HTTPServiceUnavailable(text="too many pages listen: try again later")
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        )
        async with self._live.listen(client) as queue:
            try:
                await response.prepare(request)
                await self._send_updates(response, queue)
            except ConnectionResetError:
                pass  # the page was closed
            except TimeoutError:
                if request.transport is not None:  # the page does not read
                    request.transport.abort()
        return response

    async def _send_updates(self, response: web.StreamResponse, queue: asyncio.Queue[JSONObject]) -> None:
        async def write(text: bytes) -> None:
            async with asyncio.timeout(self._live.write_seconds):
                await response.write(text)

        await write(b": connected\n\n")
        while True:
            try:
                async with asyncio.timeout(self._live.heartbeat_seconds):
                    message = await queue.get()
            except TimeoutError:
                message = None
            if not is_logged_in():
                return
            if message is None:
                await write(b": still here\n\n")
                continue
            # counts are those of all namespaces
            data = orjson.dumps(message if await sees_everything() else {**message, "changes": {}})
            await write(b"id: %d\nevent: results\ndata: %b\n\n" % (message["number"], data))


def _json(value: JSONObject) -> web.Response:
    return web.Response(body=orjson.dumps(value), content_type="application/json")
