"""The work of `pyverno ui`: open the store, fill it, serve the pages until the process receives a signal to end."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pyverno.cli.report.sources import read_files
from pyverno.cli.terminal import STDERR
from pyverno.cli.ui.access import LoginOptions, build_login
from pyverno.cli.ui.notifications import open_notifications
from pyverno.cluster.client import Client
from pyverno.errors import PyvernoError, UsageError
from pyverno.kube.yaml.documents import load_documents
from pyverno.offline.files import read_file
from pyverno.telemetry.logs import LogSettings, set_up_logging
from pyverno.threads import in_thread
from pyverno.ui.feed import ClusterFeed, StoreFeed
from pyverno.ui.leading import Leading, follow_announcements, lead
from pyverno.ui.live import LiveUpdates
from pyverno.ui.notifications.namespaces import NamespaceLabels
from pyverno.ui.playground.workers import PlaygroundWorkers
from pyverno.ui.server.app import build_app
from pyverno.ui.server.inspection import InspectionRoutes, Inspector
from pyverno.ui.server.logo import read_logo
from pyverno.ui.server.metrics import MetricsRoute, metrics_app, read_address, read_labels
from pyverno.ui.server.namespaces import NamespaceRoutes
from pyverno.ui.server.playground import PlaygroundRoutes
from pyverno.ui.server.policyreporter import PolicyReporterRoutes
from pyverno.ui.server.results import ResultRoutes
from pyverno.ui.server.security import LOOPBACK_NAMES
from pyverno.ui.server.serving import listening
from pyverno.ui.server.staticfiles import StaticFiles, web_root
from pyverno.ui.server.targets import TargetRoutes
from pyverno.ui.store.filters import NO_FILTER
from pyverno.ui.store.opening import is_url
from pyverno.ui.store.pool import ReaderPool
from pyverno.ui.store.schema import create_tables
from pyverno.ui.store.scope import SCOPE
from pyverno.ui.store.writer import Writer
from pyverno.ui.views import read_views
from pyverno.value import dataclass, field

# trust rows: environment

__all__ = ["UiOptions", "run_ui", "serving"]

_DAY: Final = 86_400
_GOODBYE_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class UiOptions:
    """All flags of the command."""

    files: tuple[str, ...] = ()
    kubeconfig: str = ""
    contexts: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    cluster_name: str = "cluster"
    only_playground: bool = False
    address: str = "127.0.0.1"
    port: int = 8080
    base_path: str = ""
    store: str = ""
    retention_days: int = 90
    allows_everybody: bool = False
    shows_metrics: bool = False
    metrics_address: str = ""
    metrics_labels: tuple[str, ...] = ()
    banner: str = ""
    logo: str = ""
    views: tuple[str, ...] = ()
    notifications: tuple[str, ...] = ()
    login: LoginOptions = field(default_factory=LoginOptions)


def run_ui(options: UiOptions) -> None:
    """Serve the pages until SIGINT, SIGTERM or SIGHUP. Raises UsageError, HostError for what cannot be used."""
    _check(options)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    set_up_logging(LogSettings())
    try:
        asyncio.run(_serve(options))
    finally:  # the caller's process may go on
        root.handlers[:] = handlers
        root.setLevel(level)


def _first(group: ExceptionGroup[PyvernoError]) -> PyvernoError:
    found = group.exceptions[0]
    return _first(found) if isinstance(found, ExceptionGroup) else found


def _check(options: UiOptions) -> None:
    if options.files and (options.kubeconfig or options.contexts):
        raise UsageError("give either files or --kubeconfig and --context, not both")
    if options.only_playground and options.files:
        raise UsageError("--playground reads no reports: leave out the files")
    if is_url(options.store) and (options.files or options.only_playground):
        raise UsageError("a store in PostgreSQL holds the results of clusters: leave out files and --playground")
    if options.notifications and (options.files or options.only_playground):
        raise UsageError("--notifications follows a cluster: leave out files and --playground")
    if len(set(options.contexts)) < len(options.contexts):
        raise UsageError("--context names the same context twice")
    if options.base_path and (not options.base_path.startswith("/") or options.base_path.endswith("/")):
        raise UsageError(f"--base-path is `{options.base_path}`: expected a path such as `/policy`")
    options.login.check()
    if options.login.is_on and options.shows_metrics and not options.metrics_address:  # guard: metrics need an address
        raise UsageError(
            "--metrics beside a login would name namespaces and policies without one: give --metrics-address for a "
            "port that only Prometheus reaches"
        )
    if options.metrics_address:
        read_address(options.metrics_address)
    if options.address not in LOOPBACK_NAMES and not options.allows_everybody and not options.login.is_on:
        raise UsageError(
            f"other machines reach `{options.address}`, and the pages ask for no login: give --oidc-issuer or "
            "--proxy-user-header, listen at 127.0.0.1, or give --insecure-no-login"
        )


async def _serve(options: UiOptions) -> None:
    async with serving(options) as url:
        STDERR.write(f"pyverno ui: {url} (Ctrl+C ends it)\n")
        STDERR.flush()
        await _wait_for_signal()


@asynccontextmanager
async def serving(options: UiOptions) -> AsyncIterator[str]:
    """Serve the pages and yield their address; raises UsageError, HostError for what cannot be used."""
    try:
        async with _serving(options) as url:
            yield url
    except ExceptionGroup as group:
        # of tasks that ran side by side
        known, _ = group.split(PyvernoError)
        if known is None:
            raise
        raise _first(known) from None


@asynccontextmanager
async def _serving(options: UiOptions) -> AsyncIterator[str]:
    async with AsyncExitStack() as stack:
        path = options.store or str(Path(stack.enter_context(tempfile.TemporaryDirectory())) / "results.db")
        create_tables(path)
        notifications = open_notifications(options.notifications, path, stack)
        recorder = notifications.recorder if notifications else None
        writer = Writer(path, retention_seconds=options.retention_days * _DAY, recorder=recorder)
        stack.callback(writer.close)
        readers = await stack.enter_async_context(ReaderPool(path))
        workers = await stack.enter_async_context(PlaygroundWorkers())
        live = LiveUpdates(number=time.time_ns() // 1_000_000)
        feed = StoreFeed(writer, live)
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        views = [
            view for file in options.views for view in read_views(load_documents(read_file(Path(file)), file=file))
        ]
        source = await _fill(options, feed, stack)
        clusters = dict(zip(source.inspectors, source.clients, strict=True))
        work = [feed.keep_days, *source.work]
        if notifications is not None:
            dispatcher = notifications.dispatcher(clusters)
            feed.subscribers.append(dispatcher.wake)
            work.append(dispatcher.run)
        leading = Leading()
        for running in (lead(writer, lambda: _together(work), leading=leading), follow_announcements(path, live)):
            stack.callback(tasks.create_task(running).cancel)
        login = build_login(options.login, options.base_path, source.clients, lambda: _namespaces(readers), stack)
        labels = read_labels(options.metrics_labels)
        readings = (notifications.readings,) if notifications else ()
        metrics = MetricsRoute(readers, *readings, labels=labels)
        app = build_app(
            (
                *ResultRoutes(readers).routes(),
                *InspectionRoutes(readers, source.inspectors).routes(),
                *PolicyReporterRoutes(readers).routes(),
                *TargetRoutes(notifications.targets() if notifications else ()).routes(),
                *NamespaceRoutes(NamespaceLabels(clusters)).routes(),
                *PlaygroundRoutes(workers).routes(),
                *(metrics.routes() if options.shows_metrics and not options.metrics_address else ()),
                *StaticFiles(web_root()).routes(),
                *login.routes,
            ),
            live=live,
            problems=lambda: (*source.problems(), *leading.problems()),
            store_problem=readers.problem,
            features=(*source.features, *(["targets"] if notifications else [])),
            views=views,
            banner=options.banner,
            namespaces=NamespaceLabels(clusters) if clusters else None,
            logo=read_logo(options.logo) if options.logo else None,
            base_path=options.base_path,
            hosts=_hosts(options),
            admission=login.middleware,
            has_login=bool(login.routes),
        )
        if options.metrics_address:
            await stack.enter_async_context(_serving_metrics(metrics, options.metrics_address))
        host, port = await stack.enter_async_context(
            listening(app, options.address, options.port, shutdown_seconds=_GOODBYE_SECONDS)
        )
        shown = f"[{host}]" if ":" in host else host
        yield f"http://{shown}:{port}{options.base_path}/"


@asynccontextmanager
async def _serving_metrics(metrics: MetricsRoute, where: str) -> AsyncIterator[None]:
    """Serve `/metrics` and nothing else; raises UsageError for an address that cannot be used."""
    address, port = read_address(where)
    hosts = LOOPBACK_NAMES if address in LOOPBACK_NAMES else ()
    async with listening(metrics_app(metrics, hosts), address, port, shutdown_seconds=_GOODBYE_SECONDS) as found:
        host = f"[{found[0]}]" if ":" in found[0] else found[0]
        STDERR.write(f"pyverno ui: metrics at http://{host}:{found[1]}/metrics\n")
        yield


@dataclass(frozen=True, slots=True)
class _Source:
    """A source of results: the parts of the pages to show, its problem if any, and the clusters.

    `work` follows the clusters; the one writer of the store does it.
    """

    features: tuple[str, ...]
    problems: Callable[[], Sequence[str]] = tuple
    inspectors: Mapping[str, Inspector] = field(default_factory=dict)
    clients: Sequence[Client] = ()
    work: Sequence[Callable[[], Awaitable[None]]] = ()


async def _together(work: Iterable[Callable[[], Awaitable[None]]]) -> None:
    async with asyncio.TaskGroup() as tasks:
        for each in work:
            tasks.create_task(_run(each))


async def _run(work: Callable[[], Awaitable[None]]) -> None:
    await work()


async def _fill(options: UiOptions, feed: StoreFeed, stack: AsyncExitStack) -> _Source:
    """Read the files, or prepare to follow the clusters."""
    if options.only_playground:
        return _Source(("playground",))
    if options.files:
        source = await in_thread(read_files, options.files)
        if source.problems and not source.results:
            raise UsageError(source.problems[0])
        await feed.write_files(source.results)
        for problem in source.problems:
            STDERR.write(f"warning: {problem}\n")
        return _Source(("results", "playground"), lambda: source.problems)
    from pyverno.cli.ui.inspector import ClusterInspector
    from pyverno.cluster.access import find_access

    clients: list[Client] = []
    feeds: list[ClusterFeed] = []
    inspectors: dict[str, Inspector] = {}
    for context in options.contexts or ("",):
        name = context if len(options.contexts) > 1 else options.cluster_name
        client = await stack.enter_async_context(Client(find_access(options.kubeconfig, context, os.environ), qps=0))
        inspector = ClusterInspector(client)
        stack.push_async_callback(inspector.close)
        cluster = ClusterFeed(name, client, feed, options.namespaces)
        feeds.append(cluster)
        clients.append(client)
        inspectors[name] = inspector

    def problems() -> Sequence[str]:
        found = [(each.name, each.problem()) for each in feeds]
        return tuple(f"{name}: {text}" if len(feeds) > 1 else text for name, text in found if text)

    features = ("results", "cluster", *(["clusters"] if len(clients) > 1 else []), "playground")
    return _Source(features, problems, inspectors, clients, [each.run for each in feeds])


def _hosts(options: UiOptions) -> frozenset[str]:
    """Return the host names that requests may use, against DNS rebinding; none for an open address."""
    if options.address not in LOOPBACK_NAMES:
        return frozenset()
    own = urlsplit(options.login.public_url).hostname
    return LOOPBACK_NAMES | {own} if own else LOOPBACK_NAMES


async def _namespaces(readers: ReaderPool) -> Iterable[str]:
    """Return the namespaces that have results, for any user."""
    token = SCOPE.set(None)
    try:
        return await readers.ask(lambda reader: [name for name, _ in reader.counts(NO_FILTER, ("namespace",))])
    finally:
        SCOPE.reset(token)


async def _wait_for_signal() -> None:
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # the last one when the terminal is closed
        loop.add_signal_handler(number, asked.set)
    await asked.wait()
