"""The UI server in this process, with a store in a folder."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from aiohttp.typedefs import Middleware

from pyverno.ui.feed import StoreFeed
from pyverno.ui.live import LiveUpdates
from pyverno.ui.playground.workers import PlaygroundWorkers
from pyverno.ui.server.app import build_app
from pyverno.ui.server.inspection import InspectionRoutes, Inspector
from pyverno.ui.server.metrics import MetricsRoute, read_labels
from pyverno.ui.server.namespaces import NamespaceSelector
from pyverno.ui.server.playground import PlaygroundRoutes
from pyverno.ui.server.policyreporter import PolicyReporterRoutes
from pyverno.ui.server.results import ResultRoutes
from pyverno.ui.server.security import LOOPBACK_NAMES
from pyverno.ui.server.serving import Limits, listening
from pyverno.ui.server.staticfiles import StaticFiles, web_root
from pyverno.ui.server.targets import TargetRoutes, TargetStatus
from pyverno.ui.store.pool import ReaderPool
from pyverno.ui.store.schema import create_tables
from pyverno.ui.store.writer import Writer
from pyverno.ui.views import View

__all__ = ["UiServer", "serve_ui"]

NOW = 1_000_000


class UiServer:
    """The address of the server, its feed, a client, and the application."""

    def __init__(self, url: str, feed: StoreFeed, session: aiohttp.ClientSession, app: web.Application) -> None:
        """Take the settings that the server was started with."""
        self.app = app
        self.url = url
        self.feed = feed
        self.session = session

    async def get(self, path: str, status: int = 200) -> Any:
        """Return the JSON of a GET request."""
        async with self.session.get(f"{self.url}{path}") as response:
            body = await response.json(content_type=None)
            assert status == response.status, body
            return body

    async def post(self, path: str, body: object, status: int = 200) -> Any:
        """Return the JSON response to a POST request."""
        async with self.session.post(f"{self.url}{path}", json=body) as response:
            found = await response.json()
            assert status == response.status, found
            return found


@asynccontextmanager
async def serve_ui(
    folder: Path,
    *,
    base_path: str = "",
    problems: Sequence[str] = (),
    inspectors: Mapping[str, Inspector] | None = None,
    targets: Sequence[TargetStatus] = (),
    views: Sequence[View] = (View("Everything that fails", "status=fail"),),
    namespaces: NamespaceSelector | None = None,
    metrics_labels: Sequence[str] = (),
    live: LiveUpdates | None = None,
    admission: Middleware | None = None,
    limits: Limits | None = None,
) -> AsyncIterator[UiServer]:
    """Serve an empty store on a free port; `inspectors` are by cluster, and `targets` receive notifications."""
    path = str(folder / "results.db")
    create_tables(path)
    writer = Writer(path)
    live = live or LiveUpdates()
    feed = StoreFeed(writer, live, now=lambda: NOW)
    try:
        async with ReaderPool(path) as readers, PlaygroundWorkers() as workers, aiohttp.ClientSession() as session:
            app = build_app(
                (
                    *ResultRoutes(readers, now=lambda: NOW).routes(),
                    *InspectionRoutes(readers, inspectors or {}).routes(),
                    *PolicyReporterRoutes(readers).routes(),
                    *TargetRoutes(targets).routes(),
                    *PlaygroundRoutes(workers).routes(),
                    *MetricsRoute(readers, labels=read_labels(metrics_labels)).routes(),
                    *StaticFiles(web_root()).routes(),
                ),
                live=live,
                problems=lambda: problems,
                features=(
                    "results",
                    *(["cluster", "clusters"] if inspectors else []),
                    *(["targets"] if targets else []),
                    "playground",
                ),
                base_path=base_path,
                hosts=LOOPBACK_NAMES,
                views=views,
                namespaces=namespaces,
                admission=admission,
                limits=limits,
                store_problem=readers.problem,
            )
            async with listening(app, "127.0.0.1", 0, shutdown_seconds=0.1, limits=limits) as (_, port):
                yield UiServer(f"http://127.0.0.1:{port}{base_path}", feed, session, app)
    finally:
        writer.close()
